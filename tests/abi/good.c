/* A plugin without a fault, and the base of every bad one. */
#include "fixture.h"
