/* Its table ends after publish(): valid, the rest counts as absent. */
#define FIXTURE_ID "test.mesh_short_table"
#define FIXTURE_TABLE_SIZE offsetof(queen_mesh, stats)
#include "mesh_fixture.h"
