# queen_add_plugin(<name> <sources...>): a loadable module <name>.so that exports the entry and the
# stamp, and nothing else. The same file serves this tree and, installed, find_package(queen-plugin).
#
# Visibility flags alone leave templates of the standard library exported at -O0, so a version
# script does it. -z,defs turns a call into the broker's own code into a link error.
set(QUEEN_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/queen_plugin.map")

function(queen_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE queen::plugin_api)
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${QUEEN_PLUGIN_MAP}")
  target_link_options(${name} PRIVATE "LINKER:--version-script=${QUEEN_PLUGIN_MAP}")
  # clang links its sanitizer runtimes into the program only, so a module has open references then.
  get_target_property(_flags ${name} LINK_OPTIONS)
  get_directory_property(_directory_flags LINK_OPTIONS)
  if(NOT (CMAKE_CXX_COMPILER_ID MATCHES "Clang"
          AND "${_flags};${_directory_flags};${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize"))
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
  if(QUEEN_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${QUEEN_PLUGIN_OUTPUT_DIRECTORY}")
  endif()
endfunction()
