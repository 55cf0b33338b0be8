/* Its entry ends before get_factory. */
#define FIXTURE_ENTRY_SIZE 8
#include "fixture.h"
