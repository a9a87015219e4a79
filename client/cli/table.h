/*
 * A listing for people: columns that are aligned, under a header.
 *
 *     RESOURCE  TOKEN     CLIENT  NAME  SINCE  LEFT   HOLD  WAITERS
 *     deploy    6c7bac0d       7  -     8.1s   21.8s  no          2
 *
 * Times are rounded and have their unit, and what could make a terminal do anything is written as
 * its bytes, "\x9b". Lines with other keys than those before begin another table; one that stands
 * alone among others has its fields below each other. Pure.
 */
#ifndef CLIENT_CLI_TABLE_H
#define CLIENT_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The lines are those of a listing, as the daemon sends them. */
void table_print(FILE *out, const char *const *lines, size_t count, bool colours);

#endif
