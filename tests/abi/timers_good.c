/* A driver without a fault, and the base of every bad one. */
#include "timers_fixture.h"
