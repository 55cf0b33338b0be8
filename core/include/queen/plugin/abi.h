/* queen/plugin/abi.h - the binary contract between the broker and a plugin.
 *
 * Plain C11, no includes beyond the two below: a vendor's compiler, standard library and exception
 * model never have to match the broker's. candidates.hpp, mesh.hpp, timers.hpp and entry.hpp are
 * the C++ face of it.
 *
 * Threads. Every function pointer carries one tag:
 *   [main]    start-up and shutdown, never concurrent with anything else of the same plugin
 *   [worker]  any worker thread, concurrent with itself
 *   [ticker]  one thread, concurrent with [worker]
 *   [any]     any of them
 * The network thread never calls a plugin. No call blocks on I/O; the host measures each call
 * against a budget of 1 ms of the processor, or 1 ms for each thousand marks or rows that it is
 * given, and against a hundred times that by the clock.
 *
 * Memory. The callee reads its arguments until it returns and copies what it keeps. Only `cookie`
 * is handed over: made in take(), given back exactly once in settle().
 *
 * Times are int64 nanoseconds of the host's steady clock. Names are UTF-8 without NUL and are not
 * terminated: use `size`.
 *
 * Growth. A struct that has `size` grows at its end, inside one ABI major; read a field only when
 * it lies inside `size`. Views and array elements (everything without `size`) are frozen. A changed
 * meaning needs a new extension id ("queen.candidates/2"); a changed layout a new QUEEN_ABI_MAJOR.
 *
 * Results. int32_t: 0 is success; anything else is a fault that the host counts and survives.
 */
#ifndef QUEEN_PLUGIN_ABI_H
#define QUEEN_PLUGIN_ABI_H
#include <stddef.h>
#include <stdint.h>

#define QUEEN_ABI_MAGIC 0x4E455551u /* the bytes "QUEN" on a little-endian machine */
#define QUEEN_ABI_MAJOR 1u
#define QUEEN_ABI_MINOR 1u

/* The lowest minor that has all of a kind: what a stamp says when its plugin uses no more. */
#define QUEEN_CANDIDATES_MINOR 0u
#define QUEEN_MESH_MINOR 1u
#define QUEEN_TIMERS_MINOR 1u

#define QUEEN_BUILD_ASAN 0x1u
#define QUEEN_BUILD_TSAN 0x2u

#define QUEEN_ENTRY_SYMBOL "queen_plugin"
#define QUEEN_STAMP_SECTION ".queen.stamp"

/* Read from the file, before the library is mapped: nothing of a refused plugin ever runs.
 * This layout is frozen for good. */
typedef struct queen_build_stamp {
    uint32_t magic;
    uint32_t size; /* sizeof(queen_build_stamp) as the plugin saw it */
    uint16_t abi_major;
    uint16_t abi_minor;      /* lowest host minor that has all this plugin uses */
    uint32_t build;          /* QUEEN_BUILD_*; must equal the host's */
    char platform[32];       /* "linux-x86_64" */
    char exact_host[32];     /* "" = stable ABI; else the one host version that may load it */
    char plugin_id[48];      /* reverse-DNS for vendors: "com.acme.priority" */
    char plugin_version[16]; /* the plugin's own */
} queen_build_stamp;

typedef struct queen_str {
    const char* data;
    size_t size;
} queen_str;

typedef struct queen_uuid {
    uint8_t bytes[16]; /* all zero: not known */
} queen_uuid;

typedef struct queen_error {
    uint32_t size;
    int32_t code;      /* 0 = ok, else a queen_error_code */
    char option[48];   /* the option at fault, or ""; the host adds file:line:column */
    char message[256]; /* one sentence, no trailing newline */
} queen_error;

enum queen_error_code { QUEEN_OK = 0, QUEEN_FAILED = 1, QUEEN_BAD_OPTION = 2 };

enum queen_option_type {
    QUEEN_OPTION_INT = 1,
    QUEEN_OPTION_DURATION = 2, /* YAML "30s", "250ms"; a bare number is an error */
    QUEEN_OPTION_STRING = 3,
    QUEEN_OPTION_BOOL = 4
};

