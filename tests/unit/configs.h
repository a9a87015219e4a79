/*
 * Configuration files for tests, in a temporary folder that is the working directory until
 * configs_close().
 */
#ifndef TESTS_UNIT_CONFIGS_H
#define TESTS_UNIT_CONFIGS_H

#include "config/config.h"

/* Three nodes, to append to the lines under test. */
#define NODES                                                                                      \
    "nodes:\n"                                                                                     \
    "  - {name: a, url: \"redis://10.0.0.1:6379\"}\n"                                              \
    "  - {name: b, url: \"redis://[fd00::2]/3\"}\n"                                                \
    "  - {name: c, url: \"unix:/run/redis.sock\"}\n"

/* A node with its closing brace left off, so that a test can add a field. */
#define NODE(name) "- {name: " name ", url: \"redis://" name "\""

/* Create and enter a new folder; configs_close() leaves it and deletes it. */
void configs_open(void);
void configs_close(void);

/* The temporary folder, and the working directory in which the tests were started. */
const char *configs_folder(void);
const char *configs_origin(void);

void configs_write(const char *path, const char *text);
void configs_write_bytes(const char *path, const char *bytes, size_t len);

/* Load a file; configs_read() writes the text to "f" and loads that. Returns NULL if the
 * configuration is refused. */
struct config *configs_load(const char *path, enum config_mode mode);
struct config *configs_read(const char *text);

/* The report of the last load. */
const char *configs_report(void);

/* Assert that the text loads without a report, or that it is refused with this report. */
struct config *configs_accept(const char *text);
void configs_refuse(const char *text, const char *report);

#endif
