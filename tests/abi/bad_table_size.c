/* Its table ends before settle(), which is required. */
#define FIXTURE_TABLE_SIZE offsetof(queen_candidates, settle)
#include "fixture.h"
