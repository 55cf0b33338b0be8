/* Answers with values that no enumeration has; its cookie must come back all the same. */
#define FIXTURE_PEEK guess_peek
#define FIXTURE_TAKE guess_take
#define FIXTURE_SETTLE count_settle
#include "fixture.h"

static int32_t guess_peek(void* self, const queen_scope* scope, queen_readiness* out) {
    (void)self;
    (void)scope;
    out->state = 9;
    return 0;
}
static int32_t guess_take(void* self, const queen_take* take, const queen_name_sink* sink,
                          queen_selection* out) {
    (void)self;
    (void)take;
    (void)sink;
    out->pick = 9;
    out->cookie = malloc(1);
    return 0;
}
static int32_t count_settle(void* self, const queen_scope* scope, void* cookie,
                            const queen_verdict* verdicts, size_t count) {
    free(cookie); /* twice would be a double free, never a leak */
    return fixture_settle(self, scope, NULL, verdicts, count);
}
