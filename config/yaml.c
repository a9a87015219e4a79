#include "config/yaml.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/memory.h"
#include "protocol/text.h"

struct reader {
    yaml_parser_t parser;
    struct report *report;
    const unsigned char *file;
    size_t file_len;
    unsigned depth;
    unsigned nodes;
};

const char *yaml_kind_name(enum yaml_kind kind)
{
    static const char *const names[] = {
        [YAML_SCALAR] = "a single value",
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

const struct yaml_node *yaml_node_child(const struct yaml_node *mapping, const char *key)
{
    for (const struct yaml_node *child = mapping->children; child != NULL; child = child->next)
        if (!child->key->broken && strcmp(child->key->text, key) == 0)
            return child;
    return NULL;
}

bool yaml_node_is_empty(const struct yaml_node *node)
{
    return node->kind == YAML_SCALAR && !node->broken && !node->quoted && node->text[0] == '\0';
}

/* --- errors of libyaml --- */

static struct position position_of(const yaml_mark_t *mark)
{
    return (struct position){mark->line + 1, mark->column + 1};
}

static struct position position_of_byte(const struct reader *reader, size_t offset)
{
    struct position position = {1, 1};
    for (size_t i = 0; i < offset && i < reader->file_len; i++) {
        if (reader->file[i] == '\n')
            position = (struct position){position.line + 1, 1};
        else if (!utf8_continues(reader->file[i]))
            position.column++;
    }
    return position;
}

static bool is_tab(const struct reader *reader, const yaml_mark_t *mark)
{
    size_t characters = 0;
    for (size_t i = 0; i < reader->file_len; i++)
        if (!utf8_continues(reader->file[i]) && characters++ == mark->index)
            return reader->file[i] == '\t';
    return false;
}

static void report_bytes(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    struct position position = position_of_byte(reader, parser->problem_offset);
    bool control = strstr(parser->problem, "control") != NULL;
    report_error(
        reader->report, position,
        control ? "control character 0x%02x is not allowed"
                : "byte 0x%02x is not valid UTF-8; save the file as UTF-8",
        (unsigned)(control ? parser->problem_value : reader->file[parser->problem_offset]));
}

static void report_syntax(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    struct position position = position_of(&parser->problem_mark);
    if (is_tab(reader, &parser->problem_mark)) {
        report_error(reader->report, position, "not YAML: tab character; indent with spaces");
        return;
    }
    char began[64] = "";
    if (parser->context != NULL && parser->context_mark.line != parser->problem_mark.line)
        snprintf(began, sizeof(began), " that begins in line %zu", parser->context_mark.line + 1);
    report_error(reader->report, position, "not YAML: %s%s%s%s", parser->problem,
                 parser->context != NULL ? " " : "", parser->context != NULL ? parser->context : "",
                 began);
}

/* Read the next event. Returns false after a failure, which has been reported. */
static bool next_event(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return true;
    if (reader->parser.error == YAML_READER_ERROR)
        report_bytes(reader);
    else if (reader->parser.error == YAML_SCANNER_ERROR ||
             reader->parser.error == YAML_PARSER_ERROR)
        report_syntax(reader);
    else
        report_error(reader->report, position_of(&reader->parser.mark), "out of memory");
    return false;
}

/* --- scalars --- */

/* `in` begins with "$". Append the value of the variable there, or a dollar sign for "$$", to
 * `out`. Returns the rest of the text, or NULL on an error. */
static const char *expand_dollar(struct reader *reader, struct position position, const char *in,
                                 struct text *out)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    if (in[1] == '$') {
        text_byte(out, '$');
        return in + 2;
    }
    size_t len = in[1] == '{' ? strspn(in + 2, allowed) : 0;
    if (len == 0 || in[2 + len] != '}') {
        report_error(reader->report, position,
                     "a $ begins a variable, ${NAME}; write $$ for a dollar");
        return NULL;
    }
    char name[YAML_SCALAR_MAX + 1];
    memcpy(name, in + 2, len);
    name[len] = '\0';
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0') {
        report_error(reader->report, position, "the environment variable %s is %s", name,
                     value == NULL ? "not set" : "empty");
        return NULL;
    }
    text_string(out, value);
    return in + 2 + len + 1;
}

