/* Says "names" and gives none. */
#define FIXTURE_TAKE give_nothing
#define FIXTURE_SETTLE free_settle
#include "fixture.h"

static int32_t give_nothing(void* self, const queen_take* take, const queen_name_sink* sink,
                            queen_selection* out) {
    (void)self;
    (void)take;
    (void)sink;
    out->pick = QUEEN_PICK_NAMES;
    out->cookie = malloc(1);
    return 0;
}
static int32_t free_settle(void* self, const queen_scope* scope, void* cookie,
                           const queen_verdict* verdicts, size_t count) {
    free(cookie);
    return fixture_settle(self, scope, NULL, verdicts, count);
}