/* One row of a plugin's option table. The host checks YAML against it before any instance exists.
 */
typedef struct queen_option {
    const char* name;
    int32_t type;         /* queen_option_type */
    int32_t reserved;     /* 0 */
    const char* unit;     /* "partitions", "ns"; "" for none */
    const char* fallback; /* YAML text of the default; NULL = the option is required */
    int64_t min, max;     /* inclusive, in `unit`; durations in ns; ignored for strings and bools */
    const char* doc;      /* one line */
    const char* env;      /* environment variable that overrides YAML, or NULL */
    const char* inherits; /* core setting used when the option is absent, or NULL */
} queen_option;

enum queen_log_level { QUEEN_LOG_ERROR = 1, QUEEN_LOG_WARNING, QUEEN_LOG_INFO, QUEEN_LOG_DEBUG };

/* What the broker offers to every plugin. One queen_host per instance; valid until destroy
 * returns. */
typedef struct queen_host {
    uint32_t size;
    uint32_t reserved;
    void* self;
    int64_t (*now)(const struct queen_host* host); /* [any] steady clock, never goes back */
    void (*log)(const struct queen_host* host, int32_t level, queen_str text); /* [any] */
    /* [main] effective value of an option; non-zero when there is no such option of that type.
     * Durations are int64 ns, bools 0 or 1. */
    int32_t (*option_int)(const struct queen_host* host, const char* name, int64_t* out);
    int32_t (*option_str)(const struct queen_host* host, const char* name, queen_str* out);
    /* [any] NULL when this host does not have it. */
    const void* (*extension)(const struct queen_host* host, const char* id);
} queen_host;

typedef struct queen_plugin_entry {
    uint32_t size;
    uint32_t option_count;
    const queen_option* options; /* data, so that YAML is checked before any code runs */
    /* [any] e.g. QUEEN_CANDIDATES; NULL when this plugin is not of that kind. It is of one. */
    const void* (*get_factory)(const char* extension_id);
} queen_plugin_entry;

/* ---- candidates: where a pop's partitions come from --------------------------------------- */

#define QUEEN_CANDIDATES "queen.candidates/1"
#define QUEEN_HOST_CANDIDATES "queen.host.candidates/1"

/* `key` is tenant 0x1f name: byte for byte the key of the wake gate. */
typedef struct queen_queue {
    queen_str key, tenant, name;
} queen_queue;

typedef struct queen_scope {
    queen_queue queue;
    queen_str group;
} queen_scope;

enum queen_ready_state {
    QUEEN_NOTHING = 0,  /* nothing pending: the host parks without a statement */
    QUEEN_READY = 1,    /* take() has something to offer */
    QUEEN_COLD = 2,     /* knows nothing yet: take() will answer QUEEN_PICK_SCAN */
    QUEEN_ASK_STORE = 3 /* cannot tell: the host probes the store, once per scope */
};

typedef struct queen_readiness {
    int32_t state; /* queen_ready_state */
    int32_t reserved;
    uint64_t partitions; /* estimates, biased low; 0 when not known */
    uint64_t messages;
    int64_t next_due; /* steady ns at which something may become ready; INT64_MAX: not known */
} queen_readiness;

typedef struct queen_take {
    queen_scope scope;
    uint32_t round;      /* 0 first; the host asks again, at most 4 rounds in one pop */
    uint32_t partitions; /* most partitions the pop claims */
    uint64_t messages;   /* most messages the pop delivers */
    uint64_t limit;      /* most names the host accepts: clamp(8 x partitions, 16, 256) */
} queen_take;

/* Valid during take() only. A name offered twice, or beyond the limit, is ignored and counted. */
typedef struct queen_name_sink {
    void* self;
    int32_t (*add)(void* self, queen_str partition, uint64_t token); /* 0: room for more */
} queen_name_sink;

enum queen_pick {
    QUEEN_PICK_NONE = 0,  /* nothing to offer; ends the rounds */
    QUEEN_PICK_NAMES = 1, /* claim among the names given to the sink */
    QUEEN_PICK_SCAN = 2   /* let the store look for candidates itself */
};

