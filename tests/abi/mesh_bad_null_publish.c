/* Its table has no publish(). */
#define FIXTURE_PUBLISH_IN_TABLE NULL
#include "mesh_fixture.h"
