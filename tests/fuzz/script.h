/* An input that is a script of steps. Each step is one byte and its arguments. */
#ifndef TESTS_FUZZ_SCRIPT_H
#define TESTS_FUZZ_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

/* The rest of the script. */
extern const uint8_t *script;
extern size_t script_len;

/* Take one byte; 0 at the end of the script. */
unsigned script_take(void);

/* Take literal bytes, which end with 0xff or with the script. Returns their length without the
 * 0xff. */
size_t script_take_bytes(const char **bytes);

#endif
