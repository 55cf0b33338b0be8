/* Refuses at creation, naming the option at fault. */
#include <queen/plugin/abi.h>
static const queen_option kOptions[] = {
    {"depth", QUEEN_OPTION_INT, 0, "levels", "7", 1, 10, "Must be even.", 0, 0},
};
#define FIXTURE_OPTION_COUNT 1
#define FIXTURE_OPTION_ROWS kOptions
#define FIXTURE_CREATE refuse
#include "fixture.h"

static void* refuse(const queen_host* host, queen_error* error) {
    (void)host;
    error->code = QUEEN_BAD_OPTION;
    strcpy(error->option, "depth");
    strcpy(error->message, "must be even");
    return NULL;
}
