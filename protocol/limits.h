/*
 * The limits of redlockd that the configuration does not change. Those of the configuration file
 * itself are in config/.
 *
 * Sizes are in bytes. Durations have their unit in the name. Everything else is a count. When a
 * limit is reached, the daemon sends a reply, logs a line, or continues in a later pass of its
 * event loop. Nothing grows beyond a limit.
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
    LIMIT_SLOTS = 1000,
    LIMIT_TIME_DIGITS = 15,
    LIMIT_WAIT_MS = 24 * 3600 * 1000,
    LIMIT_REPLY = LIMIT_LINE,
    LIMIT_LISTING_LINES = 1000,

    /* For one client connection: bytes of replies that the client has not read yet, bytes of
     * request lines that the daemon has not started yet, and the number of pending requests. */
    LIMIT_CLIENT_OUTPUT = 256 * 1024,
    LIMIT_CLIENT_PENDING_INPUT = 8 * LIMIT_LINE,
    LIMIT_CLIENT_REQUESTS = 1024,

    /* For a RESP connection: bytes of replies, also of those that wait for the reply to an earlier
     * command. While half of LIMIT_CLIENT_OUTPUT is used, no further command is taken. A listing is
     * cut to leave room for replies of LIMIT_RESP_REPLY bytes to all that are pending. (The longest
     * such reply is NOQUORUM.) */
    LIMIT_RESP_OUTPUT = 4 * LIMIT_CLIENT_OUTPUT,
    LIMIT_RESP_REPLY = 768,

    /* TLS handshakes with clients: those that are in progress at the same time, and those that one
     * pass of the event loop advances. Each can take a millisecond of the pass. */
    LIMIT_HANDSHAKES = 256,
    LIMIT_HANDSHAKES_A_PASS = 64,

    /* Reads from the socket of one TLS connection in one pass of the event loop. Each record takes
     * two reads, and a handshake has four records in a row. */
    LIMIT_TLS_READS = 16,

    /* In one pass of the event loop: lines handled for one client; lines handled for one client if
     * no other client was served in the previous pass; connections that one listener accepts; and
     * bytes of buffered input of one client. */
    LIMIT_READ_BUDGET = 16,
    LIMIT_READ_BUDGET_ALONE = 64,
    LIMIT_ACCEPT_BUDGET = 512,
    LIMIT_CLIENT_INPUT = 16 * 1024,

    /* The kernel's buffer for a TCP client, in each direction. By default the kernel buffers
     * megabytes for each client. When its memory for TCP is used up, the kernel also drops data of
     * other connections. */
    LIMIT_SOCKET_BUFFER = 64 * 1024,

    /* The largest TCP segment. If a whole segment does not fit in the receiver's window, the kernel
     * waits for up to 200 ms. Over loopback, a segment of the default size can exceed the window
     * that LIMIT_SOCKET_BUFFER leaves. */
    LIMIT_SEGMENT = LIMIT_SOCKET_BUFFER / 8,

    /* Users (auth): the number of users; for each user the bytes of its name, the number of its
     * resource prefixes, and the number of its uids (and also of its gids); and the least and
     * greatest length of a secret. */
    LIMIT_USERS = 256,
    LIMIT_USER_NAME = 32,
    LIMIT_USER_PREFIXES = 32,
    LIMIT_USER_IDS = 32,
    LIMIT_SECRET_MIN = 16,
    LIMIT_SECRET = 256,

    /* Client addresses whose wrong secrets are remembered. */
    LIMIT_AUTH_THROTTLES = 4096,

    /* Rounds in flight in the daemon, and requests that wait for their round to start. */
    LIMIT_ROUNDS = 16384,

    /* From some number of rounds in flight on, further rounds have to wait before they start
     * (engine/flight/admission.h). That number begins at LIMIT_ADMISSION_START and adapts between
     * LIMIT_ADMISSION_MIN and LIMIT_ADMISSION_MAX. The latter leaves a third of LIMIT_LINK_VOTES
     * to releases, which do not wait. */
    LIMIT_ADMISSION_MIN = 4,
    LIMIT_ADMISSION_START = 512,
    LIMIT_ADMISSION_MAX = 2048,

    /* Rounds started in one pass for requests that were held back. Starting this many takes about a
     * millisecond. */
    LIMIT_STARTS = 256,

    /* Due timers that the daemon handles in one pass: each ends a wait or wakes a queue. The timers
     * of HOLDs have no such limit. */
    LIMIT_TIMERS = 256,

    /* Granted locks that the daemon remembers, and how many of them can be HOLDs. The daemon may
     * forget other locks to make room, but never a HOLD. */
    LIMIT_LOCKS = 65536,
    LIMIT_HOLDS = 32768,

    /* Extensions of HOLDs in flight at once. The masters answer this many within a few
     * milliseconds, so extensions that are due at the same time do not make each other time out. */
    LIMIT_RENEWALS = 256,

    /* BREAKs in progress, and STATUSes with SLOTS. Each of the latter has at least one round in
     * flight, so together they leave room for others even at LIMIT_ADMISSION_MIN. */
    LIMIT_BREAKS = 16,
    LIMIT_SURVEYS = 3,

    /* Resources that the daemon keeps in memory, even without a client, because a far waiter of
     * another daemon waits for them. */
    LIMIT_FAR_RESOURCES = 1024,

    /* Seekers: for each semaphore with pending LOCKs, one for each slot
     * (engine/locks/semaphore.h). */
    LIMIT_SEEKERS = 16384,

    /* Tokens whose extensions the daemon counts, for max_extensions and max_hold. */
    LIMIT_EXTENDED = 32768,

    /* Outstanding commands of one link to a master; and how many of them can be key probes. A
     * master that is slower than the quorum gets behind by thousands of releases under overload. If
     * there were no room for them, some UNLOCKs would be answered NOQUORUM. Two masters that hang
     * must leave some of LIMIT_ROUNDS, because a release occupies a round until all have answered.
     */
    LIMIT_LINK_COMMANDS = 6144,
    LIMIT_LINK_KEY_PROBES = 512,

    /* From this number of outstanding commands on, the link takes no more releases, or no more
     * votes. So votes leave room for releases, and releases leave room for the guard. */
    LIMIT_LINK_RELEASES = LIMIT_LINK_COMMANDS - 64,
    LIMIT_LINK_VOTES = 3072,

    /* Bytes of one reply of a master. */
    LIMIT_LINK_REPLY = 64 * 1024,

    /* Pending releases of one link: enough for all HOLDs. And how many of them are outstanding at
     * once: enough to hide a round trip, and few enough to let other commands through. */
    LIMIT_LINK_PENDING_RELEASES = LIMIT_HOLDS,
    LIMIT_LINK_RELEASES_UNDER_WAY = 64,

    /* Votes of one link that wait for the guard's probe. Consecutive yes votes count as one. */
    LIMIT_LINK_KEPT = LIMIT_LINK_COMMANDS,

    /* Bytes read from one master in one pass of the event loop. */
    LIMIT_NODE_IO = 1024 * 1024,

    /* Releases in one command to a master. They block the master for about 50 microseconds. */
    LIMIT_BATCH = 64,

    /* An HTTP listener: connections; seconds for each connection; bytes of the headers and of the
     * body of a request; and bytes of the body of a response, which is twice what fifteen masters
     * need. */
    LIMIT_HTTP_CONNECTIONS = 32,
    LIMIT_HTTP_SECONDS = 5,
    LIMIT_HTTP_HEADERS = 8 * 1024,
    LIMIT_HTTP_REQUEST_BODY = 1024,
    LIMIT_HTTP_BODY = 512 * 1024,

    /* Keys and values on the masters. */
    LIMIT_KEY_PREFIX = 64,
    LIMIT_KEY = LIMIT_KEY_PREFIX + LIMIT_RESOURCE,
    LIMIT_RECORD = 448, /* the record of the guard, including the final NUL */
};

#endif
