/* Its table has no settle(). */
#define FIXTURE_SETTLE_IN_TABLE NULL
#include "fixture.h"