#define QUEEN_HOLDS_WINDOW 0x1u /* the source debounced windowBuffer for these names itself */

typedef struct queen_selection {
    int32_t pick; /* queen_pick */
    uint32_t flags;
    int64_t window; /* with QUEEN_HOLDS_WINDOW: the windowBuffer it held for, ns */
    void*
        cookie; /* given back exactly once in settle(), whatever becomes of the pop; may be NULL */
} queen_selection;

enum queen_verdict_kind {
    QUEEN_TOOK_LEASED = 1, /* delivered under a lease until `until` */
    QUEEN_TOOK_ACKED = 2,  /* delivered and committed */
    QUEEN_EMPTY = 3,       /* nothing deliverable */
    QUEEN_LEASED = 4,      /* somebody else holds it until `until` */
    QUEEN_REQUEUE = 5      /* not evaluated: the pop was full, failed or died */
};

typedef struct queen_verdict {
    uint64_t token; /* as offered; 0 for partitions the store found itself */
    queen_str partition;
    queen_uuid partition_id; /* zero when the store did not say */
    int32_t kind;            /* queen_verdict_kind */
    int32_t drained;         /* 1: the claim reached the partition's end */
    uint64_t frames;
    int64_t until; /* steady ns; 0 when it does not apply */
} queen_verdict;

enum queen_origin {
    QUEEN_ORIGIN_PUSH = 1,
    QUEEN_ORIGIN_TRANSACTION = 2, /* also dead-letter replay */
    QUEEN_ORIGIN_PEER = 3,
    QUEEN_ORIGIN_TIMER = 4
};

typedef struct queen_mark {
    queen_str partition;
    queen_uuid partition_id; /* zero when not known */
    uint64_t frames;
} queen_mark;

typedef struct queen_queue_config {
    int64_t delay;   /* delayedProcessing, ns */
    int64_t window;  /* windowBuffer, ns */
    int64_t read_at; /* steady ns at which the store was asked */
} queen_queue_config;

typedef struct queen_reseed_row {
    queen_str partition;
    queen_uuid partition_id;
} queen_reseed_row;

#define QUEEN_RESEED_ENOUGH 2 /* what reseed_page() answers when it needs no more rows */
#define QUEEN_MISSED_FORGET 2 /* what missed() answers when the source would rather begin anew */

typedef void (*queen_stat_fn)(void* self, queen_str name, double value);

/* What the host gives to candidate sources. */
typedef struct queen_host_candidates {
    uint32_t size;
    uint32_t reserved;
    /* [any, no plugin lock held] wakes pops parked on the queue; `group` NULL means all groups. */
    void (*wake)(const queen_host* host, const queen_queue* queue, const queen_str* group,
                 uint64_t ready);
    /* [any] returns at once; the host walks the partitions on a worker: configured(),
     * reseed_page() per page, then exactly one reseed_done(). A page covers up to 10,000 partitions
     * and has a row for each that may have something, so perhaps none; more than one page says that
     * the queue is large. window: only partitions written at most that many ns ago, 0 = all. */
    void (*reseed)(const queen_host* host, const queen_scope* scope, uint64_t ticket,
                   int64_t window);
    /* [any] pulls the next tick() forward. */
    void (*tick_at)(const queen_host* host, int64_t when);
} queen_host_candidates;

