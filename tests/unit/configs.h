/*
 * Files of configuration for tests, in a folder that is the working directory while it is open.
 */
#ifndef TESTS_UNIT_CONFIGS_H
#define TESTS_UNIT_CONFIGS_H

#include "config/config.h"

/* Three nodes, to put behind whatever is under test. */
#define NODES                                                                                      \
    "nodes:\n"                                                                                     \
    "  - {name: a, url: \"redis://10.0.0.1:6379\"}\n"                                              \
    "  - {name: b, url: \"redis://[fd00::2]/3\"}\n"                                                \
    "  - {name: c, url: \"unix:/run/redis.sock\"}\n"

/* A node without its braces' end, for one field more. */
#define NODE(name) "- {name: " name ", url: \"redis://" name "\""

/* A new folder; and back from it, and all away that is in it. */
void configs_open(void);
void configs_close(void);

/* The folder; and the one that the tests were started from. */
const char *configs_folder(void);
const char *configs_origin(void);

void configs_write(const char *path, const char *text);
void configs_write_bytes(const char *path, const char *bytes, size_t len);

/* What is in this file; or in "f", if it says this. NULL: it was refused. */
struct config *configs_load(const char *path, enum config_mode mode);
struct config *configs_read(const char *text);

/* What was reported of the last. */
const char *configs_report(void);

/* Nothing is reported of it; or this, and it is refused. */
struct config *configs_fine(const char *text);
void configs_refuse(const char *text, const char *report);

#endif
