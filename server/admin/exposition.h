/*
 * Metrics in the text format of Prometheus, version 0.0.4. Pure.
 *
 *     # HELP redlockd_clients Client connections.
 *     # TYPE redlockd_clients gauge
 *     redlockd_clients 3
 *
 * The caller keeps all lines of a metric together and passes valid names of metrics and labels.
 */
#ifndef SERVER_ADMIN_EXPOSITION_H
#define SERVER_ADMIN_EXPOSITION_H

#include <stdint.h>

#include "engine/histogram.h"
#include "protocol/text.h"

/* The metric whose HELP and TYPE were written last; its samples follow. The caller keeps name and
 * help valid until the samples are written. */
struct metric {
    struct text *text;
    const char *name;
};

struct metric exposition_metric(struct text *text, const char *name, const char *type,
                                const char *help);

/* Up to two labels; a NULL name ends them. Values may hold any bytes. */
struct label {
    const char *name;
    const char *value;
};
struct labels {
    struct label label[2];
};

#define LABEL(name, value)                 ((struct labels){{{name, value}}})
#define LABELS(name, value, second, other) ((struct labels){{{name, value}, {second, other}}})
#define NO_LABELS                          ((struct labels){{{0}}})

void exposition_number(const struct metric *metric, struct labels labels, uint64_t value);

/* Nanoseconds, written as seconds without rounding. */
void exposition_seconds(const struct metric *metric, struct labels labels, int64_t value_ns);

/* The buckets, the sum and the count, with at most one label. */
void exposition_histogram(const struct metric *metric, struct label label,
                          const struct histogram *histogram);

#endif
