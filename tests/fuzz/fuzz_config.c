/*
 * Fuzzes config_load() with any bytes as a configuration. Either the configuration is refused and
 * the report says why, in printable lines, or every value is within the ranges that the rest of the
 * daemon relies on.
 *
 * Nothing outside of the input is read: this file replaces the functions that read a password file
 * and that look up a group.
 */
#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/listens.h"
#include "config/memory.h"
#include "config/secret.h"
#include "engine/round/validity.h"
#include "tests/fuzz/fuzz.h"

enum { REPORT_BYTES_MAX = 1024 * 1024 };

static char report[REPORT_BYTES_MAX];

/* --- replacements --- */

char *secret_load(const char *path, bool *exposed, struct error *error)
{
    assert(path != NULL);
    *exposed = strstr(path, "shown") != NULL;
    if (path[0] == '/')
        return memory_copy(path);
    snprintf(error->text, sizeof(error->text), "cannot be read: %s", strerror(ENOENT));
    return NULL;
}

void secret_free(char *secret)
{
    free(secret);
}

struct group *getgrnam(const char *name)
{
    static struct group only = {.gr_gid = 7};
    return strcmp(name, "lock") == 0 ? &only : NULL;
}

/* --- what must hold --- */

/* Check a line "stdin:1:1: text", and return the text. The last line may instead tell how many
 * lines are left out. */
static const char *check_line(const char *line, bool last)
{
    size_t row;
    size_t column;
    int text = 0;
    int got = sscanf(line, "stdin:%zu:%zu: %n", &row, &column, &text);
    if (last && got == 1 && strstr(line, " more lines are left out") != NULL)
        return "warning: ";
    assert(got == 2);
    assert(row >= 1);
    assert(column >= 1);
    assert(text > 0);
    for (const char *at = line; *at != '\0'; at++) {
        assert(*at >= 0x20);
        assert(*at < 0x7f);
    }
    return line + text;
}

/* A refused configuration has an error; an accepted one only has warnings. */
static void check_report(size_t len, bool refused)
{
    assert(len > 0 || !refused);
    assert(len < sizeof(report) - 1);
    report[len] = '\0';
    for (char *line = report; line < report + len;) {
        char *end = strchr(line, '\n');
        assert(end != NULL);
        *end = '\0';
        const char *text = check_line(line, end + 1 == report + len);
        assert(refused || strncmp(text, "warning: ", 9) == 0);
        line = end + 1;
    }
}

static void check_address(const struct config_address *address)
{
    assert(address->url != NULL);
    assert(strlen(address->url) <= LIMIT_URL);
    assert((address->kind == ADDRESS_TCP) == (address->host != NULL));
    assert((address->kind == ADDRESS_UNIX) == (address->path != NULL));
}

static void check_listens(const struct config *config)
{
    assert(config->listen_count >= 1);
    assert(config->listen_count <= LISTENS_MAX);
    for (size_t i = 0; i < config->listen_count; i++) {
        check_address(&config->listens[i].address);
        assert(config->listens[i].mode <= 0777);
    }
}

static void check_nodes(const struct config *config, enum config_mode mode)
{
    unsigned count = config->node_count;
    assert(mode == CONFIG_DEV ? count == 0 : count >= LIMIT_NODES_MIN);
    assert(mode == CONFIG_DEV || count % 2 == 1);
    assert(count <= LIMIT_NODES);
    for (unsigned i = 0; i < count; i++) {
        const struct config_node *node = &config->nodes[i];
        assert(node->name != NULL);
        assert(strlen(node->name) >= 1);
        assert(strlen(node->name) <= LIMIT_NODE_NAME);
        assert(node->username == NULL || node->password != NULL);
        check_address(&node->address);
        for (unsigned other = 0; other < i; other++)
            assert(strcmp(node->name, config->nodes[other].name) != 0);
    }
}

/* The ranges of numbers that config.c promises to the engine. */
static void check_numbers(const struct config *config)
{
    const struct drift drift = {config->locks.clock_drift_ppm, config->locks.clock_drift_margin_ns};
    int64_t max_ttl_ns = config->locks.max_ttl_ns;
    assert(drift.rate_ppm >= 0);
    assert(drift.margin_ns > 0);
    assert(config->rounds.node_timeout_ns > 0);
    assert(config->locks.min_validity_ns > 0);
    assert(max_ttl_ns > drift_of(&drift, max_ttl_ns) + config->locks.min_validity_ns +
                            config->rounds.node_timeout_ns);
    assert(config->locks.fence_ttl_ns >= max_ttl_ns);
    assert(config->locks.max_hold_ns >= max_ttl_ns);
    assert(config->locks.max_extensions >= 1);
    assert(config->rounds.backoff_min_ns > 0);
    assert(config->rounds.backoff_max_ns >= config->rounds.backoff_min_ns);
    assert(config->limits.clients >= 1);
    assert(config->limits.waiters >= 1);
    assert(config->limits.waiters_per_resource >= 1);
    assert(config->locks.fence <= CONFIG_FENCE_ALWAYS);
    assert(config->log.level <= CONFIG_LOG_ERROR);
    assert(config->log.format <= CONFIG_LOG_JSON);
}

static void check_texts(const struct config *config)
{
    assert(strlen(config->cluster) >= 1);
    assert(strlen(config->cluster) <= LIMIT_CLUSTER_NAME);
    assert(strlen(config->locks.key_prefix) <= LIMIT_KEY_PREFIX);
    assert(strchr(config->locks.key_prefix, ' ') == NULL);
    assert(strncmp(config->locks.key_prefix, "redlockd:", 9) != 0);
}

static void check_file(const uint8_t *bytes, size_t len, enum config_mode mode)
{
    FILE *real = stdin;
    FILE *out = fmemopen(report, sizeof(report), "w");
    /* fmemopen() refuses an empty buffer. */
    FILE *in = len > 0 ? fmemopen((void *)(uintptr_t)bytes, len, "r") : fopen("/dev/null", "re");
    assert(in != NULL);
    assert(out != NULL);
    stdin = in;
    struct config *config = config_load("-", mode, out);
    stdin = real;
    fclose(in);
    fflush(out);
    long printed = ftell(out);
    fclose(out);
    assert(printed >= 0);
    check_report((size_t)printed, config == NULL);
    if (config != NULL) {
        check_listens(config);
        check_nodes(config, mode);
        check_numbers(config);
        check_texts(config);
    }
    config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    setenv("NAME", "value", 1);
    check_file(bytes, len, CONFIG_NORMAL);
    check_file(bytes, len, CONFIG_DEV);
    return 0;
}
