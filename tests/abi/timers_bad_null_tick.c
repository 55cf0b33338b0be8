/* Its table has no tick(). */
#define FIXTURE_TICK_IN_TABLE NULL
#include "timers_fixture.h"
