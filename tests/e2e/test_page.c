/*
 * The status page in Chromium. The tests are skipped if chromium or node is missing: tests/deps.sh
 * does not install Chromium, which takes 300 MB. tests/e2e/page.js prints the state of the page as
 * JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/command.h"
#include "tests/e2e/port.h"
#include "tests/e2e/stage.h"
#include "tests/runner.h"

static int port;
static struct command command;

static bool has_browser(void)
{
    return system("command -v chromium >/dev/null && command -v node >/dev/null") == 0;
}

static void open_page(struct stage *stage, const char *test)
{
    static char text[128];
    struct stage_plan plan = {.masters = 3, .over_unix = true};
    port = port_free();
    snprintf(text, sizeof(text), "admin: http://127.0.0.1:%d\n", port);
    plan.daemon.yaml = text;
    stage_open(stage, test, &plan);
}

static const char *load_page(struct stage *stage, const char *width, const char *scheme)
{
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    command_run(&command, &stage->sandbox,
                (const char *[]){"node", "tests/e2e/page.js", url, width, scheme, NULL});
    ck_assert_msg(command.status == 0, "%s", command.errors);
    return command.output;
}

static void expect_shown(const char *words, unsigned times)
{
    unsigned found = 0;
    for (const char *at = command.output; (at = strstr(at, words)) != NULL; at++)
        found++;
    ck_assert_msg(found == times, "\"%s\" is shown %u times: %s", words, found, command.output);
}

/* The page is checked in three states: after loading, after a refresh, and without network. A text
 * that must appear 3 times appears once in each state. */
TEST(the_page_refreshes_and_shows_when_it_is_stale)
{
    struct stage stage;
    if (!has_browser())
        return;
    open_page(&stage, __func__);
    client_expect_match(&stage.client, "OK .*", "LOCK </td><script>alert(1)</script> 60s");
    struct client waiter;
    daemon_connect(&stage.daemon, &waiter);
    client_send(&waiter, "LOCK </td><script>alert(1)</script> 60s WAIT 60s\n");
    load_page(&stage, "390", "dark");
    expect_shown("\"complaints\": []", 1);
    expect_shown("\"health\": \"well\"", 3);
    expect_shown("Locks can be granted", 3);
    expect_shown("</td><script>alert(1)</script>", 3);
    expect_shown("\"made\": 0", 3);
    expect_shown("\"wide\": false", 3);
    expect_shown("\"stale\": false", 2);
    expect_shown("\"stale\": true", 1);
    expect_shown("redlockd has not answered for", 1);
    expect_shown("\"title\": \"OK ", 2);
    expect_shown("\"title\": \"? OK ", 1);
    expect_shown("\"elsewhere\": []", 1);
    command_free(&command);
    client_close(&waiter);
    stage_close(&stage);
}

TEST(the_page_shows_that_there_is_no_quorum)
{
    struct stage stage;
    if (!has_browser())
        return;
    open_page(&stage, __func__);
    master_kill(&stage.masters[0]);
    master_kill(&stage.masters[1]);
    stage_wait_nodes(&stage, "vote=no", 2);
    load_page(&stage, "1100", "light");
    expect_shown("\"complaints\": []", 1);
    expect_shown("\"health\": \"bad\"", 3);
    expect_shown("\"title\": \"DOWN ", 2);
    expect_shown("No locks can be granted", 3);
    expect_shown("\"wide\": false", 3);
    command_free(&command);
    stage_close(&stage);
}
