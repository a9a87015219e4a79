/*
 * All limits of redlockd that the configuration does not change.
 *
 * Sizes are in bytes. Durations have their unit in the name. Everything else is a count. When a
 * limit is reached, the daemon sends a reply or logs a line; nothing grows beyond a limit.
 */
#ifndef PROTOCOL_LIMITS_H
#define PROTOCOL_LIMITS_H

enum {
    /* Masters in one set. A uint32_t mask must be able to hold any subset of them. */
    LIMIT_NODES = 15,
    LIMIT_NODES_MIN = 3,
    LIMIT_NODE_NAME = 32,
    LIMIT_CLUSTER_NAME = 64,
    LIMIT_URL = 512,

    /* The line protocol (docs/protocol.txt). */
    LIMIT_LINE = 2048,
    LIMIT_RESOURCE = 256,
    LIMIT_TOKEN_BYTES = 20,
    LIMIT_TOKEN = 2 * LIMIT_TOKEN_BYTES,
    LIMIT_TAG = 32,
    LIMIT_TIME_DIGITS = 15,
    LIMIT_WAIT_MS = 24 * 3600 * 1000,
    LIMIT_REPLY = LIMIT_LINE,
    LIMIT_LISTING_LINES = 1000,

    /* One client connection: unread replies, lines of requests that have not started, pending
     * requests. */
    LIMIT_CLIENT_OUTPUT = 256 * 1024,
    LIMIT_CLIENT_PENDING_INPUT = 8 * LIMIT_LINE,
    LIMIT_CLIENT_REQUESTS = 1024,

    /* TLS handshakes with clients in progress. One pass of the event loop may have to advance all
     * of them, and each may take a millisecond of it. */
    LIMIT_HANDSHAKES = 64,

    /* Reads of one TLS connection from its socket in one pass of the event loop: two for each
     * record, and a handshake has four records in a row. */
    LIMIT_TLS_READS = 16,

    /* One pass of the event loop: lines of one client; lines of a client that was alone in the pass
     * before; connections accepted by one listener; and buffered input of one client. */
    LIMIT_READ_BUDGET = 16,
    LIMIT_READ_BUDGET_ALONE = 64,
    LIMIT_ACCEPT_BUDGET = 512,
    LIMIT_CLIENT_INPUT = 16 * 1024,

    /* The kernel's buffer for a TCP client, in each direction. By default the kernel buffers
     * megabytes for each client, and when its memory is used up, it drops the data of others. */
    LIMIT_SOCKET_BUFFER = 64 * 1024,

    /* The largest TCP segment. The kernel sends a segment as a whole, or waits for up to 200 ms.
     * Over loopback a segment could exceed the window that LIMIT_SOCKET_BUFFER leaves. */
    LIMIT_SEGMENT = LIMIT_SOCKET_BUFFER / 8,

    /* Users (auth): their number, the entries of each user, and the length of a secret. */
    LIMIT_USERS = 256,
    LIMIT_USER_NAME = 32,
    LIMIT_USER_PREFIXES = 32,
    LIMIT_USER_IDS = 32,
    LIMIT_SECRET_MIN = 16,
    LIMIT_SECRET = 256,

    /* Client addresses whose wrong secrets are remembered. */
    LIMIT_AUTH_THROTTLES = 4096,

    /* Rounds in flight in the daemon. */
    LIMIT_ROUNDS = 16384,

    /* Granted locks that the daemon remembers. A place is reserved for each HOLD among them. */
    LIMIT_LOCKS = 65536,
    LIMIT_HOLDS = 32768,

    /* Extensions of HOLDs in flight: as many as all links answer within a few milliseconds, so that
     * extensions that are due together do not time each other out. */
    LIMIT_RENEWALS = 256,

    /* BREAKs in progress. */
    LIMIT_BREAKS = 16,

    /* Resources that the daemon keeps for the sake of far waiters. */
    LIMIT_FAR_RESOURCES = 1024,

    /* Tokens whose extensions are counted. */
    LIMIT_EXTENDED = 32768,

    /* One link to a master: outstanding commands, and among them key probes, releases and votes.
     * Votes may not use all, so that releases have room; releases may not use all, so that the
     * guard has room. Bytes of a reply. Pending releases: enough for all HOLDs. Pending releases
     * outstanding at once: enough to hide a round trip, and few enough to let other commands
     * through. */
    LIMIT_LINK_COMMANDS = 4096,
    LIMIT_LINK_KEY_PROBES = 512,
    LIMIT_LINK_RELEASES = LIMIT_LINK_COMMANDS - 64,
    LIMIT_LINK_VOTES = 3072,
    LIMIT_LINK_REPLY = 64 * 1024,
    LIMIT_LINK_PENDING_RELEASES = LIMIT_HOLDS,
    LIMIT_LINK_RELEASES_UNDER_WAY = 64,

    /* Votes of one link that wait for the guard's probe; a sequence of yes votes counts as one. */
    LIMIT_LINK_KEPT = LIMIT_LINK_COMMANDS,

    /* Bytes read from one master in one pass of the event loop. */
    LIMIT_NODE_IO = 1024 * 1024,

    /* Releases in one command to a master. They block the master for about 50 microseconds. */
    LIMIT_BATCH = 64,

    /* The admin listener: connections, seconds for each, bytes of the request's headers and body,
     * and bytes of the response's body, twice what fifteen masters need. */
    LIMIT_ADMIN_CONNECTIONS = 32,
    LIMIT_ADMIN_SECONDS = 5,
    LIMIT_ADMIN_HEADERS = 8 * 1024,
    LIMIT_ADMIN_REQUEST_BODY = 1024,
    LIMIT_ADMIN_BODY = 512 * 1024,

    /* Keys and values on the masters. */
    LIMIT_KEY_PREFIX = 64,
    LIMIT_KEY = LIMIT_KEY_PREFIX + LIMIT_RESOURCE,
    LIMIT_RECORD = 448, /* the record of the guard, including the final NUL */
};

#endif
