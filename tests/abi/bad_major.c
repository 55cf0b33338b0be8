/* Built for the next major of the ABI. */
#define FIXTURE_MAJOR (QUEEN_ABI_MAJOR + 1)
#include "fixture.h"