/* Replace the variables of a value. On an error the value is marked as broken. */
static void expand(struct reader *reader, struct yaml_node *node)
{
    char buf[YAML_SCALAR_MAX + 1];
    struct text out = {.buf = buf, .size = sizeof(buf)};
    if (node->kind != YAML_SCALAR || strchr(node->text, '$') == NULL)
        return;
    const char *in = node->text;
    while (in != NULL && *in != '\0') {
        size_t plain = strcspn(in, "$");
        text_bytes(&out, in, plain);
        in += plain;
        if (*in == '$')
            in = expand_dollar(reader, node->position, in, &out);
    }
    node->broken = in == NULL || out.len > YAML_SCALAR_MAX;
    if (in != NULL && node->broken)
        report_error(reader->report, node->position,
                     "longer than %d bytes after its variables are replaced", YAML_SCALAR_MAX);
    if (node->broken)
        return;
    buf[out.len] = '\0';
    free(node->text);
    node->text = memory_copy(buf);
}

/* Mark a scalar as broken. The caller has already reported the error. */
static void make_broken(struct yaml_node *scalar)
{
    scalar->broken = true;
    scalar->text = memory_copy("");
}

static void read_scalar(struct reader *reader, struct yaml_node *node, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (len <= YAML_SCALAR_MAX && strlen(text) == len) {
        node->text = memory_copy(text);
        return;
    }
    if (len > YAML_SCALAR_MAX)
        report_error(reader->report, node->position, "longer than %d bytes", YAML_SCALAR_MAX);
    else
        report_error(reader->report, node->position, "a NUL byte is not allowed");
    make_broken(node);
}

/* --- lists and mappings --- */

static struct yaml_node *read_node(struct reader *reader, yaml_event_t *event);

/* Mark an invalid or duplicate key as broken, so that its value is ignored. */
static void check_key(struct reader *reader, const struct yaml_node *mapping, struct yaml_node *key)
{
    if (key->kind != YAML_SCALAR) {
        report_error(reader->report, key->position, "a key must be a word, not %s",
                     yaml_kind_name(key->kind));
        key->broken = true;
    }
    if (key->broken)
        return;
    const struct yaml_node *first = yaml_node_child(mapping, key->text);
    if (first == NULL)
        return;
    report_error(reader->report, key->position,
                 "%s: given twice; the first is in line %zu, column %zu", key->text,
                 first->key->position.line, first->key->position.column);
    key->broken = true;
}

/* Read a list or mapping to its end. Its start event has been read. */
static bool read_children(struct reader *reader, struct yaml_node *parent)
{
    struct yaml_node **last = &parent->children;
    struct yaml_node *key = NULL;
    yaml_event_t event;
    while (next_event(reader, &event)) {
        if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return true;
        }
        struct yaml_node *child = read_node(reader, &event);
        if (child == NULL)
            break;
        if (parent->kind == YAML_MAPPING && key == NULL) {
            key = child;
            check_key(reader, parent, key);
            continue;
        }
        expand(reader, child);
        child->key = key;
        key = NULL;
        *last = child;
        last = &child->next;
    }
    yaml_node_free(key);
    return false;
}

/* Report anchors and tags as errors. The file is read on, to find further mistakes. */
static void refuse_anchor_and_tag(struct reader *reader, struct position position,
                                  const yaml_char_t *anchor, const yaml_char_t *tag)
{
    static const char core[] = "tag:yaml.org,2002:";
    if (anchor != NULL)
        report_error(reader->report, position,
                     "anchors are not supported (&%s); write the value out", (const char *)anchor);
    if (tag == NULL)
        return;
    const char *name = (const char *)tag;
    bool is_core = strncmp(name, core, strlen(core)) == 0;
    report_error(reader->report, position, "tags are not supported (%s%s); leave it out",
                 is_core ? "!!" : "", is_core ? name + strlen(core) : name);
}

