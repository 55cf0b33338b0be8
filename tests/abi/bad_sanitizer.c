/* Built with a sanitizer when the broker is not, and without when it is. */
#define FIXTURE_FLIPPED_BUILD QUEEN_BUILD_ASAN
#include "fixture.h"
