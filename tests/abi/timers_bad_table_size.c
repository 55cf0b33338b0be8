/* Its table ends before tick(), which is required. */
#define FIXTURE_TABLE_SIZE offsetof(queen_timers, tick)
#include "timers_fixture.h"
