/* The interface of all fuzz targets. tests/fuzz.sh runs the targets: `make fuzz`, `make
 * fuzz-smoke`. If an input makes the code break a promise, an assertion fails or a sanitizer
 * reports an error. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Called by libFuzzer with one input, in a buffer of exactly that length; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif
