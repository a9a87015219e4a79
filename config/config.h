/*
 * Reads the configuration, a YAML file, into struct config, or reports every mistake in it.
 *
 * struct config is plain data. Durations are in nanoseconds; in the file they have a unit. The
 * caller of config_load() frees the configuration with config_free(). Between these two calls, only
 * a reload changes the configuration (config/diff.h).
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "config/log.h"
#include "config/url.h"
#include "config/users.h"
#include "protocol/limits.h"

/* Whether a listener requires a client certificate. */
enum config_client_certificate { CONFIG_CERTIFICATE_OPTIONAL, CONFIG_CERTIFICATE_REQUIRED };

/* Names of PEM files. config_load() has checked that each file can be loaded. */
struct config_tls {
    char *certificate; /* redlockd's certificate and intermediate certificates; NULL: none */
    char *key;         /* private key of the certificate */
    char *ca;          /* trusted CAs; NULL: none (listen), or those of the system (nodes) */
    enum config_client_certificate client_certificate; /* listener with a ca */
};

struct config_listen {
    struct config_address address;
    mode_t mode;   /* UNIX: mode of the socket file, default 0660 */
    gid_t group;   /* UNIX: group of the socket file; (gid_t)-1: unchanged */
    bool any_port; /* TCP: if the port is in use, take another one (--dev) */
    struct config_tls tls;
};

struct config_node {
    char *name;
    struct config_address address;
    char *username; /* NULL: the default user */
    char *password; /* contents of password_file without the final newline; NULL: none */
    bool durable;   /* keeps every confirmed write on disk, so a restart loses nothing */
    struct config_tls tls;
};

enum config_fence { CONFIG_FENCE_ON_REQUEST, CONFIG_FENCE_ALWAYS };

struct config {
    char *cluster;
    struct config_listen *listens;
    size_t listen_count;
    bool insecure;
    struct config_address admin;   /* host is NULL: off */
    struct config_address metrics; /* host is NULL: off */

    /* NULL: clients need not authenticate. */
    struct config_users *users;

    struct config_node nodes[LIMIT_NODES];
    unsigned node_count;

    struct {
        char *key_prefix;
        int64_t max_ttl_ns;
        int64_t min_validity_ns;
        int64_t clock_drift_ppm; /* clock_drift_rate in millionths: 1% is 10000 */
        int64_t clock_drift_margin_ns;
        int64_t max_hold_ns;
        int64_t max_extensions;
        int64_t fence_ttl_ns;
        enum config_fence fence;
    } locks;

    struct {
        int64_t node_timeout_ns;
        int64_t backoff_min_ns;
        int64_t backoff_max_ns;
    } rounds;

    struct {
        int64_t clients;
        int64_t clients_per_address; /* 0: no separate limit */
        int64_t unauthenticated;
        int64_t auth_timeout_ns;
        int64_t waiters;
        int64_t waiters_per_resource;
    } limits;

    struct {
        enum config_log_level level;
        enum config_log_format format;
    } log;
};

/* CONFIG_DEV is for --dev, which starts its own masters: the file must not have nodes. */
enum config_mode { CONFIG_NORMAL, CONFIG_DEV };

/*
 * Read a file ("-" for standard input). Returns a configuration that passed every check, or NULL.
 * Writes all mistakes and warnings to `report`, one per line, in the order of the file. A YAML
 * syntax error hides the mistakes after it. An example of a line:
 *
 *     redlockd.yaml:12:14: locks.max_ttl: "60" has no unit; write 60s, 1m or 500ms
 */
struct config *config_load(const char *path, enum config_mode mode, FILE *report);

/* The defaults, for --dev without a file: listens on tcp://127.0.0.1:7335, no nodes. */
struct config *config_defaults(void);

void config_free(struct config *config);

#endif
