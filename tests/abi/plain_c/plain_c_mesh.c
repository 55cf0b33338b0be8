/* plain_c_mesh.c - a mesh in plain C11, whole: its links are the instances in this process, which
 * hear each other directly. */
#define FIXTURE_ID "test.plain_c_mesh"
#define FIXTURE_EXTENSION QUEEN_MESH
#include "../fixture_common.h"

#include <pthread.h>
#include <stdatomic.h>

struct link {
    const queen_host* host;
    const queen_host_mesh* mesh;
    struct link* next; /* under all_mutex, while started */
    atomic_ullong sent, received;
};

/* Held while others are told, so that nobody hears anything once its stop() has returned. The
 * broker's heard() takes a copy and calls nobody back. */
static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct link* all;
static atomic_int started;

static void* create(const queen_host* host, queen_error* error) {
    struct link* self = calloc(1, sizeof *self);
    if (self == NULL) {
        error->code = QUEEN_FAILED;
        strcpy(error->message, "out of memory");
        return NULL;
    }
    self->host = host;
    self->mesh = host->extension(host, QUEEN_HOST_MESH);
    if (self->mesh == NULL || self->mesh->size < sizeof *self->mesh) {
        error->code = QUEEN_FAILED;
        strcpy(error->message, "this broker has no " QUEEN_HOST_MESH);
        free(self);
        return NULL;
    }
    return self;
}

static void destroy(void* self) {
    free(self);
}

static int32_t start(void* self, queen_error* error) {
    struct link* link = self;
    (void)error;
    pthread_mutex_lock(&all_mutex);
    link->next = all;
    all = link;
    ++started;
    for (struct link* at = all; at != NULL; at = at->next) {
        at->mesh->missed(at->host); /* what one said before the other listened */
    }
    pthread_mutex_unlock(&all_mutex);
    return 0;
}

static void stop(void* self) {
    pthread_mutex_lock(&all_mutex);
    for (struct link** at = &all; *at != NULL; at = &(*at)->next) {
        if (*at == self) {
            *at = (*at)->next;
            --started;
            break;
        }
    }
    pthread_mutex_unlock(&all_mutex);
}

static int32_t listened(void* self) {
    (void)self;
    return started > 1;
}

static int is_started(const struct link* link) {
    for (const struct link* at = all; at != NULL; at = at->next) {
        if (at == link) {
            return 1;
        }
    }
    return 0;
}

static int32_t publish(void* self, const queen_hint* hints, size_t count) {
    struct link* link = self;
    pthread_mutex_lock(&all_mutex);
    if (is_started(link)) {
        for (struct link* at = all; at != NULL; at = at->next) {
            if (at != link) {
                at->mesh->heard(at->host, hints, count);
                ++at->received;
                ++link->sent;
            }
        }
    }
    pthread_mutex_unlock(&all_mutex);
    return 0;
}

static void stats(void* self, void* sink, queen_stat_fn add) {
    struct link* link = self;
    add(sink, fixture_text("sent_total"), (double)link->sent);
    add(sink, fixture_text("received_total"), (double)link->received);
}

static void peers(void* self, void* sink, queen_peer_fn add) {
    struct link* link = self;
    pthread_mutex_lock(&all_mutex);
    if (is_started(link)) {
        for (struct link* at = all; at != NULL; at = at->next) {
            const queen_peer peer = {.address = fixture_text("this process"),
                                     .connected = 1,
                                     .alive = 1,
                                     .sent = link->sent};
            if (at != link) {
                add(sink, &peer);
            }
        }
    }
    pthread_mutex_unlock(&all_mutex);
}

static const queen_mesh fixture_table = {
    .size = sizeof(queen_mesh),
    .create = create,
    .destroy = destroy,
    .start = start,
    .stop = stop,
    .listened = listened,
    .publish = publish,
    .stats = stats,
    .peers = peers,
};

#include "../fixture_entry.h"
