/* Answers every call with an error, after having touched its out parameters. */
#define FIXTURE_PEEK fail_peek
#define FIXTURE_TAKE fail_take
#define FIXTURE_SETTLE fail_settle
#define FIXTURE_MARK fail_mark
#include "fixture.h"

static int32_t fail_peek(void* self, const queen_scope* scope, queen_readiness* out) {
    (void)self;
    (void)scope;
    out->state = QUEEN_NOTHING;
    return 7;
}
static int32_t fail_take(void* self, const queen_take* take, const queen_name_sink* sink,
                         queen_selection* out) {
    (void)take;
    sink->add(sink->self, fixture_text("p1"), 1);
    out->pick = QUEEN_PICK_NONE;
    out->cookie = self;
    return -1;
}
static int32_t fail_settle(void* self, const queen_scope* scope, void* cookie,
                           const queen_verdict* verdicts, size_t count) {
    (void)scope;
    (void)cookie;
    (void)verdicts;
    (void)count;
    ++((struct fixture*)self)->settled;
    return 1;
}
static int32_t fail_mark(void* self, const queen_queue* queue, const queen_str* group,
                         int32_t origin, const queen_mark* marks, size_t count) {
    (void)self;
    (void)queue;
    (void)group;
    (void)origin;
    (void)marks;
    (void)count;
    return 1;
}
