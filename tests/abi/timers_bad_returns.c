/* answered() fails each time. */
#define FIXTURE_ANSWERED failing_answered
#include "timers_fixture.h"

static int32_t failing_answered(void* self, uint64_t call, const queen_timer_answer* answer) {
    fixture_answered(self, call, answer);
    return 7;
}
