/* Each tick claims twenty times and releases nothing. */
#define FIXTURE_TICK greedy_tick
#include "timers_fixture.h"

static int64_t greedy_tick(void* self, int64_t now) {
    struct fixture* fixture = self;
    int refused = 0;
    for (uint64_t call = 1; call <= 20; ++call) {
        refused += fixture->timers->claim(fixture->host, call, UINT64_MAX, 1000000000, 10, 10) != 0;
    }
    fixture->refused = refused;
    return now + INT64_C(60000000000);
}
