# queen_broken_copy(<name> TEST_OBJECTS <object library> SOURCE <file of core> FROM <text> TO <text>
#                   DEPENDS ... LABELS ...)
# A test that cannot fail proves nothing. This builds the same property test over a copy of SOURCE in
# which FROM is replaced by TO, and expects the property to be falsified. It is an error when FROM is
# no longer found: the broken copy has to follow the code.
function(queen_broken_copy name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TEST_OBJECTS;SOURCE;FROM;TO" "DEPENDS;LABELS")
  set(original "${PROJECT_SOURCE_DIR}/core/${ARG_SOURCE}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${original}")
  file(READ "${original}" text)
  string(FIND "${text}" "${ARG_FROM}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "broken copy ${name}: '${ARG_FROM}' is not in ${ARG_SOURCE} any more")
  endif()
  string(REPLACE "${ARG_FROM}" "${ARG_TO}" text "${text}")
  get_filename_component(file "${ARG_SOURCE}" NAME)
  set(copy "${CMAKE_CURRENT_BINARY_DIR}/${name}/${file}")
  file(CONFIGURE OUTPUT "${copy}" CONTENT "${text}" @ONLY)
  # The copy's symbols are defined before the archive is searched, so the original is left out.
  add_executable(${name} $<TARGET_OBJECTS:${ARG_TEST_OBJECTS}> "${copy}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests/broken")
  queen_label_program(${name} ${ARG_LABELS})
  add_test(NAME broken_copy.${name} COMMAND ${name})
  set_tests_properties(broken_copy.${name} PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT 120 PASS_REGULAR_EXPRESSION "Falsifiable after")
endfunction()
