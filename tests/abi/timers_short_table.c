/* Its table ends after tick(): valid, the rest counts as absent. */
#define FIXTURE_ID "test.timers_short_table"
#define FIXTURE_TABLE_SIZE offsetof(queen_timers, stats)
#include "timers_fixture.h"
