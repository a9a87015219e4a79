/*
 * Metrics in the text format of Prometheus, version 0.0.4. Pure.
 *
 *     # HELP redlockd_clients Connections of clients.
 *     # TYPE redlockd_clients gauge
 *     redlockd_clients 3
 *
 * The caller sees to it that a metric's lines come together, and that names and labels are such.
 */
#ifndef SERVER_ADMIN_EXPOSITION_H
#define SERVER_ADMIN_EXPOSITION_H

#include <stdint.h>

#include "engine/histogram.h"
#include "protocol/text.h"

/* HELP and TYPE; what follows are its samples. The name, and the help, live as long as those. */
struct metric {
    struct text *text;
    const char *name;
};

struct metric exposition_metric(struct text *text, const char *name, const char *type,
                                const char *help);

/* Up to two labels; NULL ends them. Values may hold any bytes. */
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

/* Nanoseconds as seconds, exactly. */
void exposition_seconds(const struct metric *metric, struct labels labels, int64_t value_ns);

/* The buckets, the sum and the count; at most one label. */
void exposition_histogram(const struct metric *metric, struct label label,
                          const struct histogram *histogram);

#endif
