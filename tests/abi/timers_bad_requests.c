/* Each tick asks for what makes no sense, and once for what does. */
#define FIXTURE_TICK bad_tick
#include "timers_fixture.h"

static int64_t bad_tick(void* self, int64_t now) {
    struct fixture* fixture = self;
    const queen_host* host = fixture->host;
    const queen_host_timers* timers = fixture->timers;
    const uint64_t batch = fixture->batch; /* of two segments, once an answer brought it */
    const uint32_t both[] = {0, 1};
    const uint32_t twice[] = {1, 1};
    const uint32_t beyond[] = {2};
    const queen_str none = {NULL, 0};
    const queen_str nul = {"a\0b", 3};
    int refused = 0;
    refused += timers->fire(host, 1, 4711, both, 2) != 0;
    refused += timers->fire(host, 2, 0, both, 2) != 0;
    refused += timers->fire(host, 3, batch, twice, 2) != 0;
    refused += timers->fire(host, 4, batch, beyond, 1) != 0;
    refused += timers->fire(host, 5, batch, NULL, 1) != 0;
    refused += timers->fire(host, 6, batch, both, 0) != 0;
    refused += timers->fire(host, 7, batch, both, 1000000) != 0;
    refused += timers->fail(host, 8, batch, both, 2, -1, none, 1, 5) != 0;
    refused += timers->fail(host, 9, 4711, both, 2, 1, none, 1, 5) != 0;
    refused += timers->dead_letter(host, 10, 4711, 5) != 0;
    refused += timers->claim(host, 11, UINT64_MAX, 0, 10, 10) != 0;
    timers->release(host, 4711);
    refused += timers->fail(host, 12, batch, both, 2, 1, nul, 1, 5) != 0;
    fixture->refused = refused;
    return now + INT64_C(60000000000);
}
