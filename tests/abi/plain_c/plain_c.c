/* plain_c.c - a candidate source in plain C11, with nothing but abi.h. It remembers the partitions
 * marked last in one fixed ring for all queues and groups, names those of a scope's queue in round
 * 0 and lets the store scan otherwise. It never claims to know that nothing is there.
 *
 * A lock guards the ring; the host is never called while it is held. It is a POSIX mutex, because
 * ThreadSanitizer (g++ 12) does not see C11's mtx_lock and would report races that are none. */
#include <queen/plugin/abi.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 256, MOST_NAME = 255, MOST_KEY = 400 };

struct entry {
    char key[MOST_KEY];
    size_t key_size;
    char name[MOST_NAME];
    size_t name_size;
};

struct plain {
    const queen_host* host;
    pthread_mutex_t lock;
    struct entry ring[RING];
    size_t oldest, count;
    double marked, offered;
};

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUILT_WITH_ASAN QUEEN_BUILD_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define BUILT_WITH_TSAN QUEEN_BUILD_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BUILT_WITH_ASAN QUEEN_BUILD_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define BUILT_WITH_TSAN QUEEN_BUILD_TSAN
#endif
#ifndef BUILT_WITH_ASAN
#define BUILT_WITH_ASAN 0u
#endif
#ifndef BUILT_WITH_TSAN
#define BUILT_WITH_TSAN 0u
#endif

static int same(const char* data, size_t size, queen_str text) {
    return size == text.size && memcmp(data, text.data, size) == 0;
}

static struct entry* at(struct plain* self, size_t i) {
    return &self->ring[(self->oldest + i) % RING];
}

static void* create(const queen_host* host, queen_error* error) {
    struct plain* self = calloc(1, sizeof *self);
    if (self == NULL || pthread_mutex_init(&self->lock, NULL) != 0) {
        free(self);
        error->code = QUEEN_FAILED;
        strcpy(error->message, "out of memory");
        return NULL;
    }
    self->host = host;
    return self;
}

static void destroy(void* raw) {
    struct plain* self = raw;
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static int32_t peek(void* raw, const queen_scope* scope, queen_readiness* out) {
    struct plain* self = raw;
    uint64_t known = 0;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < self->count; ++i) {
        known += (uint64_t)same(at(self, i)->key, at(self, i)->key_size, scope->queue.key);
    }
    pthread_mutex_unlock(&self->lock);
    out->state = known > 0 ? QUEEN_READY : QUEEN_ASK_STORE;
    out->partitions = known;
    out->next_due = INT64_MAX;
    return 0;
}

/* The ring serves all groups, so a name stays in it until it is pushed out. */
static int32_t take(void* raw, const queen_take* take, const queen_name_sink* sink,
                    queen_selection* out) {
    struct plain* self = raw;
    out->pick = QUEEN_PICK_SCAN;
    if (take->round > 0) {
        return 0;
    }
    uint64_t offered = 0;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < self->count && offered < take->limit; ++i) {
        const struct entry* entry = at(self, i);
        if (!same(entry->key, entry->key_size, take->scope.queue.key)) {
            continue;
        }
        const queen_str name = {entry->name, entry->name_size};
        ++offered;
        if (sink->add(sink->self, name, i) != 0) {
            break;
        }
    }
    self->offered += (double)offered;
    pthread_mutex_unlock(&self->lock);
    if (offered > 0) {
        out->pick = QUEEN_PICK_NAMES;
    }
    return 0;
}

static int32_t settle(void* raw, const queen_scope* scope, void* cookie,
                      const queen_verdict* verdicts, size_t count) {
    (void)raw;
    (void)scope;
    (void)cookie;
    (void)verdicts;
    (void)count;
    return 0;
}

static void remember(struct plain* self, queen_str key, queen_str name) {
    for (size_t i = 0; i < self->count; ++i) {
        const struct entry* entry = at(self, i);
        if (same(entry->key, entry->key_size, key) && same(entry->name, entry->name_size, name)) {
            return;
        }
    }
    if (self->count == RING) {
        self->oldest = (self->oldest + 1) % RING;
        --self->count;
    }
    struct entry* entry = at(self, self->count++);
    memcpy(entry->key, key.data, key.size);
    entry->key_size = key.size;
    memcpy(entry->name, name.data, name.size);
    entry->name_size = name.size;
}

static int32_t mark(void* raw, const queen_queue* queue, const queen_str* group, int32_t origin,
                    const queen_mark* marks, size_t count) {
    struct plain* self = raw;
    (void)group;
    (void)origin;
    if (queue->key.size > MOST_KEY) {
        return 0; /* a scan finds it */
    }
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < count; ++i) {
        if (marks[i].partition.size <= MOST_NAME) {
            remember(self, queue->key, marks[i].partition);
            self->marked += 1;
        }
    }
    pthread_mutex_unlock(&self->lock);
    return 0;
}

/* A hint too few costs a scan: whatever is to be forgotten, all goes. */
static int32_t forget(void* raw, queen_str tenant, const queen_str* queue, const queen_str* group) {
    struct plain* self = raw;
    (void)tenant;
    (void)queue;
    (void)group;
    pthread_mutex_lock(&self->lock);
    self->count = 0;
    pthread_mutex_unlock(&self->lock);
    return 0;
}

static void stats(void* raw, void* sink, queen_stat_fn add) {
    struct plain* self = raw;
    pthread_mutex_lock(&self->lock);
    const double known = (double)self->count, marked = self->marked, offered = self->offered;
    pthread_mutex_unlock(&self->lock);
    add(sink, (queen_str){"partitions", 10}, known);
    add(sink, (queen_str){"marked_total", 12}, marked);
    add(sink, (queen_str){"offered_total", 13}, offered);
}

static const queen_candidates table = {
    .size = sizeof(queen_candidates),
    .create = create,
    .destroy = destroy,
    .peek = peek,
    .take = take,
    .settle = settle,
    .mark = mark,
    .forget = forget,
    .stats = stats,
};

static const void* get_factory(const char* id) {
    return strcmp(id, QUEEN_CANDIDATES) == 0 ? &table : NULL;
}

__attribute__((visibility("default"), section(QUEEN_STAMP_SECTION)))
const queen_build_stamp queen_plugin_stamp = {
    .magic = QUEEN_ABI_MAGIC,
    .size = sizeof(queen_build_stamp),
    .abi_major = QUEEN_ABI_MAJOR,
    .abi_minor = QUEEN_CANDIDATES_MINOR,
    .build = BUILT_WITH_ASAN | BUILT_WITH_TSAN,
    .platform = "linux-x86_64",
    .plugin_id = "test.plain_c",
    .plugin_version = "1.0.0",
};

__attribute__((visibility("default"))) const queen_plugin_entry queen_plugin = {
    .size = sizeof(queen_plugin_entry),
    .get_factory = get_factory,
};
