/* Built against a newer header of the same major that does not need it: valid. */
#define FIXTURE_ID "test.larger_table"
#define FIXTURE_STAMP_SIZE (sizeof(queen_build_stamp) + 64)
#define FIXTURE_ENTRY_SIZE (sizeof(queen_plugin_entry) + 8)
#include "fixture.h"
