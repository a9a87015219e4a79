/*
 * One entry of a list, {name: a, url: ...}: each field goes to a function that knows it. And what
 * all that reads the tree has to say in the same words.
 */
#ifndef CONFIG_ENTRY_H
#define CONFIG_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "config/report.h"
#include "config/yaml.h"

enum { ENTRY_FIELDS_MAX = 16 };

/* Each is at most once in an entry; the value is a scalar. What is wrong goes into the report. */
struct entry_field {
    const char *name;
    /* NULL: any text; it is copied to the char * that lies there in the target. */
    void (*set)(void *target, const struct yaml_node *value, struct report *report);
    size_t offset;
};

/* Set the fields of `target` from a mapping; `list` is the key it stands under. The fields end with
 * a name that is NULL. */
void entry_read(const struct yaml_node *entry, const char *list, const struct entry_field *fields,
                void *target, struct report *report);

/* The same where the fields see to it themselves of what kind their values are. */
void entry_read_any(const struct yaml_node *entry, const char *list,
                    const struct entry_field *fields, void *target, struct report *report);

/* Is the node of the kind that `name` needs, and not broken? If not, the report says so. */
bool entry_has_kind(const struct yaml_node *node, enum yaml_kind kind, const char *name,
                    struct report *report);

/* The same of an entry of a list, which is to look like the example. */
bool entry_is_mapping(const struct yaml_node *entry, const char *list, const char *example,
                      struct report *report);

/* The secret in the file that `value` names, for secret_free(); `name` is the key it stands under.
 * NULL: it cannot be read, and the report says so. The report warns of a file that every user of
 * the host can read. */
char *entry_secret(const struct yaml_node *value, const char *name, struct report *report);

/* There is no such key in `section` ("" at the top); `known` are those there are, NULL last. */
void entry_unknown(const struct yaml_node *key, const char *section, const char *const *known,
                   struct report *report);

#endif
