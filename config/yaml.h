/*
 * A YAML file -> a tree of scalars, lists and mappings, each with its place in the file.
 *
 * libyaml parses; this refuses what a configuration does better without: anchors, aliases, tags,
 * several documents, duplicate keys, keys that are no words. ${NAME} in a value becomes what the
 * environment has under that name, $$ a dollar; keys stay as they are written.
 */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "config/report.h"

/* What a file may cost us, however it was made: its bytes, the bytes of one scalar once variables
 * are replaced, the nodes of the tree, and how deep it goes. */
enum {
    YAML_FILE_MAX = 256 * 1024,
    YAML_SCALAR_MAX = 1024,
    YAML_NODES_MAX = 16384,
    YAML_DEPTH_MAX = 8,
};

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    struct mark mark;
    char *text;                 /* SCALAR: ends in a NUL, holds none */
    bool quoted;                /* SCALAR */
    bool broken;                /* in the report already: say no more of it, and do not use it */
    struct yaml_node *key;      /* inside a MAPPING: what stands before the colon; owned */
    struct yaml_node *children; /* SEQUENCE, MAPPING: the first of them; owned */
    struct yaml_node *next;     /* the one after this, under the same parent; owned */
};

/*
 * Read all of `in` (the caller closes it). Returns the root, to be freed by yaml_node_free(), or
 * NULL where no tree could be made of it. There may be errors in the report either way, and there
 * are if it is NULL.
 */
struct yaml_node *yaml_node_read(FILE *in, struct report *report);
void yaml_node_free(struct yaml_node *node);

/* The value behind a key, or NULL. */
const struct yaml_node *yaml_node_child(const struct yaml_node *mapping, const char *key);

/* A key with nothing behind it: "locks:". */
bool yaml_node_is_empty(const struct yaml_node *node);

/* "a single value", "a list", "a mapping", for errors. */
const char *yaml_kind_name(enum yaml_kind kind);

#endif
