/* Uses an unstable extension of one broker version. */
#define FIXTURE_EXACT_HOST "0.0.7"
#include "fixture.h"
