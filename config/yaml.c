#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    struct report *report;
    unsigned depth;
};

const char *yaml_kind_name(enum yaml_kind kind)
{
    static const char *const names[] = {
        [YAML_SCALAR] = "a scalar",
        [YAML_SEQUENCE] = "a list",
        [YAML_MAPPING] = "a mapping",
    };
    return names[kind];
}

void yaml_node_free(struct yaml_node *node)
{
    while (node != NULL) {
        struct yaml_node *next = node->next;
        yaml_node_free(node->key);
        yaml_node_free(node->children);
        free(node->text);
        free(node);
        node = next;
    }
}

static struct mark mark_of(const yaml_mark_t *mark)
{
    return (struct mark){mark->line + 1, mark->column + 1};
}

/* The next event; on a syntax error, report it in libyaml's words and return false. */
static bool next_event(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return true;
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem != NULL ? parser->problem : "cannot be read";
    if (parser->error == YAML_READER_ERROR)
        report_error(reader->report, (struct mark){1, 1}, "not UTF-8 text: %s at byte %zu", problem,
                     parser->problem_offset);
    else
        report_error(reader->report, mark_of(&parser->problem_mark), "not YAML: %s%s%s", problem,
                     parser->context != NULL ? " " : "",
                     parser->context != NULL ? parser->context : "");
    return false;
}

static struct yaml_node *new_node(enum yaml_kind kind, const yaml_event_t *event)
{
    struct yaml_node *node = calloc(1, sizeof(*node));
    if (node != NULL) {
        node->kind = kind;
        node->mark = mark_of(&event->start_mark);
    }
    return node;
}

/* --- scalars --- */

/* The end of "${NAME}" that begins at text, or NULL if it is none. */
static const char *variable_end(const char *text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    if (text[0] != '$' || text[1] != '{')
        return NULL;
    size_t len = strspn(text + 2, allowed);
    return len > 0 && text[2 + len] == '}' ? text + 2 + len + 1 : NULL;
}

/* Write `text` with its variables replaced to `out`. */
static bool expand_to(FILE *out, const char *text, struct mark mark, struct report *report)
{
    while (*text != '\0') {
        const char *end = variable_end(text);
        if (end != NULL) {
            char *name = strndup(text + 2, (size_t)(end - text) - 3);
            const char *value = name != NULL ? getenv(name) : NULL;
            if (value == NULL)
                report_error(report, mark, "the environment variable %s is not set",
                             name != NULL ? name : "");
            else
                fputs(value, out);
            free(name);
            if (value == NULL)
                return false;
            text = end;
        } else if (text[0] == '$' && text[1] != '$') {
            report_error(report, mark, "\"$\" begins a variable, ${NAME}; write $$ for a dollar");
            return false;
        } else {
            fputc(*text, out);
            text += text[0] == '$' ? 2 : 1;
        }
    }
    return true;
}

static char *expand(const char *text, struct mark mark, struct report *report)
{
    char *expanded = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&expanded, &len);
    if (out == NULL)
        return NULL;
    bool fine = expand_to(out, text, mark, report);
    fclose(out);
    if (fine)
        return expanded;
    free(expanded);
    return NULL;
}

static struct yaml_node *read_scalar(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    struct yaml_node *node = new_node(YAML_SCALAR, event);
    if (node == NULL)
        return NULL;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (strlen(text) != event->data.scalar.length)
        report_error(reader->report, node->mark, "a NUL byte has no place here");
    else
        node->text = expand(text, node->mark, reader->report);
    if (node->text != NULL)
        return node;
    /* An unset variable is a mistake like others: go on to find the rest. */
    node->broken = true;
    node->text = strdup("");
    return node;
}

/* --- collections --- */

static struct yaml_node *read_node(struct reader *reader, yaml_event_t *event);

static void check_doubled(struct reader *reader, const struct yaml_node *first,
                          const struct yaml_node *key)
{
    for (const struct yaml_node *other = first; other != NULL; other = other->next)
        if (strcmp(other->key->text, key->text) == 0)
            report_error(reader->report, key->mark,
                         "%s: given twice; the first is in line %zu, column %zu", key->text,
                         other->key->mark.line, other->key->mark.column);
}

