/* Has a stamp, and no entry. */
#define FIXTURE_ENTRY queen_plugin_of_another_name
#include "fixture.h"
