/* Its table has no take(). */
#define FIXTURE_TAKE_IN_TABLE NULL
#include "fixture.h"
