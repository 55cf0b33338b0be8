/* Needs functions that this broker does not have yet. */
#define FIXTURE_MINOR (QUEEN_ABI_MINOR + 9)
#include "fixture.h"