/* The first five are required; the rest may be NULL. */
typedef struct queen_candidates {
    uint32_t size;
    uint32_t reserved;
    void* (*create)(const queen_host* host, queen_error* error); /* [main] NULL on failure */
    /* [main, or the worker that settles last] no other call of this instance runs or follows */
    void (*destroy)(void* self);
    /* [worker] creates nothing, changes nothing. */
    int32_t (*peek)(void* self, const queen_scope* scope, queen_readiness* out);
    /* [worker] */
    int32_t (*take)(void* self, const queen_take* take, const queen_name_sink* sink,
                    queen_selection* out);
    /* [worker] exactly once per successful take() that left a cookie or offered names. A name
     * without a verdict was not evaluated: as QUEEN_REQUEUE. */
    int32_t (*settle)(void* self, const queen_scope* scope, void* cookie,
                      const queen_verdict* verdicts, size_t count);
    /* [worker] after the commit; `group` NULL means every group. */
    int32_t (*mark)(void* self, const queen_queue* queue, const queen_str* group, int32_t origin,
                    const queen_mark* marks, size_t count);
    /* [worker] a lease ended; covered: the whole batch was completed. */
    int32_t (*released)(void* self, const queen_queue* queue, queen_str group,
                        const queen_uuid* partition_id, int32_t covered);
    /* [worker] this partition of the queue has this id. */
    int32_t (*learn)(void* self, const queen_queue* queue, queen_str partition,
                     const queen_uuid* partition_id);
    /* [worker] drop what is known; `queue` or `group` NULL means any. */
    int32_t (*forget)(void* self, queen_str tenant, const queen_str* queue, const queen_str* group);
    /* [worker] */
    int32_t (*configured)(void* self, const queen_queue* queue, const queen_queue_config* config);
    /* [worker] QUEEN_RESEED_ENOUGH ends the walk without being a fault; any other non-zero is one,
     * and ends it too. */
    int32_t (*reseed_page)(void* self, const queen_scope* scope, uint64_t ticket,
                           const queen_reseed_row* rows, size_t count);
    /* [worker] */
    int32_t (*reseed_done)(void* self, const queen_scope* scope, uint64_t ticket, int32_t complete);
    /* [ticker] returns when it wants to be called next, INT64_MAX for never. */
    int64_t (*tick)(void* self, int64_t now);
    /* [any] */
    void (*stats)(void* self, void* sink, queen_stat_fn add);
    /* [worker] marks of other brokers may have been lost, for no scope in particular: look again,
     * soon, wherever "nothing" was answered. QUEEN_MISSED_FORGET is no fault; it, a fault, and NULL
     * have the host drop what is known, scope by scope as pops come to them. */
    int32_t (*missed)(void* self);
} queen_candidates;

/* ---- mesh: how brokers over one database hint each other ---------------------------------- */

#define QUEEN_MESH "queen.mesh/1"
#define QUEEN_HOST_MESH "queen.host.mesh/1"
#define QUEEN_HOST_DATABASE "queen.host.database/1"

enum queen_hint_kind {
    QUEEN_HINT_STORED = 1,     /* messages were stored in `partition` */
    QUEEN_HINT_MOVED = 2,      /* cursors of `group` were moved or deleted; partition empty: all */
    QUEEN_HINT_CONFIGURED = 3, /* the queue has other settings */
    QUEEN_HINT_DELETED = 4,    /* the queue was deleted */
    QUEEN_HINT_SWITCHED = 5    /* a switch of all brokers was set: `subject` names it */
};

/* One thing that other brokers may want to look at. Never the truth: whoever hears it looks in the
 * database. Names that do not apply are empty. */
typedef struct queen_hint {
    int32_t kind;     /* queen_hint_kind */
    int32_t enabled;  /* QUEEN_HINT_SWITCHED: what it was set to */
    queen_str tenant; /* uuid text; empty from a peer that did not say: every tenant's */
    queen_str queue;
    queen_str partition;
    queen_str group;
    /* QUEEN_HINT_SWITCHED: "maintenance" (pushes), "pop_maintenance", "timers_schedule",
     * "timers_fire"; others may come, and are carried like these. */
    queen_str subject;
} queen_hint;

/* What a mesh knows of another broker. Views are valid during the call. */
typedef struct queen_peer {
    queen_str address;                /* as configured, or as it came; may repeat */
    queen_str server_id;              /* empty until it said hello */
    int32_t connected;                /* 1: hints can be sent to it */
    int32_t alive;                    /* 1: it was heard of within the dead threshold */
    int64_t silent;                   /* ns since it was heard of last; INT64_MAX: never */
    uint64_t sent, received, dropped; /* frames */
    uint64_t queued;                  /* frames waiting to be sent */
} queen_peer;

