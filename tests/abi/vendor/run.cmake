# Installs the package, hides nothing else, and lets a vendor's project build against it:
#   cmake -DBUILD=<build dir> -DWORK=<scratch> -DVENDOR=<this folder> -DCXX=... -DFLAGS=...
#     -DCCACHE=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "${line}\nfailed with ${result}:\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --component plugin-sdk --prefix "${WORK}/prefix")
# Found by the path of the prefix alone, so nothing of the tree can leak in.
run("${CMAKE_COMMAND}" -S "${VENDOR}" -B "${WORK}/build" -G Ninja
  -DCMAKE_PREFIX_PATH=${WORK}/prefix "-DCMAKE_CXX_COMPILER=${CXX}"
  "-DCMAKE_CXX_FLAGS=${FLAGS}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/acme_test")
# A later major is refused by CMake itself.
file(WRITE "${WORK}/later/CMakeLists.txt"
  "cmake_minimum_required(VERSION 3.25)\nproject(later CXX)\nfind_package(queen-plugin 2 REQUIRED)\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${WORK}/later" -B "${WORK}/later/build" -G Ninja
  -DCMAKE_PREFIX_PATH=${WORK}/prefix "-DCMAKE_CXX_COMPILER=${CXX}"
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE out)
if(result EQUAL 0 OR NOT out MATCHES "requested version \"2\"")
  message(FATAL_ERROR "find_package(queen-plugin 2) was not refused for its version:\n${out}")
endif()
