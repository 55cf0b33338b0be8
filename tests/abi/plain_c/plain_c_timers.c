/* plain_c_timers.c - a driver of timers in plain C11, whole: one call at a time, one segment at a
 * time, so that a segment that cannot be fired holds nobody up but itself.
 *
 *     tick --due--> something is --claim--> batch --fire--> next segment ... --release--> claim
 *                                            |  ^
 *           it will never work: --fail, counted, file what is exhausted--+
 *           the store is away or paused: --fail the rest, not counted--> idle
 *
 * The lock is never held while the host is called: its answer may come inside of the call. */
#define FIXTURE_ID "test.plain_c_timers"
#define FIXTURE_EXTENSION QUEEN_TIMERS
#include "../fixture_common.h"

#include <pthread.h>

#define SECOND INT64_C(1000000000)
#define LEASE (10 * SECOND)
enum { ROWS = 200, ROWS_PER_TENANT = 50, MOST_ATTEMPTS = 5, MOST_SEGMENTS = ROWS };

enum step { IDLE, DUE, CLAIM, FIRE, FAIL_ONE, SKIP_ONE, FILE_IT, FAIL_REST };

struct driver {
    const queen_host* host;
    const queen_host_timers* timers;
    pthread_mutex_t lock;
    pthread_cond_t quiet; /* no call into the host is being made */
    int calls;            /* being made right now */
    int stopped;
    enum step step; /* under way, or next when act() is about to run */
    uint64_t call;  /* the one whose answer is awaited */
    uint64_t batch;
    uint32_t segments, at;
    uint64_t fired, failed;
};

static void* create(const queen_host* host, queen_error* error) {
    struct driver* self = calloc(1, sizeof *self);
    if (self == NULL) {
        error->code = QUEEN_FAILED;
        return NULL;
    }
    self->host = host;
    self->timers = host->extension(host, QUEEN_HOST_TIMERS);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->quiet, NULL);
    return self;
}

