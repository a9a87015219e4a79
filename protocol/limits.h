/*
 * Every bound of redlockd that no configuration changes, in one place.
 *
 * Sizes are in bytes, counts in pieces, durations carry their unit in the name. A bound that is met
 * has a reply or a log line of its own; nothing grows past these numbers.
 */
#ifndef PROTOCOL_LIMITS_H
#define PROTOCOL_LIMITS_H

enum {
    /* Masters in one set. A set of nodes is kept in a uint32_t mask. */
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

    /* One client connection: answers not read yet, requests not started yet, requests under way. */
    LIMIT_CLIENT_OUTPUT = 256 * 1024,
    LIMIT_CLIENT_PENDING_INPUT = 8 * LIMIT_LINE,
    LIMIT_CLIENT_REQUESTS = 1024,

    /* TLS handshakes under way with clients: what is ready at once is done within one pass of the
     * loop, and each may take a millisecond of it. */
    LIMIT_HANDSHAKES = 64,

    /* How often a TLS connection reads from its socket in one pass of the loop: twice for each
     * record, and a handshake has four in a row. */
    LIMIT_TLS_READS = 16,

    /* One pass of the loop: lines of one client, also of one who had the pass before for himself,
     * and connections accepted by one listener, before it is the turn of others; and bytes of a
     * client that wait for its next turn. */
    LIMIT_READ_BUDGET = 16,
    LIMIT_READ_BUDGET_ALONE = 64,
    LIMIT_ACCEPT_BUDGET = 512,
    LIMIT_CLIENT_INPUT = 16 * 1024,

    /* What the kernel keeps for a client over TCP, in each direction: left to itself it keeps
     * megabytes for each, and where it has no more it drops what others send. */
    LIMIT_SOCKET_BUFFER = 64 * 1024,

    /* ... and what is sent at once: the kernel sends a segment whole or, until 200 ms have passed,
     * not at all, and by loopback one may be larger than what this buffer lets the other side send.
     */
    LIMIT_SEGMENT = LIMIT_SOCKET_BUFFER / 8,

    /* Users (auth): how many, what each may be given, and the length of a secret. */
    LIMIT_USERS = 256,
    LIMIT_USER_NAME = 32,
    LIMIT_USER_PREFIXES = 32,
    LIMIT_USER_IDS = 32,
    LIMIT_SECRET_MIN = 16,
    LIMIT_SECRET = 256,

    /* Origins whose wrong secrets are remembered. */
    LIMIT_AUTH_THROTTLES = 4096,

    /* The daemon as a whole: requests that still have a command under way on some master. */
    LIMIT_ROUNDS = 16384,

    /* Locks that the daemon has granted and remembers; those with HOLD among them have their place
     * for sure. */
    LIMIT_LOCKS = 65536,
    LIMIT_HOLDS = 32768,

    /* Extensions of HOLDs under way: what all links together answer within a few milliseconds, so
     * that many that are due at once do not time each other out. */
    LIMIT_RENEWALS = 256,

    /* Locks that are being released by force. */
    LIMIT_BREAKS = 16,

    /* Resources that are kept for the sake of far waiters. */
    LIMIT_SOUGHT = 1024,

    /* Tokens whose extensions are counted. */
    LIMIT_EXTENDED = 32768,

    /* One link to a master: commands not answered yet (votes may use only a part, so that releases
     * always have room, and releases only so many that the guard has), looks at keys among them,
     * bytes of a reply, and releases owed to a master that cannot take them: those of all HOLDs
     * there may be; and so many of them under way at once as hide a round trip, and let others
     * through. */
    LIMIT_LINK_COMMANDS = 4096,
    LIMIT_LINK_KEY_PROBES = 512,
    LIMIT_LINK_RELEASES = LIMIT_LINK_COMMANDS - 64,
    LIMIT_LINK_VOTES = 3072,
    LIMIT_LINK_REPLY = 64 * 1024,
    LIMIT_LINK_PENDING_RELEASES = LIMIT_HOLDS,
    LIMIT_LINK_RELEASES_UNDER_WAY = 64,

    /* ... answers to votes that wait for the guard to speak about them, where a run of yeses is
     * one, ... */
    LIMIT_LINK_KEPT = LIMIT_LINK_COMMANDS,

    /* ... and bytes read from it in one pass of the loop. */
    LIMIT_NODE_IO = 1024 * 1024,

    /* Releases that one command has for a master, which does nothing else for some 50
     * microseconds. */
    LIMIT_BATCH = 64,

    /* The admin listener: connections, how long each may take, what it may send, and the largest
     * body it gets: twice what fifteen masters come to. */
    LIMIT_ADMIN_CONNECTIONS = 32,
    LIMIT_ADMIN_SECONDS = 5,
    LIMIT_ADMIN_HEADERS = 8 * 1024,
    LIMIT_ADMIN_REQUEST_BODY = 1024,
    LIMIT_ADMIN_BODY = 512 * 1024,

    /* On the masters. */
    LIMIT_KEY_PREFIX = 64,
    LIMIT_KEY = LIMIT_KEY_PREFIX + LIMIT_RESOURCE,
    LIMIT_RECORD = 448, /* the record of the guard, with its final NUL */
};

#endif
