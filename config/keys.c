#include "config/keys.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/memory.h"
#include "config/secret.h"
#include "config/value.h"
#include "protocol/suggest.h"

enum { KEYS_IN_SECTION_MAX = 16 };

void *keys_field(const struct key *key, void *target)
{
    return (char *)target + key->offset;
}

bool keys_check_kind(const struct yaml_node *node, enum yaml_kind kind, const char *name,
                     const char *what, struct report *report)
{
    if (what == NULL)
        what = yaml_kind_name(kind);
    if (node->broken)
        return false;
    if (yaml_node_is_empty(node))
        return report_error(report, node->position, "%s: has no value; write %s, or leave it out",
                            name, what);
    return node->kind == kind || report_error(report, node->position, "%s: must be %s, not %s",
                                              name, what, yaml_kind_name(node->kind));
}

bool keys_check_entry(const struct yaml_node *entry, const char *list, const char *example,
                      struct report *report)
{
    char what[128];
    snprintf(what, sizeof(what), "%s like %s", yaml_kind_name(YAML_MAPPING), example);
    return keys_check_kind(entry, YAML_MAPPING, list, what, report);
}

/* --- one value --- */

static bool fail(const struct key *key, const struct yaml_node *value, const char *wrong,
                 struct report *report)
{
    return report_error(report, value->position, "%s: \"%s\" %s", key->name, value->text, wrong);
}

/* The kinds of numbers: parsing and printing. */
static const struct {
    const char *(*read)(const char *text, int64_t *number);
    void (*print)(int64_t number, char buf[VALUE_PRINTED]);
} numbers[] = {
    [KEY_INTEGER] = {value_integer, value_print_integer},
    [KEY_DURATION] = {value_duration, value_print_duration},
    [KEY_RATE] = {value_rate, value_print_rate},
};

static bool set_number(const struct key *key, const struct yaml_node *value, int64_t *field,
                       struct report *report)
{
    char least[VALUE_PRINTED];
    char most[VALUE_PRINTED];
    int64_t number;
    const char *wrong = numbers[key->kind].read(value->text, &number);
    if (wrong != NULL)
        return fail(key, value, wrong, report);
    if (number >= key->least && number <= key->most) {
        *field = number;
        return true;
    }
    numbers[key->kind].print(key->least, least);
    numbers[key->kind].print(key->most, most);
    return report_error(report, value->position,
                        "%s: %s is out of range; it must be between %s and %s", key->name,
                        value->text, least, most);
}

static bool set_choice(const struct key *key, const struct yaml_node *value, unsigned *field,
                       struct report *report)
{
    char wrong[64] = "is not one of ";
    assert(key->size == sizeof(*field));
    for (unsigned i = 0; key->words[i] != NULL; i++) {
        size_t len = strlen(wrong);
        snprintf(wrong + len, sizeof(wrong) - len, "%s%s", i > 0 ? ", " : "", key->words[i]);
        if (strcmp(value->text, key->words[i]) != 0)
            continue;
        *field = i;
        return true;
    }
    return fail(key, value, wrong, report);
}

/* The error of a key prefix, or NULL. */
static const char *check_prefix(const char *text)
{
    static const char reserved[] = "redlockd:";
    if (strncmp(text, reserved, strlen(reserved)) == 0)
        return "is reserved for redlockd's own keys; choose another prefix";
    return value_has_space(text) ? "must not contain spaces or control characters" : NULL;
}

static bool check_text(const struct key *key, const struct yaml_node *value, struct report *report)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
    size_t len = strlen(value->text);
    bool fits = len >= (size_t)key->least && len <= (size_t)key->most;
    bool spelt = strspn(value->text, letters) == len;
    const char *wrong = NULL;
    if (key->kind == KEY_TEXT)
        return true;
    if (key->kind == KEY_NAME) {
        if (fits && spelt && strchr(value->text, ':') == NULL)
            return true;
        return report_error(report, value->position,
                            "%s: \"%s\" is not a valid name; write %d to %d of A-Z a-z 0-9 _ . -",
                            key->name, value->text, (int)key->least, (int)key->most);
    }
    if (!fits)
        return report_error(report, value->position, "%s: has %zu bytes; it must have %d to %d",
                            key->name, len, (int)key->least, (int)key->most);
    if (key->kind == KEY_PREFIX)
        wrong = check_prefix(value->text);
    else if (!spelt)
        wrong = "may contain only A-Z a-z 0-9 _ . : -";
    return wrong == NULL || fail(key, value, wrong, report);
}

static bool set_text(const struct key *key, const struct yaml_node *value, char **field,
                     struct report *report)
{
    if (!check_text(key, value, report))
        return false;
    free(*field);
    *field = memory_copy(value->text);
    return true;
}

/* Whether the folder of this path exists; a path without a folder may be anything. */
static bool has_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return false;
    char *folder = memory_copy(path);
    folder[slash > path ? slash - path : 1] = '\0';
    bool exists = access(folder, F_OK) == 0;
    secret_free(folder); /* it may be a part of a secret */
    return exists;
}

/* Errors show the name of the file, never the secret. */
static bool set_secret(const struct key *key, const struct yaml_node *value, char **field,
                       struct report *report)
{
    struct error error;
    bool exposed;
    *field = secret_load(value->text, &exposed, &error);
    /* The value may be the secret itself, by mistake, also one in base64 with slashes. The report
     * goes to the log. */
    if (*field == NULL && !has_folder(value->text) && access(value->text, F_OK) != 0)
        report_error(
            report, value->position,
            "%s: is not the path of a file; write the secret into a file, and its path here",
            key->name);
    else if (*field == NULL)
        report_error(report, value->position, "%s: %s %s", key->name, value->text, error.text);
    else if (exposed)
        report_warning(report, value->position,
                       "%s: %s is readable or writable by every user; chmod 640 or 600", key->name,
                       value->text);
    return *field != NULL;
}

