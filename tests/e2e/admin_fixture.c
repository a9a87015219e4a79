#include "tests/e2e/admin_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/http.h"
#include "tests/e2e/port.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

int admin_port;

void admin_open(struct stage *stage, const char *test, const struct stage_plan *plan,
                const char *yaml)
{
    static char text[512];
    struct stage_plan with = plan != NULL ? *plan : (struct stage_plan){.over_unix = true};
    admin_port = port_free();
    snprintf(text, sizeof(text), "admin: http://127.0.0.1:%d\nlog: {level: debug}\n%s", admin_port,
             yaml);
    with.masters = 5;
    with.daemon.yaml = text;
    stage_open(stage, test, &with);
}

double admin_sample(const char *series)
{
    char *metrics = http_get(admin_port, "/metrics", 200);
    double value = -1;
    size_t len = strlen(series);
    for (char *line = metrics; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, series, len) == 0 && line[len] == ' ')
            value = strtod(line + len, NULL);
    }
    free(metrics);
    return value;
}

void admin_wait_sample(const char *series, double value)
{
    char what[256];
    snprintf(what, sizeof(what), "%s to be %g", series, value);
    struct waiting waiting = waiting_for(what);
    while (admin_sample(series) != value)
        waiting_pause(&waiting);
}

void admin_wait_page(const char *words)
{
    struct waiting waiting = waiting_for(words);
    for (;;) {
        char *page = http_get(admin_port, "/", 200);
        bool found = strstr(page, words) != NULL;
        free(page);
        if (found)
            return;
        waiting_pause(&waiting);
    }
}
