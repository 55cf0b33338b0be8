/* Its figures and peers have names that are none. */
#define FIXTURE_STATS bad_stats
#define FIXTURE_PEERS bad_peers
#include "mesh_fixture.h"

static void bad_stats(void* self, void* sink, queen_stat_fn add) {
    const queen_str nowhere = {NULL, 9};
    const queen_str with_nul = {"a\0b", 3};
    add(sink, nowhere, 1);
    add(sink, with_nul, 1);
    add(sink, fixture_text(""), 1);
    fixture_stats(self, sink, add);
}

static void bad_peers(void* self, void* sink, queen_peer_fn add) {
    static char long_name[300];
    queen_peer peer = {.address = {NULL, 7}};
    add(sink, NULL);
    add(sink, &peer);
    memset(long_name, 'x', sizeof long_name);
    peer.address = fixture_text("10.0.0.3:6633");
    peer.server_id.data = long_name;
    peer.server_id.size = sizeof long_name;
    add(sink, &peer);
    peer.server_id = fixture_text("");
    peer.silent = -5;
    add(sink, &peer);
    fixture_peers(self, sink, add);
}
