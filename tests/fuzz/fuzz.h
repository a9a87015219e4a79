/*
 * What every fuzz target defines. tests/fuzz.sh runs the targets: `make fuzz`, `make fuzz-smoke`.
 *
 * An input that breaks a promise ends in a failed assertion, or in a finding of a sanitizer.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Called by libFuzzer with one input, whose bytes end where its memory ends; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif
