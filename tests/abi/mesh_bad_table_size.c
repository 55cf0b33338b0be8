/* Its table ends before publish(), which is required. */
#define FIXTURE_TABLE_SIZE offsetof(queen_mesh, publish)
#include "mesh_fixture.h"
