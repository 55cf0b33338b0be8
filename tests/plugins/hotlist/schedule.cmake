# The hot-list from outside, one step at a time, over a model of the store.

# An archive, as hotlist_class is, so that a broken copy of any file takes its place.
add_library(queen_schedule_world STATIC schedule_run.cpp schedule_store.cpp schedule_world.cpp)
target_link_libraries(queen_schedule_world PUBLIC hotlist_class PRIVATE queen_warnings)
target_include_directories(queen_schedule_world PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")

add_library(queen_schedule_directed OBJECT schedule_floor_test.cpp schedule_lease_test.cpp)
target_link_libraries(queen_schedule_directed PRIVATE queen_warnings queen_schedule_world GTest::gmock)
queen_test(hotlist_schedule_test LABELS unit
  SOURCES $<TARGET_OBJECTS:queen_schedule_directed>
  DEPENDS queen_schedule_world)

queen_property(hotlist_schedule_property SOURCES schedule_property_test.cpp DEPENDS queen_schedule_world
  RUNS "max_success=5000 max_size=150 max_discard_ratio=100")

add_library(queen_schedule_stress OBJECT schedule_stress_test.cpp)
target_link_libraries(queen_schedule_stress PRIVATE queen_warnings queen_schedule_world GTest::gtest)
queen_test(hotlist_schedule_stress_test LABELS slow TIMEOUT 600
  SOURCES $<TARGET_OBJECTS:queen_schedule_stress>
  DEPENDS queen_schedule_world)

include(schedule_broken.cmake)
