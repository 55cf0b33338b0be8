/* Its stamp says that it is shorter than the frozen layout. */
#define FIXTURE_STAMP_SIZE 16
#include "fixture.h"
