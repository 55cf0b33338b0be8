# queen_library(<folder name> SOURCES ... DEPENDS ... PRIVATE_DEPENDS ...)
# One folder, one target: queen_<name>, alias queen::<name>. Headers are found as <name>/file.hpp.
function(queen_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(queen_${name} STATIC ${ARG_SOURCES})
  add_library(queen::${name} ALIAS queen_${name})
  target_include_directories(queen_${name} PUBLIC "${PROJECT_SOURCE_DIR}/core")
  target_link_libraries(queen_${name} PUBLIC ${ARG_DEPENDS} PRIVATE queen_warnings ${ARG_PRIVATE_DEPENDS})
endfunction()

# tests_<label> builds the programs of a label and no more: ./test takes them from here.
function(queen_label_program name)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
endfunction()

# queen_test(<name> LABELS ... SOURCES ... DEPENDS ... [WHOLE] [EACH_SOURCE] [PATHS] [TIMEOUT s]
#            [ENVIRONMENT ...])
# A GoogleTest program. Each test is a ctest entry of its own, unless WHOLE: then the program is one
# entry, for suites that share a costly server. EACH_SOURCE: one entry for each candidate source of
# ours, told by QUEEN_TEST_SOURCE. PATHS defines QUEEN_SOURCE_DIR, QUEEN_BIN_DIR,
# QUEEN_PLUGIN_DIR and QUEEN_TEST_FIXTURE_DIR; the objects then differ between checkouts, which the
# compiler cache sees as different files.
function(queen_test name)
  cmake_parse_arguments(ARG "WHOLE;EACH_SOURCE;PATHS" "TIMEOUT" "LABELS;SOURCES;DEPENDS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE queen_warnings ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  if(ARG_PATHS)
    target_compile_definitions(${name} PRIVATE
      QUEEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" QUEEN_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
      QUEEN_PLUGIN_DIR="${QUEEN_PLUGIN_OUTPUT_DIRECTORY}" QUEEN_TEST_FIXTURE_DIR="${CMAKE_BINARY_DIR}/fixtures")
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  queen_label_program(${name} ${ARG_LABELS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ARG_EACH_SOURCE)
    foreach(source hotlist sqlscan)
      add_test(NAME ${name}.${source} COMMAND ${name})
      set_tests_properties(${name}.${source} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
        ENVIRONMENT "QUEEN_TEST_SOURCE=${source};${ARG_ENVIRONMENT}")
      add_dependencies(${name} ${source})
    endforeach()
  elseif(ARG_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENVIRONMENT}")
  else()
    include(GoogleTest)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENVIRONMENT}")
  endif()
endfunction()