typedef void (*queen_peer_fn)(void* self, const queen_peer* peer);

/* What the host gives to a mesh. */
typedef struct queen_host_mesh {
    uint32_t size;
    uint32_t reserved;
    /* [any, the mesh's own threads too] hints of a peer; takes a copy and returns at once. Not
     * before start() is called, not after stop() has returned. */
    void (*heard)(const queen_host* host, const queen_hint* hints, size_t count);
    /* [any, the mesh's own threads too] hints of peers may have been lost: a link on which they
     * come was made, for the first time or again, or what had come was dropped. Returns at once,
     * and costs the broker a look at the database: say it when it is so, not for each hint. From
     * start() to stop(), as heard(). */
    void (*missed)(const queen_host* host);
} queen_host_mesh;

/* For plugins that open connections of their own to the broker's database. */
typedef struct queen_host_database {
    uint32_t size;
    uint32_t reserved;
    /* [any] connection string for libpq, with what it takes to log in; valid until destroy
     * returns. Never write it to a log. */
    queen_str (*conninfo)(const queen_host* host);
} queen_host_database;

/* All but stats and peers are required. */
typedef struct queen_mesh {
    uint32_t size;
    uint32_t reserved;
    void* (*create)(const queen_host* host, queen_error* error); /* [main] NULL on failure */
    void (*destroy)(void* self); /* [main] after stop(); no other call runs or follows */
    /* [main] once, when the broker is ready to hear. A port that is taken is no failure: it is
     * logged and counted, and the broker goes on without peers. Non-zero stops the boot, and no
     * stop() follows. */
    int32_t (*start)(void* self, queen_error* error);
    /* [main] once, perhaps while [worker] calls run; ends the mesh's threads. */
    void (*stop)(void* self);
    /* [worker] non-zero when hints would go anywhere. Takes no lock: it is asked for each push. */
    int32_t (*listened)(void* self);
    /* [worker] queues hints for every peer, or drops and counts them; never waits. */
    int32_t (*publish)(void* self, const queen_hint* hints, size_t count);
    void (*stats)(void* self, void* sink, queen_stat_fn add); /* [any] */
    void (*peers)(void* self, void* sink, queen_peer_fn add); /* [any] */
} queen_mesh;

/* ---- timers: when messages that wait for their time are put into the log -------------------- */

#define QUEEN_TIMERS "queen.timers/1"
#define QUEEN_HOST_TIMERS "queen.host.timers/1"

#define QUEEN_TIMER_SHARDS 64u  /* for good: shards spread contention, nobody owns one */
#define QUEEN_TIMER_BATCHES 16u /* that a driver has at once, claims under way among them */

/* What became of a call into the store. */
enum queen_timer_outcome {
    QUEEN_TIMER_OK = 0,
    QUEEN_TIMER_TRANSIENT = 1, /* the database was away, busy or cut the call off: nothing counts */
    QUEEN_TIMER_PERMANENT = 2, /* it would fail again: counts as an attempt of what was fired */
    QUEEN_TIMER_CONFIG = 3,    /* as permanent, and the schema is at fault (SQLSTATE class 42) */
    QUEEN_TIMER_PAUSED = 4,    /* firing is switched off: nothing was done */
    QUEEN_TIMER_CONTENDED = 5  /* others were in the way of this call: nothing counts, and what is
                                * for another destination may go */
};

enum queen_timer_result {
    QUEEN_TIMER_FIRED = 1,     /* in the log, and its rows are gone, in one transaction */
    QUEEN_TIMER_DUPLICATE = 2, /* was in the log already; its rows are gone */
    QUEEN_TIMER_STALE = 3      /* a row was cancelled or claimed by another: released, not fired */
};

/* Claimed rows of one destination that become one segment of the log. */
typedef struct queen_timer_segment {
    queen_str tenant;
    uint32_t rows;
    int32_t attempts; /* the most of its rows */
    uint64_t bytes;   /* of the packed segment; 0: it cannot be packed, and fails */
    int64_t late;     /* ns, the most of its rows */
} queen_timer_segment;

