/*
 * Parses single values of the configuration, and prints them for messages. All functions are
 * pure, except that value_user() and value_group() look up the host's users and groups.
 *
 * A function that returns a string returns NULL on success. Otherwise it returns a static message
 * that says what is wrong and what to write instead. The caller puts the message after the value:
 * "60" has no unit; write 60s, 1m or 500ms.
 *
 * A number that is too large to be told apart becomes one that exceeds every range of the
 * configuration. The caller checks the range, and its message names the range.
 */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a duration ("250us", "50ms", "60s", "5m", "1h") into nanoseconds. */
const char *value_duration(const char *text, int64_t *ns);

/* Parses a rate ("1%", "0.5%", "100ppm") into millionths. */
const char *value_rate(const char *text, int64_t *ppm);

/* Parses a number in decimal digits. */
const char *value_integer(const char *text, int64_t *number);

/* Parses "true" or "false". */
const char *value_boolean(const char *text, bool *boolean);

/* Look up a user or group of this host. The text is a name or any valid id. Returns false if it is
 * neither. */
bool value_user(const char *text, uint32_t *id);
bool value_group(const char *text, uint32_t *id);

/* Whether the text contains a space or a control character. */
bool value_has_space(const char *text);

/* Print a value exactly, in the notation of the file: "250us", "90s" for 1.5 minutes, "1%", "7".
 * The value must not be negative. */
enum { VALUE_PRINTED = 32 };
void value_print_duration(int64_t ns, char buf[VALUE_PRINTED]);
void value_print_rate(int64_t ppm, char buf[VALUE_PRINTED]);
void value_print_integer(int64_t number, char buf[VALUE_PRINTED]);

/* Whether two texts are equal. NULL equals only NULL. */
bool value_same_text(const char *a, const char *b);

#endif
