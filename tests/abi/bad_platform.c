/* Stamped for another platform. */
#define FIXTURE_PLATFORM "linux-riscv64"
#include "fixture.h"
