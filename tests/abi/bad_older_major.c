/* Built for the major before this one. */
#define FIXTURE_MAJOR (QUEEN_ABI_MAJOR - 1)
#include "fixture.h"
