/*
 * Reads a YAML file into a tree of scalars, lists and mappings, each with its position in the file.
 *
 * libyaml parses the file. This module refuses anchors, aliases, tags, several documents, duplicate
 * keys, and keys that are not scalars. In values it replaces ${NAME} by the environment variable
 * NAME, and $$ by a dollar sign. Keys are unchanged.
 */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "config/report.h"

/* Limits for any file: bytes of the file, bytes of a scalar after its variables are replaced, nodes
 * of the tree, and levels of the tree. */
enum {
    YAML_FILE_MAX = 256 * 1024,
    YAML_SCALAR_MAX = 1024,
    YAML_NODES_MAX = 16384,
    YAML_DEPTH_MAX = 8,
};

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    struct position position;
    char *text;                 /* SCALAR: ends with a NUL and contains no other */
    bool quoted;                /* SCALAR */
    bool broken;                /* already reported as invalid: do not use it or report it again */
    struct yaml_node *key;      /* child of a MAPPING: its key; owned */
    struct yaml_node *children; /* SEQUENCE, MAPPING: first child; owned */
    struct yaml_node *next;     /* next child of the same parent; owned */
};

/*
 * Read all of `in`, which the caller closes. Returns the root, which the caller frees with
 * yaml_node_free(); or NULL if the file cannot be read or is not YAML. If the root is NULL, the
 * report has errors. It can have errors even if the root is not NULL.
 */
struct yaml_node *yaml_node_read(FILE *in, struct report *report);
void yaml_node_free(struct yaml_node *node);

/* The value of a key, or NULL. */
const struct yaml_node *yaml_node_child(const struct yaml_node *mapping, const char *key);

/* Whether a key has no value: "locks:". */
bool yaml_node_is_empty(const struct yaml_node *node);

/* "a single value", "a list", "a mapping", for errors. */
const char *yaml_kind_name(enum yaml_kind kind);

#endif
