/*
 * The configuration: a YAML file -> struct config, or every mistake in it.
 *
 * Data only. Durations are in nanoseconds, as everywhere inside; the file gives them with a unit.
 * config_load() allocates, config_free() releases; in between nothing changes it but a reload
 * (config/diff.h).
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

/* Whose certificate a listener wants to see. */
enum config_client_certificate { CONFIG_CERTIFICATE_OPTIONAL, CONFIG_CERTIFICATE_REQUIRED };

/* Files in PEM, by their names; each was fine when the configuration was read. */
struct config_tls {
    char *certificate; /* ours, and those between it and its CA; NULL without one */
    char *key;         /* of the certificate */
    char *ca;          /* whose certificates are believed; NULL: nobody's (listen), or what the
                          system believes (nodes) */
    enum config_client_certificate client_certificate; /* of a listener with a ca */
};

struct config_listen {
    struct config_address address;
    mode_t mode;   /* UNIX: of the socket file, default 0660 */
    gid_t group;   /* UNIX: owner group of the socket file; (gid_t)-1 = leave it */
    bool any_port; /* TCP: where the port is taken, another will do (--dev) */
    struct config_tls tls;
};

struct config_node {
    char *name;
    struct config_address address;
    char *username; /* NULL without one */
    char *password; /* NULL without one; read from password_file, final newline cut */
    bool durable;   /* it keeps on disk whatever it has answered: a restart is harmless */
    struct config_tls tls;
};

enum config_fence { CONFIG_FENCE_ON_REQUEST, CONFIG_FENCE_ALWAYS };

struct config {
    char *cluster;
    struct config_listen *listens;
    size_t listen_count;
    bool insecure;
    struct config_address admin; /* no host: off */

    /* NULL: nobody has to authenticate. */
    struct config_users *users;

    struct config_node nodes[LIMIT_NODES];
    unsigned node_count;

    struct {
        char *key_prefix;
        int64_t max_ttl_ns;
        int64_t min_validity_ns;
        int64_t clock_drift_ppm; /* clock_drift_rate, in millionths: 1% is 10000 */
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
        int64_t clients_per_address; /* 0: as many as there may be */
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

/* Where --dev differs from a real set: it brings its own nodes, so the file must name none. */
enum config_mode { CONFIG_NORMAL, CONFIG_DEV };

/*
 * Read a file ("-" for standard input). On success returns a configuration that passed every check;
 * otherwise NULL. Mistakes and warnings are written to `report`, one a line, all of them in one
 * pass (save what lies behind broken YAML), in the order of the file:
 *
 *     redlockd.yaml:12:14: locks.max_ttl: "60" has no unit; write 60s, 1m or 500ms
 */
struct config *config_load(const char *path, enum config_mode mode, FILE *report);

/* The defaults alone, for --dev without a file: listens on tcp://127.0.0.1:7335, no nodes. */
struct config *config_defaults(void);

void config_free(struct config *config);

#endif
