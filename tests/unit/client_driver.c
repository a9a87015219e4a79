#include "tests/unit/client_driver.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { LINES = 1024 };

void driver_begin(struct client_driver *client_driver)
{
    client_driver->now_ns = 1000 * MS;
    proto_init(&client_driver->proto);
    client_driver->proto.peer = "tcp://there:1";
    client_driver->proto.timeout_ns = TIMEOUT;
    proto_begin(&client_driver->proto);
}

void driver_end(struct client_driver *client_driver)
{
    proto_free(&client_driver->proto);
}

/* --- requests --- */

uint64_t driver_ask(struct client_driver *client_driver, const struct client_request *request)
{
    uint64_t id = 0;
    ck_assert_int_eq(
        proto_ask(&client_driver->proto, request, client_driver->now_ns, NULL, NULL, &id),
        REDLOCK_OK);
    return id;
}

uint64_t driver_acquire(struct client_driver *client_driver, const char *resource,
                        struct redlock_lock_options options)
{
    struct client_request request;
    ck_assert(client_request_acquire(&request, resource, 10000, &options, &client_driver->error));
    return driver_ask(client_driver, &request);
}

uint64_t driver_ping(struct client_driver *client_driver)
{
    return driver_ask(client_driver, &(struct client_request){.kind = CLIENT_REQUEST_PING});
}

const char *driver_sent(struct client_driver *client_driver)
{
    static char buf[4096];
    buf[proto_write(&client_driver->proto, client_driver->now_ns, buf, sizeof(buf) - 1)] = '\0';
    return buf;
}

void driver_expect_sent(struct client_driver *client_driver, const char *form, ...)
{
    char lines[LINES];
    va_list arguments;
    va_start(arguments, form);
    ck_assert_int_lt(vsnprintf(lines, sizeof(lines), form, arguments), LINES);
    va_end(arguments);
    ck_assert_str_eq(driver_sent(client_driver), lines);
}

/* --- replies --- */

bool driver_receive(struct client_driver *client_driver, const char *form, ...)
{
    char lines[LINES];
    va_list arguments;
    va_start(arguments, form);
    int len = vsnprintf(lines, sizeof(lines), form, arguments);
    va_end(arguments);
    ck_assert_int_lt(len, LINES);
    return proto_receive(&client_driver->proto, lines, (size_t)len, client_driver->now_ns,
                         client_driver->now_ns);
}

struct redlock_event driver_next(struct client_driver *client_driver)
{
    struct redlock_event event;
    ck_assert_msg(proto_take(&client_driver->proto, &event), "there is no event");
    return event;
}

void driver_expect(struct client_driver *client_driver, enum redlock_event_kind kind)
{
    ck_assert_int_eq(driver_next(client_driver).kind, kind);
}

struct redlock_event driver_expect_answer(struct client_driver *client_driver, uint64_t id,
                                          enum redlock_status status)
{
    struct redlock_event event = driver_next(client_driver);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_ANSWER);
    ck_assert_uint_eq(event.id, id);
    ck_assert_str_eq(redlock_status_word(event.status), redlock_status_word(status));
    return event;
}

void driver_expect_none(struct client_driver *client_driver)
{
    struct redlock_event event;
    ck_assert_msg(!proto_take(&client_driver->proto, &event), "event %d of %" PRIu64 ": %s",
                  event.kind, event.id, redlock_status_word(event.status));
}

uint64_t driver_acquire_granted(struct client_driver *client_driver, const char *resource,
                                const char *token, bool hold)
{
    uint64_t id =
        driver_acquire(client_driver, resource, (struct redlock_lock_options){.hold = hold});
    driver_sent(client_driver);
    ck_assert(driver_receive(client_driver, "#%" PRIu64 " OK %s 9000 0 -\n", id, token));
    driver_expect_answer(client_driver, id, REDLOCK_OK);
    return id;
}
