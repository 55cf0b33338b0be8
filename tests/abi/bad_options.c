/* Its option table refuses its own default. */
#include <queen/plugin/abi.h>
static const queen_option kOptions[] = {
    {"depth", QUEEN_OPTION_INT, 0, "levels", "99", 1, 10, "Too deep.", 0, 0},
};
#define FIXTURE_OPTION_COUNT 1
#define FIXTURE_OPTION_ROWS kOptions
#include "fixture.h"
