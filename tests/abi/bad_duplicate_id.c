/* Another file with the id of good.c. */
#define FIXTURE_VERSION "2.0.0"
#include "fixture.h"
