/*
 * /metrics: what Prometheus is told. docs/operations.md has what each means to an operator.
 */
#ifndef SERVER_ADMIN_METRICS_H
#define SERVER_ADMIN_METRICS_H

#include <stdint.h>

#include "protocol/text.h"

struct server;

void metrics_write(const struct server *server, struct text *text, int64_t now_ns);

#endif
