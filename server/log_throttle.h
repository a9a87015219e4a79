/*
 * Limits the log lines of one kind: at most LOG_THROTTLE_LINES per second are written. The module
 * counts the lines that are left out. Pure.
 */
#ifndef SERVER_LOG_THROTTLE_H
#define SERVER_LOG_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_THROTTLE_LINES = 20 };

/* All zero to begin with. */
struct log_throttle {
    int64_t until_ns;  /* end of the current second */
    unsigned lines;    /* lines written in the current second */
    uint64_t left_out; /* lines not written since the last log_throttle_take() that returned them */
};

/* Whether the caller may write this line. If not, the line is counted as left out. Once a second
 * has ended, the caller must call log_throttle_take() before log_throttle_may(). */
bool log_throttle_may(struct log_throttle *throttle, int64_t now_ns);

/* Returns the count of lines left out in a second that has ended, and resets it. 0 while the second
 * lasts. */
uint64_t log_throttle_take(struct log_throttle *throttle, int64_t now_ns);

#endif
