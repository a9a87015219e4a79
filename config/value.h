/*
 * The words a configuration is made of -> numbers, and back for messages. Pure, but for
 * names of users and groups.
 *
 * Those that read return NULL on success; otherwise what was wrong and what would be right, to be
 * put behind the word itself: "60" -> "has no unit; write 60s, 1m or 500ms". The text is static.
 */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "250us", "50ms", "60s", "5m", "1h" -> nanoseconds. */
const char *value_duration(const char *text, int64_t *ns);

/* "1%", "0.5%", "100ppm" -> millionths. */
const char *value_rate(const char *text, int64_t *ppm);

/* Decimal digits, at most 15 of them. */
const char *value_integer(const char *text, int64_t *number);

/* true, false. */
const char *value_boolean(const char *text, bool *boolean);

/* A user or a group of this host, by its name or its number. */
bool value_user(const char *text, uint32_t *id);
bool value_group(const char *text, uint32_t *id);

/* A space, or a control character? */
bool value_has_space(const char *text);

/* How the file would say it, exactly: "250us", and "90s" for one minute and a half; "0.5%"; "7".
 * None is negative. */
enum { VALUE_PRINTED = 32 };
void value_print_duration(int64_t ns, char buf[VALUE_PRINTED]);
void value_print_rate(int64_t ppm, char buf[VALUE_PRINTED]);
void value_print_integer(int64_t number, char buf[VALUE_PRINTED]);

/* The same text; NULL is like nothing but NULL. */
bool value_same_text(const char *a, const char *b);

#endif
