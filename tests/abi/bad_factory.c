/* Its entry has no get_factory. */
#define FIXTURE_GET_FACTORY NULL
#include "fixture.h"
