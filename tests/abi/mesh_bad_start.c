/* Cannot start, and says which option is at fault. */
#define FIXTURE_START failing_start
#define FIXTURE_OPTION_COUNT 1
#define FIXTURE_OPTION_ROWS rows
#include <queen/plugin/abi.h>
static const queen_option rows[] = {
    {"port", QUEEN_OPTION_INT, 0, "", "6633", 1, 65535, "Where peers are heard.", NULL, NULL}};
#include "mesh_fixture.h"

static int32_t failing_start(void* self, queen_error* error) {
    (void)self;
    error->code = QUEEN_BAD_OPTION;
    strcpy(error->option, "port");
    strcpy(error->message, "no thread can be made");
    return 1;
}
