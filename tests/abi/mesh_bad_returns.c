/* publish() fails each time. */
#define FIXTURE_PUBLISH failing_publish
#include "mesh_fixture.h"

static int32_t failing_publish(void* self, const queen_hint* hints, size_t count) {
    fixture_publish(self, hints, count);
    return 7;
}