/* Fill a node from its first event. Returns false if the file cannot be read any further. */
static bool fill_node(struct reader *reader, struct yaml_node *node, const yaml_event_t *event)
{
    if (event->type == YAML_ALIAS_EVENT) {
        report_error(reader->report, node->position,
                     "aliases are not supported (*%s); write the value out",
                     (const char *)event->data.alias.anchor);
        make_broken(node);
        return true;
    }
    if (event->type == YAML_SCALAR_EVENT) {
        refuse_anchor_and_tag(reader, node->position, event->data.scalar.anchor,
                              event->data.scalar.tag);
        read_scalar(reader, node, event);
        return true;
    }
    if (event->type == YAML_SEQUENCE_START_EVENT) {
        node->kind = YAML_SEQUENCE;
        refuse_anchor_and_tag(reader, node->position, event->data.sequence_start.anchor,
                              event->data.sequence_start.tag);
    } else {
        assert(event->type == YAML_MAPPING_START_EVENT); /* no other event begins a node */
        node->kind = YAML_MAPPING;
        refuse_anchor_and_tag(reader, node->position, event->data.mapping_start.anchor,
                              event->data.mapping_start.tag);
    }
    return read_children(reader, node);
}

/* Read the node that an event begins, and free the event. Returns NULL if the file cannot be read
 * any further. */
static struct yaml_node *read_node(struct reader *reader, yaml_event_t *event)
{
    struct yaml_node *node = memory_zeroed(1, sizeof(*node));
    bool fine = false;
    node->position = position_of(&event->start_mark);
    reader->nodes++;
    reader->depth++;
    if (reader->depth > YAML_DEPTH_MAX)
        report_error(reader->report, node->position, "nested too deeply");
    else if (reader->nodes > YAML_NODES_MAX)
        report_error(reader->report, node->position,
                     "too large: more than %d values, lists and mappings", YAML_NODES_MAX);
    else
        fine = fill_node(reader, node, event);
    reader->depth--;
    yaml_event_delete(event);
    if (fine)
        return node;
    yaml_node_free(node);
    return NULL;
}

/* --- the file --- */

/* Read the root of the only document, or return NULL. */
static struct yaml_node *read_stream(struct reader *reader)
{
    struct yaml_node *root = NULL;
    bool ended = false;
    yaml_event_t event;
    while (!ended && next_event(reader, &event)) {
        bool begins = event.type == YAML_DOCUMENT_START_EVENT;
        ended = event.type == YAML_STREAM_END_EVENT || (begins && root != NULL);
        if (begins && ended)
            report_error(reader->report, position_of(&event.start_mark),
                         "a second document begins here; the file must contain only one");
        if (begins || ended || event.type == YAML_STREAM_START_EVENT ||
            event.type == YAML_DOCUMENT_END_EVENT)
            yaml_event_delete(&event);
        else if ((root = read_node(reader, &event)) == NULL)
            return NULL;
    }
    if (ended && root != NULL && !yaml_node_is_empty(root))
        return root;
    yaml_node_free(root);
    if (!ended)
        return NULL;
    /* An empty file is an empty mapping. */
    root = memory_zeroed(1, sizeof(*root));
    root->kind = YAML_MAPPING;
    root->position = (struct position){1, 1};
    return root;
}

static struct yaml_node *parse(struct reader *reader)
{
    if (!yaml_parser_initialize(&reader->parser)) {
        report_error(reader->report, (struct position){1, 1}, "out of memory");
        return NULL;
    }
    /* If libyaml guessed the encoding, it would accept UTF-16, and all positions would be wrong. */
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, reader->file, reader->file_len);
    struct yaml_node *root = read_stream(reader);
    yaml_parser_delete(&reader->parser);
    return root;
}

struct yaml_node *yaml_node_read(FILE *in, struct report *report)
{
    const struct position begin = {1, 1};
    struct yaml_node *root = NULL;
    unsigned char *file = memory_zeroed(1, YAML_FILE_MAX + 1);
    size_t len = fread(file, 1, YAML_FILE_MAX + 1, in);
    struct reader reader = {.report = report, .file = file, .file_len = len};
    if (ferror(in))
        report_error(report, begin, "cannot be read: %s", strerror(errno));
    else if (len > YAML_FILE_MAX)
        report_error(report, begin, "larger than %d KiB", YAML_FILE_MAX / 1024);
    else
        root = parse(&reader);
    free(file);
    return root;
}