/* The answer to one call of queen_host_timers. What does not belong to that call is 0. */
typedef struct queen_timer_answer {
    uint32_t size;
    int32_t outcome; /* queen_timer_outcome */
    queen_str error; /* what the store said; empty when OK */
    /* due */
    int64_t next_in; /* ns until something becomes due, negative: since; INT64_MAX: no timers */
    uint64_t due;    /* no more than `cap` */
    int64_t late;    /* ns, of the oldest */
    int32_t capped;  /* 1: more are due than were counted */
    int32_t reserved;
    /* claim: `batch` names the rows until release() */
    uint64_t batch; /* 0: nothing was claimed */
    const queen_timer_segment* segments;
    size_t segment_count;
    /* fire: by segment asked for */
    const int32_t* results; /* queen_timer_result */
    size_t result_count;
    /* fail, dead_letter */
    uint64_t rows;      /* that were handed back, or filed */
    uint64_t exhausted; /* fail: rows whose attempts are used up; dead_letter files them */
} queen_timer_answer;

/* The store, for a driver. Every call returns at once; its answer comes as one answered(call) on a
 * worker, perhaps before the call has returned. Non-zero: the broker stops, or the call makes no
 * sense (a batch or segment that the driver does not have, one batch too many, a time below 0),
 * which is counted; no answer comes. Times are judged by the database's clock alone. Bit n of
 * `shards` asks for shard n.
 */
typedef struct queen_host_timers {
    uint32_t size;
    uint32_t reserved;
    int32_t (*due)(const queen_host* host, uint64_t call, uint64_t shards, uint32_t cap);
    /* [any] rows whose time has come, oldest first within a shard, fairly over tenants; they are
     * this driver's for `lease` ns. */
    int32_t (*claim)(const queen_host* host, uint64_t call, uint64_t shards, int64_t lease,
                     uint32_t rows, uint32_t rows_per_tenant);
    /* [any] segments of a batch, by place, in one transaction. */
    int32_t (*fire)(const queen_host* host, uint64_t call, uint64_t batch, const uint32_t* segments,
                    size_t count);
    /* [any] hands rows back; they become visible again `backoff` ns from now, with 0 at once and in
     * their old place. counted: this was an attempt, of which a row has `most`. */
    int32_t (*fail)(const queen_host* host, uint64_t call, uint64_t batch, const uint32_t* segments,
                    size_t count, int64_t backoff, queen_str error, int32_t counted, int32_t most);
    /* [any] files what fail() found exhausted in this batch. */
    int32_t (*dead_letter)(const queen_host* host, uint64_t call, uint64_t batch, int32_t most);
    /* [any] forgets a batch. Rows of it that were neither fired nor handed back are handed back by
     * the broker, uncounted and without a backoff. */
    void (*release)(const queen_host* host, uint64_t batch);
    /* [any] pulls the next tick() forward. */
    void (*tick_at)(const queen_host* host, int64_t when);
} queen_host_timers;

/* All but stats are required. */
typedef struct queen_timers {
    uint32_t size;
    uint32_t reserved;
    void* (*create)(const queen_host* host, queen_error* error); /* [main] NULL on failure */
    void (*destroy)(void* self); /* [main] after stop(); no other call runs or follows */
    /* [main] perhaps while other calls run; from here on no call into the store is begun; answers
     * under way still come. */
    void (*stop)(void* self);
    /* [worker] after the commit: a timer of this broker's becomes due at `earliest`, steady ns. */
    int32_t (*scheduled)(void* self, int64_t earliest);
    /* [worker] once for each call that was taken. After a fault of it the call is over: a batch
     * that it brought is released, and tick() comes within a second. */
    int32_t (*answered)(void* self, uint64_t call, const queen_timer_answer* answer);
    /* [ticker] returns when it wants to be called next, INT64_MAX for never. */
    int64_t (*tick)(void* self, int64_t now);
    void (*stats)(void* self, void* sink, queen_stat_fn add); /* [any] */
} queen_timers;

#endif
