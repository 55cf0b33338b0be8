/* tests/abi/fixture.h - a plugin that does nothing wrong, in plain C11. Each bad_*.c defines the
 * one thing it does wrong and includes this file. It remembers no names: take() offers the two
 * partitions "p1" and "p2" in round 0 and asks for a scan after that.
 *
 * The constructor below runs when the library is mapped: a test sees in the environment whether a
 * refused file ever got that far. log("step") is the way a fixture says "time passes now": the
 * tests' host moves its clock. */
#include <queen/plugin/abi.h>

#include <stdlib.h>
#include <string.h>

#ifndef FIXTURE_MAGIC
#define FIXTURE_MAGIC QUEEN_ABI_MAGIC
#endif
#ifndef FIXTURE_STAMP_SIZE
#define FIXTURE_STAMP_SIZE sizeof(queen_build_stamp)
#endif
#ifndef FIXTURE_MAJOR
#define FIXTURE_MAJOR QUEEN_ABI_MAJOR
#endif
#ifndef FIXTURE_MINOR
#define FIXTURE_MINOR QUEEN_CANDIDATES_MINOR
#endif
#ifndef FIXTURE_FLIPPED_BUILD
#define FIXTURE_FLIPPED_BUILD 0u
#endif
#ifndef FIXTURE_PLATFORM
#define FIXTURE_PLATFORM "linux-x86_64"
#endif
#ifndef FIXTURE_EXACT_HOST
#define FIXTURE_EXACT_HOST ""
#endif
#ifndef FIXTURE_ID
#define FIXTURE_ID "test.fixture"
#endif
#ifndef FIXTURE_VERSION
#define FIXTURE_VERSION "1.0.0"
#endif
#ifndef FIXTURE_ENTRY
#define FIXTURE_ENTRY queen_plugin
#endif
#ifndef FIXTURE_ENTRY_SIZE
#define FIXTURE_ENTRY_SIZE sizeof(queen_plugin_entry)
#endif
#ifndef FIXTURE_EXTENSION
#define FIXTURE_EXTENSION QUEEN_CANDIDATES
#endif
#ifndef FIXTURE_TABLE_SIZE
#define FIXTURE_TABLE_SIZE sizeof(queen_candidates)
#endif
#ifndef FIXTURE_GET_FACTORY
#define FIXTURE_GET_FACTORY fixture_factory
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
#ifndef FIXTURE_TICK_IN_TABLE
#define FIXTURE_TICK_IN_TABLE NULL
#endif
#ifndef FIXTURE_OPTION_COUNT
#define FIXTURE_OPTION_COUNT 0
#define FIXTURE_OPTION_ROWS NULL
#endif

#define FIXTURE_VISIBLE __attribute__((visibility("default")))

/* g++ and clang name their sanitizers differently. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIXTURE_ASAN QUEEN_BUILD_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define FIXTURE_TSAN QUEEN_BUILD_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FIXTURE_ASAN QUEEN_BUILD_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define FIXTURE_TSAN QUEEN_BUILD_TSAN
#endif
#ifndef FIXTURE_ASAN
#define FIXTURE_ASAN 0u
#endif
#ifndef FIXTURE_TSAN
#define FIXTURE_TSAN 0u
#endif

FIXTURE_VISIBLE extern const queen_build_stamp queen_plugin_stamp;
__attribute__((section(QUEEN_STAMP_SECTION))) const queen_build_stamp queen_plugin_stamp = {
    FIXTURE_MAGIC,
    FIXTURE_STAMP_SIZE,
    FIXTURE_MAJOR,
    FIXTURE_MINOR,
    (FIXTURE_ASAN | FIXTURE_TSAN) ^ FIXTURE_FLIPPED_BUILD,
    FIXTURE_PLATFORM,
    FIXTURE_EXACT_HOST,
    FIXTURE_ID,
    FIXTURE_VERSION,
};

__attribute__((constructor)) static void fixture_is_mapped(void) {
    setenv("QUEEN_FIXTURE_RAN", FIXTURE_ID, 1);
}

struct fixture {
    const queen_host* host;
    int settled;  /* calls of settle() */
    int verdicts; /* in all of them */
    int marked;
    int forgotten;
};

static inline queen_str fixture_text(const char* text) {
    const queen_str out = {text, strlen(text)};
    return out;
}

/* Lets the tests' clock move on. */
static inline void fixture_step(const void* self) {
    const queen_host* host = ((const struct fixture*)self)->host;
    host->log(host, QUEEN_LOG_DEBUG, fixture_text("step"));
}

static inline void* fixture_create(const queen_host* host, queen_error* error) {
    struct fixture* self = calloc(1, sizeof *self);
    if (self == NULL) {
        error->code = QUEEN_FAILED;
        return NULL;
    }
    self->host = host;
    return self;
}
static void fixture_destroy(void* self) {
    const queen_host* host = ((struct fixture*)self)->host;
    host->log(host, QUEEN_LOG_DEBUG, fixture_text("destroyed"));
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
};

static inline const void* fixture_factory(const char* id) {
    return strcmp(id, FIXTURE_EXTENSION) == 0 ? &fixture_table : NULL;
}

FIXTURE_VISIBLE extern const queen_plugin_entry FIXTURE_ENTRY;
const queen_plugin_entry FIXTURE_ENTRY = {
    FIXTURE_ENTRY_SIZE,
    FIXTURE_OPTION_COUNT,
    FIXTURE_OPTION_ROWS,
    FIXTURE_GET_FACTORY,
};
