/* Offers names of every unfit shape, and more than there is room for. */
#define FIXTURE_TAKE offer_anything
#include "fixture.h"

static int32_t offer_anything(void* self, const queen_take* take, const queen_name_sink* sink,
                              queen_selection* out) {
    static char long_name[256];
    (void)self;
    memset(long_name, 'x', sizeof long_name);
    const queen_str null_name = {NULL, 5};
    const queen_str empty_name = {"", 0};
    const queen_str nul_inside = {"a\0b", 3};
    const queen_str too_long = {long_name, sizeof long_name};
    const queen_str longest = {long_name, sizeof long_name - 1};
    sink->add(sink->self, null_name, 1);
    sink->add(sink->self, empty_name, 2);
    sink->add(sink->self, nul_inside, 3);
    sink->add(sink->self, too_long, 4);
    sink->add(sink->self, longest, 5);
    sink->add(sink->self, fixture_text("twice"), 6);
    sink->add(sink->self, fixture_text("twice"), 7);
    for (uint64_t i = 0; i < take->limit; ++i) {
        const char name[3] = {'n', (char)('0' + i / 10), (char)('0' + i % 10)};
        const queen_str numbered = {name, sizeof name};
        sink->add(sink->self, numbered, 100 + i);
    }
    out->pick = QUEEN_PICK_NAMES;
    return 0;
}
