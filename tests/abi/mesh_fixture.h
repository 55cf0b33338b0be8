/* tests/abi/mesh_fixture.h - a mesh that reaches nobody and does nothing wrong, in plain C11. Each
 * mesh_bad_*.c defines the one thing it does wrong and includes this file. It counts what it is
 * told, and writes its life into the log. */
#ifndef FIXTURE_ID
#define FIXTURE_ID "test.mesh"
#endif
#include "fixture_common.h"

#include <stdatomic.h>

#ifndef FIXTURE_EXTENSION
#define FIXTURE_EXTENSION QUEEN_MESH
#endif
#ifndef FIXTURE_TABLE_SIZE
#define FIXTURE_TABLE_SIZE sizeof(queen_mesh)
#endif
#ifndef FIXTURE_CREATE
#define FIXTURE_CREATE fixture_create
#endif
#ifndef FIXTURE_START
#define FIXTURE_START fixture_start
#endif
#ifndef FIXTURE_PUBLISH
#define FIXTURE_PUBLISH fixture_publish
#endif
#ifndef FIXTURE_PUBLISH_IN_TABLE
#define FIXTURE_PUBLISH_IN_TABLE FIXTURE_PUBLISH
#endif
#ifndef FIXTURE_STATS
#define FIXTURE_STATS fixture_stats
#endif
#ifndef FIXTURE_PEERS
#define FIXTURE_PEERS fixture_peers
#endif

struct fixture {
    const queen_host* host;
    const queen_host_mesh* mesh;
    atomic_int published; /* hints */
    atomic_int listened;  /* calls */
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
    self->mesh = host->extension(host, QUEEN_HOST_MESH);
    return self;
}
static void fixture_destroy(void* self) {
    fixture_say(self, "destroyed");
    free(self);
}
static inline int32_t fixture_start(void* self, queen_error* error) {
    (void)error;
    fixture_say(self, "started");
    return 0;
}
static void fixture_stop(void* self) {
    fixture_say(self, "stopped");
}
static int32_t fixture_listened(void* self) {
    ++((struct fixture*)self)->listened;
    return 1;
}
static inline int32_t fixture_publish(void* self, const queen_hint* hints, size_t count) {
    (void)hints;
    ((struct fixture*)self)->published += (int)count;
    return 0;
}
static inline void fixture_stats(void* self, void* sink, queen_stat_fn add) {
    struct fixture* fixture = self;
    add(sink, fixture_text("published_total"), fixture->published);
    add(sink, fixture_text("listened_total"), fixture->listened);
}
static inline void fixture_peers(void* self, void* sink, queen_peer_fn add) {
    const queen_peer peer = {
        .address = fixture_text("10.0.0.2:6633"),
        .server_id = fixture_text("b"),
        .connected = 1,
        .alive = 1,
        .silent = 5,
        .sent = 1,
        .received = 2,
        .dropped = 3,
        .queued = 4,
    };
    (void)self;
    add(sink, &peer);
}

/* What a mesh_bad_*.c replaces, it defines after including this file. */
static void* FIXTURE_CREATE(const queen_host* host, queen_error* error);
static int32_t FIXTURE_START(void* self, queen_error* error);
static int32_t FIXTURE_PUBLISH(void* self, const queen_hint* hints, size_t count);
static void FIXTURE_STATS(void* self, void* sink, queen_stat_fn add);
static void FIXTURE_PEERS(void* self, void* sink, queen_peer_fn add);

static const queen_mesh fixture_table = {
    .size = FIXTURE_TABLE_SIZE,
    .create = FIXTURE_CREATE,
    .destroy = fixture_destroy,
    .start = FIXTURE_START,
    .stop = fixture_stop,
    .listened = fixture_listened,
    .publish = FIXTURE_PUBLISH_IN_TABLE,
    .stats = FIXTURE_STATS,
    .peers = FIXTURE_PEERS,
};

#include "fixture_entry.h"
