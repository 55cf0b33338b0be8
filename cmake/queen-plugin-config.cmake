# find_package(queen-plugin 1): target queen::plugin_api and queen_add_plugin().
include("${CMAKE_CURRENT_LIST_DIR}/queen-plugin-targets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/QueenPlugin.cmake")