static void destroy(void* raw) {
    struct driver* self = raw;
    pthread_cond_destroy(&self->quiet);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

/* Forgets the batch and waits for a tick. The lock is held, and is not any more afterwards. */
static void rest(struct driver* self, int64_t for_how_long) {
    const uint64_t batch = self->batch;
    self->batch = 0;
    self->step = IDLE;
    const int stopped = self->stopped;
    pthread_mutex_unlock(&self->lock);
    if (batch != 0) {
        self->timers->release(self->host, batch);
    }
    if (!stopped) {
        self->timers->tick_at(self->host, self->host->now(self->host) + for_how_long);
    }
}

static int32_t ask(const struct driver* self, enum step step, uint64_t call, uint64_t batch,
                   uint32_t at, uint32_t segments) {
    const queen_host* host = self->host;
    const queen_str words = fixture_text(step == FAIL_ONE ? "it will never work" : "not now");
    uint32_t left[MOST_SEGMENTS];
    uint32_t count = 0;
    for (uint32_t i = at; i < segments && count < MOST_SEGMENTS; ++i) {
        left[count++] = i;
    }
    switch (step) {
    case IDLE:
        break;
    case DUE:
        return self->timers->due(host, call, UINT64_MAX, 1);
    case CLAIM:
        return self->timers->claim(host, call, UINT64_MAX, LEASE, ROWS, ROWS_PER_TENANT);
    case FIRE:
        return self->timers->fire(host, call, batch, &at, 1);
    case FAIL_ONE:
        return self->timers->fail(host, call, batch, &at, 1, SECOND, words, 1, MOST_ATTEMPTS);
    case SKIP_ONE:
        return self->timers->fail(host, call, batch, &at, 1, SECOND, words, 0, MOST_ATTEMPTS);
    case FILE_IT:
        return self->timers->dead_letter(host, call, batch, MOST_ATTEMPTS);
    case FAIL_REST:
        return self->timers->fail(host, call, batch, left, count, SECOND, words, 0, MOST_ATTEMPTS);
    }
    return 1;
}

/* Does the next step. The lock is held, and is not any more afterwards. */
static void act(struct driver* self) {
    if (self->stopped) {
        rest(self, SECOND);
        return;
    }
    const enum step step = self->step;
    const uint64_t call = ++self->call, batch = self->batch;
    const uint32_t at = self->at, segments = self->segments;
    ++self->calls;
    pthread_mutex_unlock(&self->lock);
    const int32_t refused = ask(self, step, call, batch, at, segments);
    pthread_mutex_lock(&self->lock);
    if (--self->calls == 0) {
        pthread_cond_broadcast(&self->quiet);
    }
    if (refused != 0) {
        rest(self, SECOND);
    } else {
        pthread_mutex_unlock(&self->lock);
    }
}

static int32_t answered(void* raw, uint64_t call, const queen_timer_answer* answer) {
    struct driver* self = raw;
    const int fine = answer->outcome == QUEEN_TIMER_OK;
    const int never =
        answer->outcome == QUEEN_TIMER_PERMANENT || answer->outcome == QUEEN_TIMER_CONFIG;
    int64_t pause = SECOND;
    pthread_mutex_lock(&self->lock);
    if (call != self->call || self->step == IDLE) {
        pthread_mutex_unlock(&self->lock);
        return 1; /* of a call that it never made */
    }
    enum step next = IDLE;
    int done = 0; /* with this segment */
    switch (self->step) {
    case IDLE:
        break;
    case DUE:
        if (fine && answer->due > 0) {
            next = CLAIM;
        } else if (fine && answer->next_in < pause) {
            pause = answer->next_in > 1000000 ? answer->next_in : 1000000;
        }
        break;
    case CLAIM:
        if (fine && answer->batch != 0) {
            self->batch = answer->batch;
            self->segments = (uint32_t)answer->segment_count;
            self->at = 0;
            next = FIRE;
        }
        break;
    case FIRE:
        self->fired += fine;
        done = fine;
        next = never ? FAIL_ONE : answer->outcome == QUEEN_TIMER_CONTENDED ? SKIP_ONE : FAIL_REST;
        break;
    case FAIL_ONE:
        ++self->failed;
        done = !(fine && answer->exhausted > 0);
        next = FILE_IT;
        break;
    case SKIP_ONE:
    case FILE_IT:
        done = 1;
        break;
    case FAIL_REST:
        break;
    }
    if (done) {
        next = ++self->at < self->segments ? FIRE : CLAIM;
    }
    if (next == IDLE) {
        rest(self, pause);
        return 0;
    }
    self->step = next;
    const uint64_t over = next == CLAIM ? self->batch : 0;
    if (over != 0) {
        self->batch = 0;
        pthread_mutex_unlock(&self->lock);
        self->timers->release(self->host, over);
        pthread_mutex_lock(&self->lock);
    }
    act(self);
    return 0;
}

static int32_t scheduled(void* raw, int64_t earliest) {
    struct driver* self = raw;
    self->timers->tick_at(self->host, earliest);
    return 0;
}

static int64_t tick(void* raw, int64_t now) {
    struct driver* self = raw;
    pthread_mutex_lock(&self->lock);
    if (self->step == IDLE && !self->stopped) {
        self->step = DUE;
        act(self);
    } else {
        pthread_mutex_unlock(&self->lock);
    }
    return now + SECOND;
}

static void stop(void* raw) {
    struct driver* self = raw;
    pthread_mutex_lock(&self->lock);
    self->stopped = 1;
    while (self->calls > 0) {
        pthread_cond_wait(&self->quiet, &self->lock);
    }
    pthread_mutex_unlock(&self->lock);
}

static void stats(void* raw, void* sink, queen_stat_fn add) {
    struct driver* self = raw;
    pthread_mutex_lock(&self->lock);
    const double fired = (double)self->fired, failed = (double)self->failed;
    pthread_mutex_unlock(&self->lock);
    add(sink, fixture_text("fired_total"), fired);
    add(sink, fixture_text("failed_total"), failed);
}

static const queen_timers fixture_table = {
    .size = sizeof(queen_timers),
    .create = create,
    .destroy = destroy,
    .stop = stop,
    .scheduled = scheduled,
    .answered = answered,
    .tick = tick,
    .stats = stats,
};

#include "../fixture_entry.h"