/* Everything up to the end of a collection, whose start event has been read. */
static bool read_children(struct reader *reader, struct yaml_node *parent)
{
    struct yaml_node **last = &parent->children;
    yaml_event_type_t end =
        parent->kind == YAML_MAPPING ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    struct yaml_node *key = NULL;
    for (;;) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            break;
        if (event.type == end) {
            yaml_event_delete(&event);
            return true;
        }
        struct yaml_node *child = read_node(reader, &event);
        if (child == NULL)
            break;
        if (parent->kind == YAML_MAPPING && key == NULL) {
            key = child;
            if (key->kind == YAML_SCALAR) {
                check_doubled(reader, parent->children, key);
                continue;
            }
            report_error(reader->report, key->mark, "a key has to be a word, not %s",
                         yaml_kind_name(key->kind));
            break;
        }
        child->key = key;
        key = NULL;
        *last = child;
        last = &child->next;
    }
    yaml_node_free(key);
    return false;
}

static struct yaml_node *read_collection(struct reader *reader, enum yaml_kind kind,
                                         const yaml_event_t *event)
{
    struct yaml_node *node = new_node(kind, event);
    if (node == NULL)
        return NULL;
    bool fine = false;
    if (++reader->depth > YAML_DEPTH_MAX)
        report_error(reader->report, node->mark, "nested too deeply");
    else
        fine = read_children(reader, node);
    reader->depth--;
    if (fine)
        return node;
    yaml_node_free(node);
    return NULL;
}

static bool refuse_anchor_or_tag(struct reader *reader, const yaml_event_t *event,
                                 const yaml_char_t *anchor, const yaml_char_t *tag)
{
    struct mark mark = mark_of(&event->start_mark);
    if (anchor != NULL)
        report_error(reader->report, mark, "anchors are not supported (&%s); write the value out",
                     (const char *)anchor);
    else if (tag != NULL)
        report_error(reader->report, mark, "tags are not supported (%s); leave it out",
                     (const char *)tag);
    return anchor != NULL || tag != NULL;
}

/* The node that an event begins; consumes the event. */
static struct yaml_node *read_node(struct reader *reader, yaml_event_t *event)
{
    struct yaml_node *node = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        if (!refuse_anchor_or_tag(reader, event, event->data.scalar.anchor, event->data.scalar.tag))
            node = read_scalar(reader, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        if (!refuse_anchor_or_tag(reader, event, event->data.sequence_start.anchor,
                                  event->data.sequence_start.tag))
            node = read_collection(reader, YAML_SEQUENCE, event);
        break;
    case YAML_MAPPING_START_EVENT:
        if (!refuse_anchor_or_tag(reader, event, event->data.mapping_start.anchor,
                                  event->data.mapping_start.tag))
            node = read_collection(reader, YAML_MAPPING, event);
        break;
    case YAML_ALIAS_EVENT:
        report_error(reader->report, mark_of(&event->start_mark),
                     "aliases are not supported (*%s); write the value out",
                     (const char *)event->data.alias.anchor);
        break;
    default:
        report_error(reader->report, mark_of(&event->start_mark), "a value was expected here");
        break;
    }
    yaml_event_delete(event);
    return node;
}

/* --- the file --- */

static struct yaml_node *read_document(struct reader *reader)
{
    yaml_event_t event;
    if (!next_event(reader, &event)) /* the start of the stream */
        return NULL;
    yaml_event_delete(&event);
    if (!next_event(reader, &event))
        return NULL;
    bool empty = event.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
    if (empty) {
        report_error(reader->report, (struct mark){1, 1},
                     "the file is empty: at least `nodes` has to be given");
        return NULL;
    }
    if (!next_event(reader, &event))
        return NULL;
    struct yaml_node *root = read_node(reader, &event);
    if (root == NULL || !next_event(reader, &event)) /* the end of the document */
        return root;
    yaml_event_delete(&event);
    if (!next_event(reader, &event))
        return root;
    if (event.type != YAML_STREAM_END_EVENT)
        report_error(reader->report, mark_of(&event.start_mark),
                     "a second document begins here; a configuration is one");
    yaml_event_delete(&event);
    return root;
}

struct yaml_node *yaml_node_read(FILE *in, struct report *report)
{
    struct yaml_node *root = NULL;
    unsigned errors_before = report->errors;
    unsigned char *text = malloc(YAML_FILE_MAX + 1);
    if (text == NULL)
        return NULL;
    size_t len = fread(text, 1, YAML_FILE_MAX + 1, in);
    struct reader reader = {.report = report};
    if (ferror(in)) {
        report_error(report, (struct mark){1, 1}, "cannot be read");
    } else if (len > YAML_FILE_MAX) {
        report_error(report, (struct mark){1, 1}, "larger than 256 KiB: not a configuration");
    } else if (yaml_parser_initialize(&reader.parser)) {
        yaml_parser_set_input_string(&reader.parser, text, len);
        root = read_document(&reader);
        yaml_parser_delete(&reader.parser);
    }
    free(text);
    if (root == NULL && report->errors == errors_before)
        report_error(report, (struct mark){1, 1}, "not enough memory");
    return root;
}