static void read_words(const struct key *key, const struct yaml_node *list, void *field,
                       struct report *report)
{
    struct error error;
    int64_t count = 0;
    for (const struct yaml_node *value = list->children; value != NULL; value = value->next) {
        if (!keys_check_kind(value, YAML_SCALAR, key->name, NULL, report))
            continue;
        if (key->many != NULL && count++ == key->most) {
            report_error(report, value->position, "%s: more than %d; %s", key->name, (int)key->most,
                         key->many);
            return;
        }
        if (!key->parse(value->text, field, &error))
            fail(key, value, error.text, report);
    }
}

/* Reports mistakes, and returns false if the value is invalid. A list or section with mistakes
 * inside counts as valid. */
static bool read_value(const struct key *keys, const struct key *key, struct yaml_node *value,
                       void *target, struct report *report)
{
    bool is_list = key->kind == KEY_LIST || key->kind == KEY_WORDS;
    const enum yaml_kind kind = key->kind == KEY_SECTION ? YAML_MAPPING
                                : is_list                ? YAML_SEQUENCE
                                                         : YAML_SCALAR;
    void *field = keys_field(key, target);
    struct error error;
    const char *wrong;
    /* A section may be empty, for example when all of its keys are commented out. */
    if (key->kind == KEY_SECTION && yaml_node_is_empty(value))
        return true;
    if (!keys_check_kind(value, kind, key->name, NULL, report))
        return false;
    switch (key->kind) {
    case KEY_SECTION:
        keys_read(keys, key->name, value, target, report);
        return true;
    case KEY_LIST:
        key->read(target, value, report);
        return true;
    case KEY_WORDS:
        read_words(key, value, field, report);
        return true;
    case KEY_WORD:
        return key->parse(value->text, field, &error) || fail(key, value, error.text, report);
    case KEY_URL:
        return url_read(value, key->name, key->use, field, report);
    case KEY_TEXT:
    case KEY_NAME:
    case KEY_LABEL:
    case KEY_PREFIX:
        return set_text(key, value, field, report);
    case KEY_SECRET:
        return set_secret(key, value, field, report);
    case KEY_BOOLEAN:
        wrong = value_boolean(value->text, field);
        return wrong == NULL || fail(key, value, wrong, report);
    case KEY_INTEGER:
    case KEY_DURATION:
    case KEY_RATE:
        return set_number(key, value, field, report);
    case KEY_CHOICE:
        return set_choice(key, value, field, report);
    }
    assert(false);
    return false;
}

/* --- a section --- */

/* The name of the key inside this section; NULL if it is in another one. */
static const char *name_inside(const struct key *key, const char *section)
{
    size_t len = strlen(section);
    const char *dot = strrchr(key->name, '.');
    if (dot == NULL)
        return len == 0 ? key->name : NULL;
    bool inside = (size_t)(dot - key->name) == len && strncmp(key->name, section, len) == 0;
    return inside ? dot + 1 : NULL;
}

static const struct key *find(const struct key *keys, const char *section, const char *name)
{
    for (; keys->name != NULL; keys++) {
        const char *inside = name_inside(keys, section);
        if (inside != NULL && strcmp(inside, name) == 0)
            return keys;
    }
    return NULL;
}

static void report_unknown(const struct key *keys, const char *section,
                           const struct yaml_node *name, struct report *report)
{
    const char *known[KEYS_IN_SECTION_MAX + 1] = {NULL};
    size_t count = 0;
    for (; keys->name != NULL; keys++) {
        known[count] = name_inside(keys, section);
        count += known[count] != NULL;
        assert(count <= KEYS_IN_SECTION_MAX);
    }
    const char *meant = suggest_nearest(name->text, known);
    report_error(report, name->position, "%s%s%s: unknown key%s%s%s", section,
                 section[0] != '\0' ? "." : "", name->text, meant != NULL ? "; did you mean " : "",
                 meant != NULL ? meant : "", meant != NULL ? "?" : "");
}

void keys_read(const struct key *keys, const char *section, struct yaml_node *mapping, void *target,
               struct report *report)
{
    for (struct yaml_node *value = mapping->children; value != NULL; value = value->next) {
        if (value->key->broken)
            continue;
        const struct key *key = find(keys, section, value->key->text);
        if (key == NULL)
            report_unknown(keys, section, value->key, report);
        else if (!read_value(keys, key, value, target, report))
            value->broken = true;
    }
    for (const struct key *key = keys; key->name != NULL; key++) {
        const char *name = name_inside(key, section);
        if (name != NULL && key->missing != NULL && yaml_node_child(mapping, name) == NULL)
            report_error(report, mapping->position, "%s: missing; write %s", key->name,
                         key->missing);
    }
}

bool keys_equal(const struct key *key, const void *a, const void *b)
{
    const void *in_a = (const char *)a + key->offset;
    const void *in_b = (const char *)b + key->offset;
    if (key->equal != NULL)
        return key->equal(a, b);
    assert(key->size > 0 || key->kind == KEY_SECTION);
    if (key->kind == KEY_URL)
        return value_same_text(((const struct config_address *)in_a)->url,
                               ((const struct config_address *)in_b)->url);
    return key->is_text ? value_same_text(*(char *const *)in_a, *(char *const *)in_b)
                        : memcmp(in_a, in_b, key->size) == 0;
}
