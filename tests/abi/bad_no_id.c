/* Names no plugin. */
#define FIXTURE_ID ""
#include "fixture.h"
