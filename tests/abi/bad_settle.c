/* Takes well and fails when it settles. */
#define FIXTURE_SETTLE fail_settle
#include "fixture.h"

static int32_t fail_settle(void* self, const queen_scope* scope, void* cookie,
                           const queen_verdict* verdicts, size_t count) {
    (void)scope;
    (void)cookie;
    (void)verdicts;
    (void)count;
    ++((struct fixture*)self)->settled;
    return 1;
}
