#include "config/entry.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "config/memory.h"
#include "config/secret.h"
#include "config/value.h"
#include "protocol/spelling.h"

enum { WHAT_TEXT = 128 };

/* `what` it has to be, in words. */
static bool has_kind(const struct yaml_node *node, enum yaml_kind kind, const char *name,
                     const char *what, struct report *report)
{
    if (node->broken)
        return false;
    if (yaml_node_is_empty(node))
        report_error(report, node->mark, "%s: has no value; write %s, or leave it out", name, what);
    else if (node->kind != kind)
        report_error(report, node->mark, "%s: has to be %s, not %s", name, what,
                     yaml_kind_name(node->kind));
    else
        return true;
    return false;
}

bool entry_has_kind(const struct yaml_node *node, enum yaml_kind kind, const char *name,
                    struct report *report)
{
    return has_kind(node, kind, name, yaml_kind_name(kind), report);
}

bool entry_is_mapping(const struct yaml_node *entry, const char *list, const char *example,
                      struct report *report)
{
    char what[WHAT_TEXT];
    snprintf(what, sizeof(what), "%s like %s", yaml_kind_name(YAML_MAPPING), example);
    return has_kind(entry, YAML_MAPPING, list, what, report);
}

void entry_unknown(const struct yaml_node *key, const char *section, const char *const *known,
                   struct report *report)
{
    const char *dot = section[0] != '\0' ? "." : "";
    const char *meant = spelling_nearest(key->text, known);
    if (meant != NULL)
        report_error(report, key->mark, "%s%s%s: there is no such key; did you mean %s?", section,
                     dot, key->text, meant);
    else
        report_error(report, key->mark, "%s%s%s: there is no such key", section, dot, key->text);
}

static void read_fields(const struct yaml_node *entry, const char *list,
                        const struct entry_field *fields, bool scalars, void *target,
                        struct report *report)
{
    const char *names[ENTRY_FIELDS_MAX + 1] = {NULL};
    for (unsigned i = 0; fields[i].name != NULL; i++) {
        assert(i < ENTRY_FIELDS_MAX);
        names[i] = fields[i].name;
    }
    for (const struct yaml_node *value = entry->children; value != NULL; value = value->next) {
        if (value->key->broken)
            continue;
        int which = value_choice(value->key->text, names);
        char full[64];
        if (which < 0) {
            entry_unknown(value->key, list, names, report);
            continue;
        }
        snprintf(full, sizeof(full), "%s.%s", list, fields[which].name);
        if (scalars && !entry_has_kind(value, YAML_SCALAR, full, report))
            continue;
        if (fields[which].set != NULL)
            fields[which].set(target, value, report);
        else
            *(char **)((char *)target + fields[which].offset) = memory_copy(value->text);
    }
}

void entry_read(const struct yaml_node *entry, const char *list, const struct entry_field *fields,
                void *target, struct report *report)
{
    read_fields(entry, list, fields, true, target, report);
}

void entry_read_any(const struct yaml_node *entry, const char *list,
                    const struct entry_field *fields, void *target, struct report *report)
{
    read_fields(entry, list, fields, false, target, report);
}

char *entry_secret(const struct yaml_node *value, const char *name, struct report *report)
{
    struct error error;
    bool exposed;
    char *secret = secret_load(value->text, &exposed, &error);
    if (secret == NULL)
        report_error(report, value->mark, "%s: %s %s", name, value->text, error.text);
    else if (exposed)
        report_warning(report, value->mark,
                       "%s: %s can be read or written by everybody; chmod 640 or 600", name,
                       value->text);
    return secret;
}
