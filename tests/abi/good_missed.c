/* Looks by itself when marks were missed. */
#define FIXTURE_ID "test.missed"
#define FIXTURE_MISSED note_missed
#define FIXTURE_MISSED_IN_TABLE note_missed
#include "fixture.h"

static int32_t note_missed(void* self) {
    fixture_log(((struct fixture*)self)->host, "missed");
    return 0;
}
