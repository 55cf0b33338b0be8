/* Needs a library that is not installed. */
#define FIXTURE_PEEK needy_peek
#include "fixture.h"

int absent_answer(void);

static int32_t needy_peek(void* self, const queen_scope* scope, queen_readiness* out) {
    out->partitions = (uint64_t)absent_answer();
    return fixture_peek(self, scope, out);
}
