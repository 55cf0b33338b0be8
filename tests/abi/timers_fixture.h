/* tests/abi/timers_fixture.h - a timer driver that fires nothing and does nothing wrong, in plain
 * C11. Each timers_bad_*.c defines the one thing it does wrong and includes this file. Each tick
 * asks what is due and wants the next a minute later. */
#ifndef FIXTURE_ID
#define FIXTURE_ID "test.timers"
#endif
#include "fixture_common.h"

#include <stdatomic.h>

#ifndef FIXTURE_EXTENSION
#define FIXTURE_EXTENSION QUEEN_TIMERS
#endif
#ifndef FIXTURE_TABLE_SIZE
#define FIXTURE_TABLE_SIZE sizeof(queen_timers)
#endif
#ifndef FIXTURE_ANSWERED
#define FIXTURE_ANSWERED fixture_answered
#endif
#ifndef FIXTURE_TICK
#define FIXTURE_TICK fixture_tick
#endif
#ifndef FIXTURE_TICK_IN_TABLE
#define FIXTURE_TICK_IN_TABLE FIXTURE_TICK
#endif

struct fixture {
    const queen_host* host;
    const queen_host_timers* timers;
    atomic_int ticks, answers, refused;
    _Atomic int64_t scheduled; /* the last that it was told */
    atomic_ullong batch;       /* the last that it was given */
};

static inline void fixture_say(const struct fixture* self, const char* text) {
    fixture_log(self->host, text);
}
static inline void* fixture_create(const queen_host* host, queen_error* error) {
    struct fixture* self = fixture_new(sizeof *self, error);
    if (self == NULL) {
        return NULL;
    }
    self->host = host;
    self->timers = host->extension(host, QUEEN_HOST_TIMERS);
    return self;
}
static void fixture_destroy(void* self) {
    fixture_say(self, "destroyed");
    free(self);
}
static void fixture_stop(void* self) {
    fixture_say(self, "stopped");
}
static int32_t fixture_scheduled(void* self, int64_t earliest) {
    ((struct fixture*)self)->scheduled = earliest;
    return 0;
}
static inline int32_t fixture_answered(void* self, uint64_t call,
                                       const queen_timer_answer* answer) {
    struct fixture* fixture = self;
    (void)call;
    ++fixture->answers;
    if (answer->batch != 0) {
        fixture->batch = answer->batch;
    }
    return 0;
}
static inline int64_t fixture_tick(void* self, int64_t now) {
    struct fixture* fixture = self;
    ++fixture->ticks;
    if (fixture->timers->due(fixture->host, (uint64_t)fixture->ticks, UINT64_MAX, 10) != 0) {
        ++fixture->refused;
    }
    return now + INT64_C(60000000000);
}
static void fixture_stats(void* self, void* sink, queen_stat_fn add) {
    struct fixture* fixture = self;
    add(sink, fixture_text("ticks_total"), fixture->ticks);
    add(sink, fixture_text("answers_total"), fixture->answers);
    add(sink, fixture_text("refused_total"), fixture->refused);
    add(sink, fixture_text("scheduled"), (double)fixture->scheduled);
}

/* What a timers_bad_*.c replaces, it defines after including this file. */
static int32_t FIXTURE_ANSWERED(void* self, uint64_t call, const queen_timer_answer* answer);
static int64_t FIXTURE_TICK(void* self, int64_t now);

static const queen_timers fixture_table = {
    .size = FIXTURE_TABLE_SIZE,
    .create = fixture_create,
    .destroy = fixture_destroy,
    .stop = fixture_stop,
    .scheduled = fixture_scheduled,
    .answered = FIXTURE_ANSWERED,
    .tick = FIXTURE_TICK_IN_TABLE,
    .stats = fixture_stats,
};

#include "fixture_entry.h"
