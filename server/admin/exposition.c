#include "server/admin/exposition.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "protocol/units.h"

struct metric exposition_metric(struct text *text, const char *name, const char *type,
                                const char *help)
{
    text_format(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    return (struct metric){text, name};
}

/* Only these three characters are special inside the quotes. */
static void write_value(struct text *text, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\n') {
            text_string(text, "\\n");
            continue;
        }
        if (*value == '\\' || *value == '"')
            text_string(text, "\\");
        text_byte(text, *value);
    }
}

static void begin_sample(const struct metric *metric, const char *suffix, struct labels labels)
{
    const char *before = "{";
    text_string(metric->text, metric->name);
    text_string(metric->text, suffix);
    for (unsigned i = 0; i < 2 && labels.label[i].name != NULL; i++) {
        text_string(metric->text, before);
        text_string(metric->text, labels.label[i].name);
        text_string(metric->text, "=\"");
        write_value(metric->text, labels.label[i].value);
        text_string(metric->text, "\"");
        before = ",";
    }
    text_string(metric->text, before[0] == ',' ? "} " : " ");
}

/* text_number() takes a signed number, so the top bit is masked off. It is 0 for centuries of
 * counting. */
static void write_number(struct text *text, uint64_t value)
{
    text_number(text, (int64_t)(value & INT64_MAX));
}

void exposition_number(const struct metric *metric, struct labels labels, uint64_t value)
{
    begin_sample(metric, "", labels);
    write_number(metric->text, value);
    text_string(metric->text, "\n");
}

static void write_seconds(struct text *text, int64_t value_ns)
{
    uint64_t magnitude = value_ns < 0 ? -(uint64_t)value_ns : (uint64_t)value_ns;
    uint64_t whole = magnitude / NS_PER_S;
    uint64_t fraction = magnitude % NS_PER_S;
    int digits = 9;
    for (; digits > 0 && fraction % 10 == 0; digits--)
        fraction /= 10;
    text_format(text, "%s%" PRIu64, value_ns < 0 ? "-" : "", whole);
    if (digits > 0)
        text_format(text, ".%0*" PRIu64, digits, fraction);
}

void exposition_seconds(const struct metric *metric, struct labels labels, int64_t value_ns)
{
    begin_sample(metric, "", labels);
    write_seconds(metric->text, value_ns);
    text_string(metric->text, "\n");
}

/* Buckets are cumulative: each counts all values up to its bound. */
void exposition_histogram(const struct metric *metric, struct label label,
                          const struct histogram *histogram)
{
    bool labelled = label.name != NULL;
    const struct labels all = {{label}};
    uint64_t count = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        char seconds[32] = "+Inf";
        if (i < HISTOGRAM_BUCKETS - 1)
            snprintf(seconds, sizeof(seconds), "%g", (double)histogram_bound_ns(i) / NS_PER_S);
        struct label bound = {"le", seconds};
        count += histogram->counts[i];
        begin_sample(metric, "_bucket",
                     labelled ? (struct labels){{label, bound}} : (struct labels){{bound}});
        write_number(metric->text, count);
        text_string(metric->text, "\n");
    }
    begin_sample(metric, "_sum", all);
    write_seconds(metric->text, (int64_t)(histogram->sum_ns & INT64_MAX));
    text_string(metric->text, "\n");
    begin_sample(metric, "_count", all);
    write_number(metric->text, count);
    text_string(metric->text, "\n");
}
