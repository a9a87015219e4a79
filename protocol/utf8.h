/*
 * Which bytes of a text are UTF-8: names of locks are bytes, and need not be. Pure.
 */
#ifndef PROTOCOL_UTF8_H
#define PROTOCOL_UTF8_H

#include <stddef.h>

/* The bytes of the character at `at`, 1 to 4, or 0 where none begins there: also for overlong
 * forms, surrogates and what is beyond U+10FFFF. */
size_t utf8_character(const char *at, size_t len);

/* The same, and 0 for characters that show nothing, or change what stands beside them: controls,
 * line separators, joiners, fillers, marks and overrides of direction. What is left, people may be
 * shown; two names can look the same all the same. */
size_t utf8_visible(const char *at, size_t len);

#endif
