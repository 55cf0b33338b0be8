/* Offers a kind that this broker does not know. */
#define FIXTURE_EXTENSION "queen.teleport/1"
#include "fixture.h"
