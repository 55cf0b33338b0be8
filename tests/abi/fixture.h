/* tests/abi/fixture.h - a candidate source that does nothing wrong, in plain C11. Each bad_*.c
 * defines the one thing it does wrong and includes this file. It remembers no names: take() offers
 * the two partitions "p1" and "p2" in round 0 and asks for a scan after that. */
#ifndef FIXTURE_MINOR
#define FIXTURE_MINOR QUEEN_CANDIDATES_MINOR
#endif
#include "fixture_common.h"

#ifndef FIXTURE_EXTENSION
#define FIXTURE_EXTENSION QUEEN_CANDIDATES
#endif
#ifndef FIXTURE_TABLE_SIZE
#define FIXTURE_TABLE_SIZE sizeof(queen_candidates)
#endif
#ifndef FIXTURE_CREATE
#define FIXTURE_CREATE fixture_create
#endif
#ifndef FIXTURE_PEEK
#define FIXTURE_PEEK fixture_peek
#endif
#ifndef FIXTURE_TAKE
#define FIXTURE_TAKE fixture_take
#endif
#ifndef FIXTURE_SETTLE
#define FIXTURE_SETTLE fixture_settle
#endif
#ifndef FIXTURE_MARK
#define FIXTURE_MARK fixture_mark
#endif
#ifndef FIXTURE_TAKE_IN_TABLE
#define FIXTURE_TAKE_IN_TABLE FIXTURE_TAKE
#endif
#ifndef FIXTURE_SETTLE_IN_TABLE
#define FIXTURE_SETTLE_IN_TABLE FIXTURE_SETTLE
#endif
#ifndef FIXTURE_MISSED_IN_TABLE
#define FIXTURE_MISSED_IN_TABLE NULL
#endif
#ifndef FIXTURE_TICK_IN_TABLE
#define FIXTURE_TICK_IN_TABLE NULL
#endif
struct fixture {
    const queen_host* host;
    int settled;  /* calls of settle() */
    int verdicts; /* in all of them */
    int marked;
    int forgotten;
};

/* Lets the tests' clock move on. */
static inline void fixture_step(const void* self) {
    fixture_step_of(((const struct fixture*)self)->host);
}

static inline void* fixture_create(const queen_host* host, queen_error* error) {
    struct fixture* self = fixture_new(sizeof *self, error);
    if (self == NULL) {
        return NULL;
    }
    self->host = host;
    return self;
}
static void fixture_destroy(void* self) {
    fixture_log(((struct fixture*)self)->host, "destroyed");
    free(self);
}
static inline int32_t fixture_peek(void* self, const queen_scope* scope, queen_readiness* out) {
    (void)self;
    (void)scope;
    out->state = QUEEN_READY;
    out->partitions = 2;
    return 0;
}
static inline int32_t fixture_take(void* self, const queen_take* take, const queen_name_sink* sink,
                                   queen_selection* out) {
    (void)self;
    out->pick = QUEEN_PICK_SCAN;
    if (take->round == 0) {
        out->pick = QUEEN_PICK_NAMES;
        if (sink->add(sink->self, fixture_text("p1"), 1) == 0) {
            sink->add(sink->self, fixture_text("p2"), 2);
        }
    }
    return 0;
}
static inline int32_t fixture_settle(void* self, const queen_scope* scope, void* cookie,
                                     const queen_verdict* verdicts, size_t count) {
    (void)scope;
    (void)cookie;
    (void)verdicts;
    ++((struct fixture*)self)->settled;
    ((struct fixture*)self)->verdicts += (int)count;
    return 0;
}
static inline int32_t fixture_mark(void* self, const queen_queue* queue, const queen_str* group,
                                   int32_t origin, const queen_mark* marks, size_t count) {
    (void)queue;
    (void)group;
    (void)origin;
    (void)marks;
    ((struct fixture*)self)->marked += (int)count;
    return 0;
}
static int32_t fixture_forget(void* self, queen_str tenant, const queen_str* queue,
                              const queen_str* group) {
    (void)tenant;
    (void)queue;
    (void)group;
    ++((struct fixture*)self)->forgotten;
    return 0;
}
static void fixture_stats(void* self, void* sink, queen_stat_fn add) {
    const struct fixture* fixture = self;
    add(sink, fixture_text("settled"), fixture->settled);
    add(sink, fixture_text("verdicts"), fixture->verdicts);
    add(sink, fixture_text("marked"), fixture->marked);
    add(sink, fixture_text("forgotten"), fixture->forgotten);
}

/* What a bad_*.c replaces, it defines after including this file. */
static void* FIXTURE_CREATE(const queen_host* host, queen_error* error);
static int32_t FIXTURE_PEEK(void* self, const queen_scope* scope, queen_readiness* out);
static int32_t FIXTURE_TAKE(void* self, const queen_take* take, const queen_name_sink* sink,
                            queen_selection* out);
static int32_t FIXTURE_SETTLE(void* self, const queen_scope* scope, void* cookie,
                              const queen_verdict* verdicts, size_t count);
static int32_t FIXTURE_MARK(void* self, const queen_queue* queue, const queen_str* group,
                            int32_t origin, const queen_mark* marks, size_t count);
#ifdef FIXTURE_TICK
static int64_t FIXTURE_TICK(void* self, int64_t now);
#endif

#ifdef FIXTURE_MISSED
static int32_t FIXTURE_MISSED(void* self);
#endif

static const queen_candidates fixture_table = {
    .size = FIXTURE_TABLE_SIZE,
    .create = FIXTURE_CREATE,
    .destroy = fixture_destroy,
    .peek = FIXTURE_PEEK,
    .take = FIXTURE_TAKE_IN_TABLE,
    .settle = FIXTURE_SETTLE_IN_TABLE,
    .mark = FIXTURE_MARK,
    .forget = fixture_forget,
    .tick = FIXTURE_TICK_IN_TABLE,
    .stats = fixture_stats,
    .missed = FIXTURE_MISSED_IN_TABLE,
};

#include "fixture_entry.h"
