/* tick() takes longer than its budget, every time: the tests' clock moves on inside. */
#define FIXTURE_TICK slow_tick
#include "timers_fixture.h"

static int64_t slow_tick(void* self, int64_t now) {
    fixture_step_of(((struct fixture*)self)->host);
    fixture_tick(self, now);
    return now;
}
