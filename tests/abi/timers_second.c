/* Another driver without a fault. */
#define FIXTURE_ID "test.timers_second"
#include "timers_fixture.h"
