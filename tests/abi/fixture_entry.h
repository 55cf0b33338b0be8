/* tests/abi/fixture_entry.h - the entry, after fixture_table has been defined. */
static inline const void* fixture_factory(const char* id) {
    return strcmp(id, FIXTURE_EXTENSION) == 0 ? &fixture_table : NULL;
}

FIXTURE_VISIBLE extern const queen_plugin_entry FIXTURE_ENTRY;
const queen_plugin_entry FIXTURE_ENTRY = {
    FIXTURE_ENTRY_SIZE,
    FIXTURE_OPTION_COUNT,
    FIXTURE_OPTION_ROWS,
    FIXTURE_GET_FACTORY,
};
