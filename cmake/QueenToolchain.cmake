# Compiler and linker settings shared by every target of the tree.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g1")

# The broker finds its plugins beside itself: bin/ and plugins/ in the build tree,
# bin/ and lib/queen/plugins/ when installed.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(QUEEN_PLUGIN_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/plugins")

find_program(QUEEN_CCACHE ccache)
if(QUEEN_CCACHE)
  # base_dir and the prefix map make objects of two clones equal, so that the cache hits across them.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${QUEEN_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

find_program(QUEEN_LLD ld.lld)
if(QUEEN_LLD)
  add_link_options(-fuse-ld=lld)
endif()

if(QUEEN_SANITIZE)
  add_compile_options(-fsanitize=${QUEEN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${QUEEN_SANITIZE})
endif()

# Warnings are errors in our code; headers of dependencies are SYSTEM and stay silent.
add_library(queen_warnings INTERFACE)
target_compile_options(queen_warnings INTERFACE -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers)
if(QUEEN_SANITIZE)
  # GCC sees through a sanitizer's checks worse and calls what is initialised uninitialised (its manual says
  # so of -fsanitize). The release build, with the same sources and more optimisation, keeps the warning.
  target_compile_options(queen_warnings INTERFACE -Wno-maybe-uninitialized)
endif()
