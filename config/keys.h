/*
 * Keys of the file: how each is called, what may stand there, where it goes, and whether a reload
 * may change it. config.c has the table of the whole file; the entries of each list have another.
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
    KEY_SECTION,  /* a mapping; its keys are in the same table */
    KEY_LIST,     /* read by read() */
    KEY_WORD,     /* a single value, read by parse() */
    KEY_WORDS,    /* a list of such */
    KEY_URL,      /* struct config_address */
    KEY_TEXT,     /* char *: any text */
    KEY_NAME,     /* char *: A-Z a-z 0-9 _ . - */
    KEY_LABEL,    /* char *: the same, or : */
    KEY_PREFIX,   /* char *: of keys on the masters */
    KEY_SECRET,   /* char *: what the file of that name holds, for secret_free() */
    KEY_BOOLEAN,  /* bool */
    KEY_INTEGER,  /* int64_t */
    KEY_DURATION, /* int64_t: nanoseconds */
    KEY_RATE,     /* int64_t: millionths */
    KEY_CHOICE,   /* an enum: the index of one of the words */
};

struct key {
    const char *name; /* in full, "locks.max_ttl"; NULL ends a table */
    enum key_kind kind;
    const char *fixed; /* why a reload cannot change it, or KEY_MAY_CHANGE */
    /* KEY_AT(), of the structure that is filled; nothing for sections and lists. */
    size_t offset;
    size_t size;
    bool is_text;
    /* Numbers: as much as there is of these. Texts: the bytes. */
    int64_t initial;
    int64_t least;
    int64_t most;
    const char *text;         /* of a text, what it is if it is left out */
    const char *const *words; /* KEY_CHOICE: all of them, NULL last */
    const char *missing;      /* it has to be there: an example; NULL: it may be left out */
    enum url_use use;         /* KEY_URL */
    const char *many;         /* KEY_WORDS: what to do if there are more than `most`; or NULL */
    /* KEY_WORD, KEY_WORDS: into the field; the error is to be put behind the text. */
    bool (*parse)(const char *text, void *field, struct error *error);
    /* KEY_LIST, into the structure that is filled. */
    void (*read)(void *target, const struct yaml_node *list, struct report *report);
    bool (*equal)(const struct config *a, const struct config *b); /* KEY_LIST of the whole file */
};

#define KEY_MAY_CHANGE ""

#define KEY_AT(type, field)                                                                        \
    .offset = offsetof(type, field), .size = sizeof(((type *)NULL)->field),                        \
    .is_text = _Generic(((type *)NULL)->field, char * : true, default : false)

/* The whole file. */
extern const struct key config_keys[];

/*
 * Read what the mapping has of the keys in this section ("" at the top) into `target`. What is
 * wrong goes into the report, and a value that is wrong as a whole is broken from then on.
 */
void keys_read(const struct key *keys, const char *section, struct yaml_node *mapping, void *target,
               struct report *report);

/* Is the node of this kind, and not broken? If not, the report says what `name` has to be: `what`,
 * NULL the name of the kind. */
bool keys_check_kind(const struct yaml_node *node, enum yaml_kind kind, const char *name,
                     const char *what, struct report *report);

/* An entry of a list has to be a mapping like the example. */
bool keys_check_entry(const struct yaml_node *entry, const char *list, const char *example,
                      struct report *report);

void *keys_field(const struct key *key, void *target);

/* Is it the same in both structures? A section is equal to any other. */
bool keys_equal(const struct key *key, const void *a, const void *b);

#endif
