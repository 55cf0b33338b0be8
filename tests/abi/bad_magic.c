/* Its stamp is not a stamp. */
#define FIXTURE_MAGIC 0x12345678u
#include "fixture.h"
