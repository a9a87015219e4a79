#include "client/cli/fields.h"

#include <string.h>

bool field_next(const char **text, struct field *field)
{
    const char *word = *text + strspn(*text, " ");
    size_t len = strcspn(word, " ");
    size_t key_len = strcspn(word, "= ");
    if (len == 0)
        return false;
    *field = (struct field){word, key_len, word + len, 0};
    if (key_len < len) {
        field->value = word + key_len + 1;
        field->value_len = len - key_len - 1;
    }
    *text = word + len;
    return true;
}

static bool is(const char *at, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(at, text, len) == 0;
}

bool field_has_key(const struct field *field, const char *key)
{
    return is(field->key, field->key_len, key);
}

bool field_has_value(const struct field *field, const char *value)
{
    return is(field->value, field->value_len, value);
}

bool field_key_ends(const struct field *field, const char *end)
{
    size_t len = strlen(end);
    return field->key_len > len && memcmp(field->key + field->key_len - len, end, len) == 0;
}

static bool has_key_of(const struct field *field, const char *const *keys)
{
    while (*keys != NULL && !field_has_key(field, *keys))
        keys++;
    return *keys != NULL;
}

static bool is_number(const struct field *field)
{
    size_t sign = field->value_len > 0 && field->value[0] == '-';
    size_t digits = field->value_len - sign;
    if (digits == 0 || digits > 19 || (digits > 1 && field->value[sign] == '0'))
        return false;
    for (size_t i = sign; i < field->value_len; i++)
        if (field->value[i] < '0' || field->value[i] > '9')
            return false;
    return true;
}

enum field_kind field_kind(const struct field *field)
{
    /* A lock may be called "-", too; of the others, "-" says that there is none. */
    static const char *const names[] = {"resource", "node", "url", "peer", NULL};
    static const char *const words[] = {"token", "name", "user", "version", NULL};
    if (has_key_of(field, names))
        return FIELD_TEXT;
    if (field_has_value(field, "-"))
        return FIELD_NONE;
    if (has_key_of(field, words))
        return FIELD_TEXT;
    if (field_has_value(field, "yes") || field_has_value(field, "no"))
        return FIELD_TRUTH;
    return is_number(field) ? FIELD_NUMBER : FIELD_TEXT;
}

bool fields_alike(const char *line, const char *other)
{
    struct field a;
    struct field b;
    bool more;
    do {
        more = field_next(&line, &a);
        if (more != field_next(&other, &b))
            return false;
        if (more && (a.key_len != b.key_len || memcmp(a.key, b.key, a.key_len) != 0))
            return false;
    } while (more);
    return true;
}
