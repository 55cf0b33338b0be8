/* Makes no instance and does not say why. */
#define FIXTURE_CREATE refuse
#include "fixture.h"

static void* refuse(const queen_host* host, queen_error* error) {
    (void)host;
    (void)error;
    return NULL;
}
