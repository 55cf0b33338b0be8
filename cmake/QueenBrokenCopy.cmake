# queen_test_objects(<name> SOURCES ... DEPENDS ...)
# Tests that a program of theirs and broken copies are linked with.
function(queen_test_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPENDS")
  add_library(${name} OBJECT ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE queen_warnings ${ARG_DEPENDS} GTest::gmock)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
endfunction()

# queen_property(<name> SOURCES ... DEPENDS ... RUNS <RC_PARAMS> [TIMEOUT s])
# A program of rapidcheck properties, <name>_test, whose objects, queen_<name>, broken copies use too.
function(queen_property name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "RUNS;TIMEOUT" "SOURCES;DEPENDS")
  find_package(rapidcheck REQUIRED)
  queen_test_objects(queen_${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} rapidcheck)
  queen_test(${name}_test LABELS property SOURCES $<TARGET_OBJECTS:queen_${name}>
    DEPENDS ${ARG_DEPENDS} rapidcheck TIMEOUT "${ARG_TIMEOUT}" ENVIRONMENT "RC_PARAMS=${ARG_RUNS}")
endfunction()

# queen_broken_copy(<name> TEST_OBJECTS <object library> SOURCE <file> FROM <text> TO <text>
#                   [FAILS <test> ...] DEPENDS ... LABELS ... [ENVIRONMENT ...])
# A test that cannot fail proves nothing. This builds the same tests over a copy of SOURCE in which
# FROM is replaced by TO. Without FAILS the copy's property has to be falsified; with it, each of the
# tests named so is run alone and has to fail, under its own name. It is an error when FROM is no
# longer found: the broken copy has to follow the code.
#
# SOURCE is a file of core, or one of plugins/ or tests/ when it begins so. What it defines has to
# come from an archive in DEPENDS: the copy's symbols are defined before the archive is searched, so
# the original is left out.
function(queen_broken_copy name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TEST_OBJECTS;SOURCE;FROM;TO" "FAILS;DEPENDS;LABELS;ENVIRONMENT")
  if(ARG_SOURCE MATCHES "^(plugins|tests)/")
    set(original "${PROJECT_SOURCE_DIR}/${ARG_SOURCE}")
  else()
    set(original "${PROJECT_SOURCE_DIR}/core/${ARG_SOURCE}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${original}")
  file(READ "${original}" text)
  string(FIND "${text}" "${ARG_FROM}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "broken copy ${name}: '${ARG_FROM}' is not in ${ARG_SOURCE} any more")
  endif()
  string(REPLACE "${ARG_FROM}" "${ARG_TO}" text "${text}")
  get_filename_component(file "${ARG_SOURCE}" NAME)
  get_filename_component(folder "${original}" DIRECTORY)
  set(copy "${CMAKE_CURRENT_BINARY_DIR}/${name}/${file}")
  file(CONFIGURE OUTPUT "${copy}" CONTENT "${text}" @ONLY)
  add_executable(${name} $<TARGET_OBJECTS:${ARG_TEST_OBJECTS}> "${copy}")
  target_include_directories(${name} PRIVATE "${folder}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests/broken")
  queen_label_program(${name} ${ARG_LABELS})
  if(NOT ARG_FAILS)
    # That one property is falsified is all that counts: neither the shortest story nor the properties
    # after it, which a sanitizer makes the longest part of the run.
    string(REGEX REPLACE "(RC_PARAMS=[^;]*)" "\\1 noshrink=1" environment "${ARG_ENVIRONMENT}")
    add_test(NAME broken_copy.${name} COMMAND ${name} --gtest_fail_fast)
    set_tests_properties(broken_copy.${name} PROPERTIES
      LABELS "${ARG_LABELS}" TIMEOUT 120 ENVIRONMENT "${environment}" PASS_REGULAR_EXPRESSION "Falsifiable after")
  endif()
  foreach(fails IN LISTS ARG_FAILS)
    add_test(NAME broken_copy.${name}.${fails} COMMAND ${name} "--gtest_filter=${fails}")
    string(REPLACE "." "\\." pattern "${fails}")
    set_tests_properties(broken_copy.${name}.${fails} PROPERTIES
      LABELS "${ARG_LABELS}" TIMEOUT 120 ENVIRONMENT "${ARG_ENVIRONMENT}" PASS_REGULAR_EXPRESSION "\\[  FAILED  \\] ${pattern}")
  endforeach()
endfunction()
