/* Hears what is no hint, among two that are, in each publish(); and one before it was started. */
#define FIXTURE_CREATE early_create
#define FIXTURE_PUBLISH bad_publish
#include "mesh_fixture.h"

static void* early_create(const queen_host* host, queen_error* error) {
    struct fixture* self = fixture_create(host, error);
    const queen_hint hint = {.kind = QUEEN_HINT_STORED, .queue = fixture_text("early")};
    if (self != NULL) {
        self->mesh->heard(host, &hint, 1);
        self->mesh->missed(host);
    }
    return self;
}

static int32_t bad_publish(void* self, const queen_hint* published, size_t count) {
    const struct fixture* fixture = self;
    static char long_name[256];
    const queen_str nowhere = {NULL, 3};
    const queen_str with_nul = {"a\0b", 3};
    const queen_str too_long = {long_name, sizeof long_name};
    const queen_str longest = {long_name, sizeof long_name - 1};
    const queen_str orders = fixture_text("orders");
    (void)published;
    (void)count;
    memset(long_name, 'x', sizeof long_name);
    const queen_hint hints[] = {
        {.kind = 0, .queue = orders},
        {.kind = 6, .queue = orders},
        {.kind = -1, .queue = orders},
        {.kind = QUEEN_HINT_STORED, .queue = orders, .partition = longest},
        {.kind = QUEEN_HINT_STORED, .queue = nowhere},
        {.kind = QUEEN_HINT_STORED, .queue = orders, .partition = with_nul},
        {.kind = QUEEN_HINT_MOVED, .queue = orders, .group = too_long},
        {.kind = QUEEN_HINT_DELETED},
        {.kind = QUEEN_HINT_SWITCHED, .queue = orders},
        {.kind = QUEEN_HINT_SWITCHED, .enabled = 9, .subject = fixture_text("maintenance")},
    };
    fixture->mesh->heard(fixture->host, hints, sizeof hints / sizeof hints[0]);
    fixture->mesh->heard(fixture->host, NULL, 4);
    fixture->mesh->heard(fixture->host, NULL, 0); /* nothing at all: no fault */
    fixture->mesh->missed(fixture->host);         /* nor is this */
    return 0;
}
