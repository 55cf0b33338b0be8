/* peek() takes longer than its budget, every time: the tests' clock moves on inside. */
#define FIXTURE_PEEK slow_peek
#include "fixture.h"

static int32_t slow_peek(void* self, const queen_scope* scope, queen_readiness* out) {
    fixture_step(self);
    return fixture_peek(self, scope, out);
}
