/* The interface of all fuzz targets. tests/fuzz.sh runs them: `make fuzz`, `make fuzz-smoke`. An
 * input that breaks a promise ends in a failed assertion, or in a report of a sanitizer. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Called by libFuzzer with one input, in a buffer of exactly that length; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif
