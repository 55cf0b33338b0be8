# The hot-list from outside, one step at a time, over a model of the store.
find_package(rapidcheck REQUIRED)

# Archives, so that a broken copy of any of their files takes its place.
file(GLOB hotlist_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/hotlist/*.cpp")
list(FILTER hotlist_sources EXCLUDE REGEX "/plugin\\.cpp$") # the ABI's side is not under test here
add_library(queen_schedule_hotlist STATIC ${hotlist_sources})
target_link_libraries(queen_schedule_hotlist PUBLIC queen::plugin_api PRIVATE queen_warnings)
add_library(queen_schedule_world STATIC schedule_store.cpp schedule_world.cpp)
target_link_libraries(queen_schedule_world PUBLIC queen_schedule_hotlist PRIVATE queen_warnings)

add_library(queen_schedule_directed OBJECT schedule_test.cpp)
target_link_libraries(queen_schedule_directed PRIVATE queen_warnings queen_schedule_world GTest::gmock)

queen_test(hotlist_schedule_test LABELS unit
  SOURCES $<TARGET_OBJECTS:queen_schedule_directed>
  DEPENDS queen_schedule_world)

add_library(queen_schedule_property OBJECT schedule_property_test.cpp)
target_link_libraries(queen_schedule_property PRIVATE queen_warnings queen_schedule_world rapidcheck GTest::gtest)

set(schedule_params "RC_PARAMS=max_success=2000 max_size=120 max_discard_ratio=100")
queen_test(hotlist_schedule_property_test LABELS property
  SOURCES $<TARGET_OBJECTS:queen_schedule_property>
  DEPENDS queen_schedule_world rapidcheck
  ENVIRONMENT "${schedule_params}")

queen_test(hotlist_schedule_stress_test LABELS slow TIMEOUT 600
  SOURCES schedule_stress_test.cpp
  DEPENDS queen_schedule_world)
