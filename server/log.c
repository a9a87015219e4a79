#include "server/log.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "protocol/text.h"
#include "protocol/units.h"
#include "server/clock.h"
#include "server/log_throttle.h"

static const struct {
    const char *word;
    const char *priority; /* level for the journal; see syslog(3) */
} levels[] = {
    [CONFIG_LOG_DEBUG] = {"debug", "<7>"},
    [CONFIG_LOG_INFO] = {"info", "<6>"},
    [CONFIG_LOG_WARNING] = {"warning", "<4>"},
    [CONFIG_LOG_ERROR] = {"error", "<3>"},
};

bool log_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t device;
    uintmax_t inode;
    struct stat it;
    return stream != NULL && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
           fstat(fd, &it) == 0 && it.st_dev == device && it.st_ino == inode;
}

struct log_field log_text(const char *key, const char *text)
{
    return log_bytes(key, text, strlen(text));
}

struct log_field log_bytes(const char *key, const char *bytes, size_t len)
{
    return (struct log_field){.key = key, .text = bytes, .len = len};
}

struct log_field log_number(const char *key, int64_t number)
{
    return (struct log_field){.key = key, .number = number};
}

/* Write the bytes in quotes, truncated to LOG_VALUE_MAX. */
static void put_quoted(struct text *line, const char *bytes, size_t len,
                       enum config_log_format format)
{
    size_t kept = len < LOG_VALUE_MAX ? len : LOG_VALUE_MAX;
    text_byte(line, '"');
    text_escape(line, bytes, kept, format == CONFIG_LOG_JSON ? TEXT_JSON : TEXT_LOG);
    text_string(line, kept < len ? "...\"" : "\"");
}

/* Whether the text is unambiguous without quotes. */
static bool is_plain(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] <= ' ' || bytes[i] >= 0x7f || bytes[i] == '"' || bytes[i] == '\\')
            return false;
    return len > 0 && len <= LOG_VALUE_MAX;
}

static void put_field(struct text *line, const struct log_field *field,
                      enum config_log_format format)
{
    bool json = format == CONFIG_LOG_JSON;
    text_string(line, json ? ",\"" : " ");
    text_string(line, field->key);
    text_string(line, json ? "\":" : "=");
    if (field->text == NULL) {
        text_number(line, field->number);
    } else if (!json && is_plain(field->text, field->len)) {
        text_bytes(line, field->text, field->len);
    } else {
        put_quoted(line, field->text, field->len, format);
    }
}

size_t log_format(enum config_log_format format, int64_t wall_ns, enum config_log_level level,
                  const char *event, const struct log_field *fields, char *buf)
{
    /* Reserve room for the end of the line. */
    struct text line = {.buf = buf, .size = LOG_LINE_MAX - 4};
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm utc;
    char date[32];
    char stamp[48];
    gmtime_r(&seconds, &utc);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp, sizeof(stamp), "%s.%03dZ", date, (int)(wall_ns / NS_PER_MS % 1000));

    bool json = format == CONFIG_LOG_JSON;
    text_string(&line, json ? "{\"time\":\"" : "");
    text_string(&line, stamp);
    text_string(&line, json ? "\",\"level\":\"" : " ");
    text_string(&line, levels[level].word);
    text_string(&line, json ? "\",\"event\":\"" : " ");
    text_string(&line, event);
    text_string(&line, json ? "\"" : "");
    for (; fields != NULL && fields->key != NULL; fields++)
        put_field(&line, fields, format);
    const char *end = json ? "}\n" : "\n";
    memcpy(buf + line.len, end, strlen(end));
    return line.len + strlen(end);
}

/* Whether a line can be written without blocking. The reader of the log may have stopped, and the
 * daemon must not wait for it. */
static bool has_room(const struct log *log)
{
    struct pollfd room = {.fd = log->fd, .events = POLLOUT};
    /* If a signal interrupts poll(), the room is unknown, and the line counts as lost. */
    return poll(&room, 1, 0) == 1;
}

/* False if the line was not written, or not as a whole. */
static bool write_line(const struct log *log, enum config_log_level level, const char *event,
                       const struct log_field *fields)
{
    /* Static for the same reason as in log_event(). A full disk takes a part of a line. The next
     * line must not continue it. */
    static bool cut;
    char buf[1 + LOG_LINE_MAX + sizeof("<6>")];
    size_t len = 0;
    if (!has_room(log))
        return false;
    if (cut)
        buf[len++] = '\n';
    len += log->priorities ? strlen(strcpy(buf + len, levels[level].priority)) : 0;
    len += log_format(log->format, clock_wall_ns(), level, event, fields, buf + len);
    ssize_t written = write(log->fd, buf, len);
    if (written > 0)
        cut = buf[written - 1] != '\n';
    return written == (ssize_t)len;
}

void log_event(const struct log *log, enum config_log_level level, const char *event,
               const struct log_field *fields)
{
    /* Static, because all logs of the process go to the same standard error. */
    static int64_t lost;
    int saved_errno = errno;
    if (level < log->level)
        return;
    if (lost > 0 &&
        write_line(log, CONFIG_LOG_WARNING, "log_lost",
                   LOG_FIELDS(log_number("lines", lost),
                              log_text("why", "the reader of the log was too slow, or its disk was "
                                              "full"))))
        lost = 0;
    lost += !write_line(log, level, event, fields);
    errno = saved_errno;
}

/* libevent has one log callback per process and passes it no context. */
static const struct log *libevent_log;

static void on_libevent(int severity, const char *says)
{
    enum config_log_level level = severity == EVENT_LOG_ERR    ? CONFIG_LOG_ERROR
                                  : severity == EVENT_LOG_WARN ? CONFIG_LOG_WARNING
                                  : severity == EVENT_LOG_MSG  ? CONFIG_LOG_INFO
                                                               : CONFIG_LOG_DEBUG;
    /* Static, because libevent's log callback is per process. */
    static struct log_throttle throttle;
    int64_t now_ns = clock_now_ns();
    if (libevent_log == NULL || level < libevent_log->level)
        return;
    uint64_t left_out = log_throttle_take(&throttle, now_ns);
    if (left_out > 0)
        log_event(libevent_log, level, "lines_left_out",
                  LOG_FIELDS(log_text("of", "libevent_reported"),
                             log_number("count", (int64_t)left_out)));
    if (log_throttle_may(&throttle, now_ns))
        log_event(libevent_log, level, "libevent_reported", LOG_FIELDS(log_text("message", says)));
}

void log_adopt_libevent(const struct log *log)
{
    libevent_log = log;
    event_set_log_callback(on_libevent);
}
