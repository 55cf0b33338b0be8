/* The library that bad_dependency.c needs. Its file is not where a loader looks. */
__attribute__((visibility("default"))) int absent_answer(void);
int absent_answer(void) {
    return 42;
}
