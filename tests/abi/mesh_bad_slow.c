/* publish() takes longer than its budget, every time: the tests' clock moves on inside. */
#define FIXTURE_PUBLISH slow_publish
#include "mesh_fixture.h"

static int32_t slow_publish(void* self, const queen_hint* hints, size_t count) {
    fixture_step_of(((struct fixture*)self)->host);
    return fixture_publish(self, hints, count);
}
