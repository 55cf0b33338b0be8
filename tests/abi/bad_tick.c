/* Always asks to be ticked in the past. */
#define FIXTURE_TICK past_tick
#define FIXTURE_TICK_IN_TABLE past_tick
#include "fixture.h"

static int64_t past_tick(void* self, int64_t now) {
    const struct fixture* fixture = self;
    fixture->host->log(fixture->host, QUEEN_LOG_DEBUG, fixture_text("ticked"));
    return now - 1000;
}
