/*
 * Tables of the keys of the configuration file. A table has, for each key, its name, its valid
 * values, the field that stores the value, and whether a reload may change it. The table in
 * config.c is for the whole file. The entries of each list have a table of their own.
 */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/report.h"
#include "config/url.h"
#include "config/yaml.h"

struct config;

enum key_kind {
    KEY_SECTION,  /* a mapping whose keys are in the same table */
    KEY_LIST,     /* read by read() */
    KEY_WORD,     /* a single value, read by parse() */
    KEY_WORDS,    /* a list of single values, read by parse() */
    KEY_URL,      /* struct config_address */
    KEY_TEXT,     /* char *: any text */
    KEY_NAME,     /* char *: A-Z a-z 0-9 _ . - */
    KEY_LABEL,    /* char *: A-Z a-z 0-9 _ . - : */
    KEY_PREFIX,   /* char *: the prefix of keys on the masters */
    KEY_SECRET,   /* char *: the contents of the named file; freed with secret_free() */
    KEY_BOOLEAN,  /* bool */
    KEY_INTEGER,  /* int64_t */
    KEY_DURATION, /* int64_t: nanoseconds */
    KEY_RATE,     /* int64_t: millionths */
    KEY_CHOICE,   /* an enum: the index of the word */
};

struct key {
    const char *name; /* full name, "locks.max_ttl"; NULL ends a table */
    enum key_kind kind;
    const char *fixed; /* why a reload cannot change it, or KEY_MAY_CHANGE */
    /* KEY_AT(): the field in the target structure; unused for sections and lists */
    size_t offset;
    size_t size;
    bool is_text;
    int64_t initial;          /* numbers and KEY_CHOICE: the default */
    int64_t least;            /* numbers: the minimum; texts: the minimum in bytes */
    int64_t most;             /* numbers: the maximum; texts: the maximum in bytes */
    const char *text;         /* texts: the default */
    const char *const *words; /* KEY_CHOICE: all words, NULL last */
    const char *missing;      /* required keys: an example for the error; NULL: optional key */
    enum url_use use;         /* KEY_URL */
    const char *many; /* KEY_WORDS: advice if there are more than `most`; NULL: no maximum */
    /* KEY_WORD, KEY_WORDS: parse a value into the field. On failure, the error continues the
     * message `name: "value" ...`. */
    bool (*parse)(const char *text, void *field, struct error *error);
    /* KEY_LIST: read the list into the target structure */
    void (*read)(void *target, const struct yaml_node *list, struct report *report);
    /* KEY_LIST in config_keys: whether the lists are equal in both configurations */
    bool (*equal)(const struct config *a, const struct config *b);
};

#define KEY_MAY_CHANGE ""

#define KEY_AT(type, field)                                                                        \
    .offset = offsetof(type, field), .size = sizeof(((type *)NULL)->field),                        \
    .is_text = _Generic(((type *)NULL)->field, char * : true, default : false)

/* The table of the whole file. */
extern const struct key config_keys[];

/*
 * Read the keys of a section ("" for the top level) from the mapping into `target`. Mistakes are
 * added to the report. An invalid value is marked as broken.
 */
void keys_read(const struct key *keys, const char *section, struct yaml_node *mapping, void *target,
               struct report *report);

/* Whether the node is of this kind, not empty, and not broken. If it is empty or of another kind,
 * reports that `name` must be `what` (NULL: the name of the kind). A broken node is not reported
 * again. */
bool keys_check_kind(const struct yaml_node *node, enum yaml_kind kind, const char *name,
                     const char *what, struct report *report);

/* Whether an entry of a list is a mapping. If it is not, reports the entry and shows the example.
 */
bool keys_check_entry(const struct yaml_node *entry, const char *list, const char *example,
                      struct report *report);

/* The address of the key's field in the target structure. */
void *keys_field(const struct key *key, void *target);

/* Whether the field is equal in both structures. Sections are always equal. */
bool keys_equal(const struct key *key, const void *a, const void *b);

#endif
