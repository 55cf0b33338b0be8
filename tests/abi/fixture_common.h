/* tests/abi/fixture_common.h - what fixtures of every kind share: the stamp, in which each field
 * can be spoiled, and a witness that code of the library ran.
 *
 * The constructor below runs when the library is mapped: a test sees in the environment whether a
 * refused file ever got that far. log("step") is the way a fixture says "time passes now": the
 * tests' host moves its clock. */
#include <queen/plugin/abi.h>

#include <stdlib.h>
#include <string.h>

#ifndef FIXTURE_MAGIC
#define FIXTURE_MAGIC QUEEN_ABI_MAGIC
#endif
#ifndef FIXTURE_STAMP_SIZE
#define FIXTURE_STAMP_SIZE sizeof(queen_build_stamp)
#endif
#ifndef FIXTURE_MAJOR
#define FIXTURE_MAJOR QUEEN_ABI_MAJOR
#endif
#ifndef FIXTURE_MINOR
#define FIXTURE_MINOR QUEEN_ABI_MINOR
#endif
#ifndef FIXTURE_FLIPPED_BUILD
#define FIXTURE_FLIPPED_BUILD 0u
#endif
#ifndef FIXTURE_PLATFORM
#define FIXTURE_PLATFORM "linux-x86_64"
#endif
#ifndef FIXTURE_EXACT_HOST
#define FIXTURE_EXACT_HOST ""
#endif
#ifndef FIXTURE_ID
#define FIXTURE_ID "test.fixture"
#endif
#ifndef FIXTURE_VERSION
#define FIXTURE_VERSION "1.0.0"
#endif
#ifndef FIXTURE_ENTRY
#define FIXTURE_ENTRY queen_plugin
#endif
#ifndef FIXTURE_ENTRY_SIZE
#define FIXTURE_ENTRY_SIZE sizeof(queen_plugin_entry)
#endif
#ifndef FIXTURE_GET_FACTORY
#define FIXTURE_GET_FACTORY fixture_factory
#endif
#ifndef FIXTURE_OPTION_COUNT
#define FIXTURE_OPTION_COUNT 0
#define FIXTURE_OPTION_ROWS NULL
#endif

#define FIXTURE_VISIBLE __attribute__((visibility("default")))

/* g++ and clang name their sanitizers differently. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIXTURE_ASAN QUEEN_BUILD_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define FIXTURE_TSAN QUEEN_BUILD_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FIXTURE_ASAN QUEEN_BUILD_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define FIXTURE_TSAN QUEEN_BUILD_TSAN
#endif
#ifndef FIXTURE_ASAN
#define FIXTURE_ASAN 0u
#endif
#ifndef FIXTURE_TSAN
#define FIXTURE_TSAN 0u
#endif

FIXTURE_VISIBLE extern const queen_build_stamp queen_plugin_stamp;
__attribute__((section(QUEEN_STAMP_SECTION))) const queen_build_stamp queen_plugin_stamp = {
    FIXTURE_MAGIC,
    FIXTURE_STAMP_SIZE,
    FIXTURE_MAJOR,
    FIXTURE_MINOR,
    (FIXTURE_ASAN | FIXTURE_TSAN) ^ FIXTURE_FLIPPED_BUILD,
    FIXTURE_PLATFORM,
    FIXTURE_EXACT_HOST,
    FIXTURE_ID,
    FIXTURE_VERSION,
};

__attribute__((constructor)) static void fixture_is_mapped(void) {
    setenv("QUEEN_FIXTURE_RAN", FIXTURE_ID, 1);
}

static inline queen_str fixture_text(const char* text) {
    const queen_str out = {text, strlen(text)};
    return out;
}

static inline void fixture_log(const queen_host* host, const char* text) {
    host->log(host, QUEEN_LOG_DEBUG, fixture_text(text));
}

/* Lets the tests' clock move on. */
static inline void fixture_step_of(const queen_host* host) {
    fixture_log(host, "step");
}

/* Zeroed memory of an instance, or none with the error filled. */
static inline void* fixture_new(size_t size, queen_error* error) {
    void* self = calloc(1, size);
    if (self == NULL) {
        error->code = QUEEN_FAILED;
    }
    return self;
}
