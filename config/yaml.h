/*
 * A YAML file -> a tree of scalars, sequences and mappings, each with its place in the file.
 *
 * libyaml parses; this refuses what a configuration does better without: anchors, tags, several
 * documents, doubled keys, keys that are no scalars. ${NAME} in a scalar becomes the value of that
 * environment variable, $$ a dollar.
 */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "config/report.h"

enum { YAML_FILE_MAX = 256 * 1024, YAML_DEPTH_MAX = 8 };

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    struct mark mark;
    char *text;                 /* SCALAR: ends in a NUL, holds none */
    bool quoted;                /* SCALAR */
    bool broken;                /* SCALAR: reported already; its text is "" */
    struct yaml_node *key;      /* inside a MAPPING: the scalar before this value */
    struct yaml_node *children; /* SEQUENCE, MAPPING: the first of them */
    struct yaml_node *next;     /* the one after this, under the same parent */
};

/*
 * Read all of `in` (the caller closes it). Returns the root, to be freed by yaml_node_free(); or
 * NULL, and there was at least one error in the report.
 */
struct yaml_node *yaml_node_read(FILE *in, struct report *report);
void yaml_node_free(struct yaml_node *node);

/* "a scalar", "a list", "a mapping", for errors. */
const char *yaml_kind_name(enum yaml_kind kind);

#endif
