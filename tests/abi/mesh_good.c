/* A mesh without a fault, and the base of every bad one. */
#include "mesh_fixture.h"
