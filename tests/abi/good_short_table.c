/* Built against a header whose table ended after settle(): valid, the rest counts as absent. */
#define FIXTURE_ID "test.short_table"
#define FIXTURE_TABLE_SIZE offsetof(queen_candidates, mark)
#include "fixture.h"
