#include "tests/e2e/resp_client.h"

#include <check.h>
#include <inttypes.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the connection --- */

static void begin(struct resp_client *resp, bool over_tls)
{
    resp->over_tls = over_tls;
    resp->sent[0] = '\0';
    resp->text[0] = '\0';
}

void resp_connect_unix(struct resp_client *resp, const struct stage *stage)
{
    begin(resp, false);
    daemon_connect(&stage->daemon, &resp->client);
}

void resp_connect_tcp(struct resp_client *resp, const struct stage *stage)
{
    begin(resp, false);
    client_connect_tcp(&resp->client, "127.0.0.1", stage->daemon.port);
}

void resp_connect_tls(struct resp_client *resp, const struct stage *stage)
{
    begin(resp, true);
    tls_stage_connect(&resp->secure, stage);
}

void resp_close(struct resp_client *resp)
{
    if (resp->over_tls)
        tls_client_close(&resp->secure);
    else
        client_close(&resp->client);
}

void resp_expect_end(struct resp_client *resp)
{
    if (resp->over_tls)
        ck_assert(tls_client_ends_well(&resp->secure));
    else
        client_expect_end(&resp->client);
}

/* --- commands --- */

void resp_send_raw(struct resp_client *resp, const char *bytes)
{
    snprintf(resp->sent, sizeof(resp->sent), "%s", bytes);
    if (resp->over_tls)
        tls_client_send(&resp->secure, bytes);
    else
        client_send(&resp->client, bytes);
}

static void send_words(struct resp_client *resp, const char *format, va_list arguments)
{
    char words[RESP_COMMAND];
    char bytes[2 * RESP_COMMAND];
    char *rest = words;
    int len = vsnprintf(words, sizeof(words), format, arguments);
    ck_assert_int_lt(len, (int)sizeof(words));
    snprintf(resp->sent, sizeof(resp->sent), "%s", words);
    unsigned count = 1;
    for (int i = 0; i < len; i++)
        count += words[i] == ' ';
    size_t used = (size_t)snprintf(bytes, sizeof(bytes), "*%u\r\n", count);
    for (const char *word; (word = strsep(&rest, " ")) != NULL;) {
        used += (size_t)snprintf(bytes + used, sizeof(bytes) - used, "$%zu\r\n%s\r\n", strlen(word),
                                 word);
        ck_assert_uint_lt(used, sizeof(bytes));
    }
    if (resp->over_tls)
        tls_client_send(&resp->secure, bytes);
    else
        client_send_bytes(&resp->client, bytes, used);
}

void resp_send(struct resp_client *resp, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    send_words(resp, format, arguments);
    va_end(arguments);
}

/* --- replies --- */

/* Appends to the text of the reply. */
static void append(struct resp_client *resp, const char *bytes, size_t len)
{
    ck_assert_uint_lt(resp->text_len + len, sizeof(resp->text));
    memcpy(resp->text + resp->text_len, bytes, len);
    resp->text_len += len;
    resp->text[resp->text_len] = '\0';
}

/* Reads bytes up to the next LF, without it. */
static const char *read_line(struct resp_client *resp)
{
    return resp->over_tls ? tls_client_read(&resp->secure) : client_read(&resp->client);
}

static void expect_cr(const struct resp_client *resp, const char *line)
{
    size_t len = strlen(line);
    if (len == 0 || line[len - 1] != '\r')
        ck_abort_msg("sent: %s\ngot a line without CR LF: %s", resp->sent, line);
}

/* Reads the bytes of a bulk string, which can contain LFs, and the CR LF after it. */
static void read_bulk(struct resp_client *resp, size_t len)
{
    const size_t end = resp->text_len + len + 1;
    const char *line = read_line(resp);
    append(resp, line, strlen(line));
    while (resp->text_len < end) {
        append(resp, "\n", 1);
        line = read_line(resp);
        append(resp, line, strlen(line));
    }
    ck_assert_uint_eq(resp->text_len, end);
    expect_cr(resp, line);
    resp->text[--resp->text_len] = '\0';
}

/* Reads one value and returns how many values follow as its items. */
static unsigned read_value(struct resp_client *resp)
{
    const char *line = read_line(resp);
    char kind = line[0];
    expect_cr(resp, line);
    if (resp->text_len > 0)
        append(resp, " ", 1);
    append(resp, line, strlen(line) - 1);
    long number = strtol(line + 1, NULL, 10);
    if (kind == '$' && number >= 0) {
        append(resp, " ", 1);
        read_bulk(resp, (size_t)number);
    }
    if (kind == '%')
        return 2 * (unsigned)number;
    if ((kind == '*' && number > 0) || kind == '>')
        return (unsigned)number;
    if (strchr("+-:$*_", kind) == NULL)
        ck_abort_msg("sent: %s\ngot no value of RESP: %s", resp->sent, line);
    return 0;
}

const char *resp_read(struct resp_client *resp)
{
    resp->text_len = 0;
    for (unsigned left = 1; left > 0; left--)
        left += read_value(resp);
    return resp->text;
}

static void refuse_reply(const struct resp_client *resp, const char *expected)
{
    ck_abort_msg("sent: %s\ngot: %s\nexpected: %s", resp->sent, resp->text, expected);
}

void resp_read_equal(struct resp_client *resp, const char *reply)
{
    if (strcmp(resp_read(resp), reply) != 0)
        refuse_reply(resp, reply);
}

void resp_read_match(struct resp_client *resp, const char *pattern)
{
    char whole[RESP_COMMAND];
    regex_t regex;
    snprintf(whole, sizeof(whole), "^(%s)$", pattern);
    ck_assert_int_eq(regcomp(&regex, whole, REG_EXTENDED | REG_NOSUB), 0);
    bool matches = regexec(&regex, resp_read(resp), 0, NULL, 0) == 0;
    regfree(&regex);
    if (!matches)
        refuse_reply(resp, pattern);
}

void resp_read_prefix(struct resp_client *resp, const char *prefix)
{
    if (strncmp(resp_read(resp), prefix, strlen(prefix)) != 0)
        refuse_reply(resp, prefix);
}

void resp_expect(struct resp_client *resp, const char *reply, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    send_words(resp, format, arguments);
    va_end(arguments);
    resp_read_equal(resp, reply);
}

void resp_expect_match(struct resp_client *resp, const char *pattern, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    send_words(resp, format, arguments);
    va_end(arguments);
    resp_read_match(resp, pattern);
}

void resp_hello(struct resp_client *resp)
{
    resp_send(resp, "HELLO 3");
    resp_read_prefix(resp, "%7 ");
}

struct grant resp_grant(const struct resp_client *resp)
{
    struct grant grant;
    int got = sscanf(resp->text, "*%*d $2 OK $40 %40s :%" SCNd64 " :%" SCNd64, grant.token,
                     &grant.validity_ms, &grant.elapsed_ms);
    if (got != 3)
        refuse_reply(resp, "a granted lock");
    return grant;
}

struct grant resp_lock(struct resp_client *resp, const char *resource, const char *ttl)
{
    resp_send(resp, "LOCK %s %s", resource, ttl);
    resp_read(resp);
    return resp_grant(resp);
}
