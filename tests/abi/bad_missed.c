/* missed() fails. */
#define FIXTURE_ID "test.bad_missed"
#define FIXTURE_MISSED fail_missed
#define FIXTURE_MISSED_IN_TABLE fail_missed
#include "fixture.h"

static int32_t fail_missed(void* self) {
    (void)self;
    return 1;
}
