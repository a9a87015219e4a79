/*
 * `redlock run` on a terminal, under a shell with job control: the shell and the user see what they
 * would see if the command ran alone. The terminal is a tmux pane, whose screen shows what a person
 * would see.
 */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/e2e/wrapper.h"
#include "tests/runner.h"

enum { SCREEN = 16384, COMMAND_LINE = 512 };

static const struct stage_plan three = {.masters = 3, .over_unix = true};

struct terminal {
    struct stage stage;
    char socket[SANDBOX_FILE];
    char screen[SCREEN];
    pid_t server; /* tmux server, parent of all programs in it */
};

/* Runs `tmux -S SOCKET words...`; its output replaces terminal->screen. */
__attribute__((format(printf, 2, 3))) static void tmux(struct terminal *terminal, const char *form,
                                                       ...)
{
    char words[COMMAND_LINE], line[COMMAND_LINE + SANDBOX_FILE + 64];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(words, sizeof(words), form, arguments);
    va_end(arguments);
    snprintf(line, sizeof(line), "LC_ALL=C.UTF-8 tmux -S %s -f /dev/null %s 2>&1", terminal->socket,
             words);
    FILE *pipe = popen(line, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t len = fread(terminal->screen, 1, SCREEN - 1, pipe);
    terminal->screen[len] = '\0';
    ck_assert_msg(pclose(pipe) == 0, "%s: %s", line, terminal->screen);
}

/* Starts tmux in the foreground, so that it dies with the test. */
static void start_tmux(struct terminal *terminal)
{
    char log[SANDBOX_FILE];
    const char *const argv[] = {"tmux", "-S", terminal->socket, "-f", "/dev/null", "-D", NULL};
    sandbox_path(&terminal->stage.sandbox, "tmux.log", log);
    terminal->server = process_start(&(struct process_plan){.argv = argv, .errors = log});
    struct waiting waiting = waiting_for("tmux");
    while (!sandbox_exists(terminal->socket))
        waiting_pause(&waiting);
}

static void capture_screen(struct terminal *terminal)
{
    tmux(terminal, "capture-pane -p -t 0");
}

static void wait_screen(struct terminal *terminal, const char *text)
{
    char what[SCREEN + 256] = "";
    struct waiting waiting = waiting_for(what);
    do {
        capture_screen(terminal);
        snprintf(what, sizeof(what), "\"%s\" on the screen, which shows:\n%s", text,
                 terminal->screen);
        waiting_pause(&waiting);
    } while (strstr(terminal->screen, text) == NULL);
}

/* Presses a key, by its tmux name. */
static void press(struct terminal *terminal, const char *key)
{
    tmux(terminal, "send-keys -t 0 %s", key);
}

/* Types a line and Enter. The line must not contain its expected output, which would be found on
 * the screen as soon as it is typed: write be''gun. */
static void type_line(struct terminal *terminal, const char *line)
{
    char quoted[COMMAND_LINE];
    size_t len = 0;
    for (; *line != '\0'; line++)
        len += (size_t)snprintf(quoted + len, sizeof(quoted) - len, *line == '\'' ? "'\\''" : "%c",
                                *line);
    tmux(terminal, "send-keys -t 0 -l '%s'", quoted);
    press(terminal, "Enter");
}

/* Waits until the screen shows a line "parent PID", and returns the PID. */
static pid_t read_parent(struct terminal *terminal)
{
    wait_screen(terminal, "\nparent ");
    capture_screen(terminal);
    pid_t parent = (pid_t)strtol(strstr(terminal->screen, "\nparent ") + 8, NULL, 10);
    ck_assert_int_gt(parent, 1);
    return parent;
}

/* LeakSanitizer stops a program by ptrace at its end. If a SIGCONT from "fg" or from a closing
 * terminal arrives at that moment, the program and LeakSanitizer wait for each other for ever.
 * Hence these tests run without leak detection; test_run has it. */
static void open_terminal(struct terminal *terminal, const char *test)
{
    stage_open(&terminal->stage, test, &three);
    sandbox_path(&terminal->stage.sandbox, "tmux", terminal->socket);
    start_tmux(terminal);
    tmux(terminal,
         "new-session -d -x 80 -y 24 -e ASAN_OPTIONS=detect_leaks=0 -e REDLOCK_URL=unix:%s "
         "-e 'run=%s run' "
         "\"PS1='prompt: ' bash --norc --noprofile -i\"",
         terminal->stage.daemon.socket, wrapper_program());
    wait_screen(terminal, "prompt:");
}

static void close_terminal(struct terminal *terminal)
{
    tmux(terminal, "kill-server");
    process_wait(terminal->server, "tmux");
    unlink(terminal->socket);
    stage_close(&terminal->stage);
}

TEST(typed_input_reaches_the_command)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal, "$run a -- sh -c \"echo be''gun; read line; echo got:\\$line\"");
    wait_screen(&terminal, "begun");
    type_line(&terminal, "hello");
    wait_screen(&terminal, "got:hello");
    close_terminal(&terminal);
}

/* One ^C interrupts the command and the shell loop around it once. */
TEST(an_interrupt_ends_the_command_and_the_loop_around_it)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal, "$run a -- sh -c \"echo be''gun; exec sleep 600\"");
    wait_screen(&terminal, "begun");
    press(&terminal, "C-c");
    type_line(&terminal, "echo code:$?");
    wait_screen(&terminal, "code:130");
    type_line(&terminal,
              "clear; for i in 1 2 3; do $run a -- sh -c \"echo round:$i; exec sleep 600\"; done");
    wait_screen(&terminal, "round:1");
    press(&terminal, "C-c");
    type_line(&terminal, "echo af''ter");
    wait_screen(&terminal, "after");
    ck_assert_ptr_null(strstr(terminal.screen, "round:2"));
    close_terminal(&terminal);
}

/* The script around the run would print a line if it got the interrupt. */
TEST(an_interrupt_sent_to_run_alone_is_not_passed_on)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal, "bash -c 'trap \"echo in''terrupted\" INT; '\"$run\"' a -- sh -c \""
                         "echo parent \\$(ps -o ppid= \\$PPID); exec sleep 600\"; echo code:$?'");
    kill(read_parent(&terminal), SIGINT);
    wait_screen(&terminal, "code:130");
    ck_assert_ptr_null(strstr(terminal.screen, "interrupted"));
    close_terminal(&terminal);
}

/* The command gives the terminal back, so that ^C goes to the script and to redlock, as before the
 * terminal is lent. bash ends only if SIGINT has ended redlock as well. */
TEST(an_interrupt_that_a_script_has_got_too_ends_it)
{
    struct terminal terminal;
    char line[COMMAND_LINE], file[SANDBOX_FILE];
    open_terminal(&terminal, __func__);
    sandbox_write(sandbox_path(&terminal.stage.sandbox, "give_back.pl", file),
                  "use POSIX; $| = 1; $supervisor = getppid;\n"
                  "($redlock) = split ' ', `ps -o ppid= $supervisor`;\n"
                  "POSIX::tcsetpgrp(0, getpgrp($redlock)); print \"given back\"; sleep 600;\n");
    snprintf(line, sizeof(line), "bash -c '$run a -- perl %s; echo went o''n'", file);
    type_line(&terminal, line);
    wait_screen(&terminal, "given back");
    press(&terminal, "C-c");
    type_line(&terminal, "echo code:$?");
    wait_screen(&terminal, "code:130");
    ck_assert_ptr_null(strstr(terminal.screen, "went on"));
    unlink(file);
    close_terminal(&terminal);
}

/* Waits until the terminal belongs to redlock itself, not to the shell or to the command. */
static void wait_foreground(struct terminal *terminal)
{
    struct waiting waiting = waiting_for("redlock to have the terminal");
    do {
        waiting_pause(&waiting);
        tmux(terminal, "display-message -p -t 0 '#{pane_current_command}'");
    } while (strstr(terminal->screen, "redlock") == NULL);
}

/* Runs a line on the terminal, in which COMMAND begins to end when the file exists, and presses ^C
 * while redlock releases its lock. The daemon is stopped meanwhile, so that this takes long. */
static void interrupt_release(struct terminal *terminal, const char *format)
{
    char line[COMMAND_LINE], file[SANDBOX_FILE];
    snprintf(line, sizeof(line), format, sandbox_path(&terminal->stage.sandbox, "go", file));
    type_line(terminal, line);
    wait_screen(terminal, "round:1");
    process_stop(terminal->stage.daemon.pid);
    sandbox_write(file, "");
    wait_foreground(terminal);
    press(terminal, "C-c");
    wait_screen(terminal, "^C"); /* tmux may press the key later than it says */
    kill(terminal->stage.daemon.pid, SIGCONT);
    unlink(file);
}

TEST(an_interrupt_during_the_release_ends_the_loop)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    interrupt_release(&terminal, "for i in 1 2; do $run a -- sh -c \"echo round:$i; "
                                 "until test -e %s; do sleep 0.1; done\"; done");
    type_line(&terminal, "echo code:$?");
    wait_screen(&terminal, "code:130");
    ck_assert_ptr_null(strstr(terminal.screen, "round:2"));
    close_terminal(&terminal);
}

/* redlock was started with SIGINT ignored. */
TEST(an_ignored_interrupt_during_the_release_changes_nothing)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    interrupt_release(&terminal,
                      "trap '' INT; $run a -- sh -c \"echo round:''1; until test -e %s; do "
                      "sleep 0.1; done\"; echo code:$?");
    wait_screen(&terminal, "code:0");
    close_terminal(&terminal);
}

/* The release shows that the lock is lost, but an interrupt ends the script all the same. */
TEST(an_interrupt_is_passed_on_although_the_lock_was_gone)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal,
              "for i in 1 2; do $run --ttl 1m a -- sh -c \"echo round:$i; exec sleep 600\"; done");
    wait_screen(&terminal, "round:1");
    masters_run(terminal.stage.masters, terminal.stage.master_count, "DEL redlock:a");
    press(&terminal, "C-c");
    type_line(&terminal, "echo code:$?");
    wait_screen(&terminal, "code:130");
    ck_assert_ptr_nonnull(strstr(terminal.screen, "no longer held"));
    ck_assert_ptr_null(strstr(terminal.screen, "round:2"));
    close_terminal(&terminal);
}

TEST(a_command_that_handles_an_interrupt_goes_on)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal,
              "$run a -- bash -c \"trap \\\"echo int:er\\\" INT; echo be''gun; read x; read "
              "y; echo end:\\$y\"");
    wait_screen(&terminal, "begun");
    press(&terminal, "C-c");
    wait_screen(&terminal, "int:er");
    type_line(&terminal, "first");
    type_line(&terminal, "second");
    wait_screen(&terminal, "end:second");
    close_terminal(&terminal);
}

/* A script that reads a line, and prints "awake" when it is continued after a stop. Until then the
 * shell still has the terminal in its own mode, and input that the test types would be lost. */
#define READ_LINE                                                                                  \
    "trap 'echo awa''ke' CONT; echo be''gun; until read line; do :; done; echo got:\\$line"

TEST(run_is_suspended_and_resumed_by_the_shell)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal, "$run --ttl 3s a -- sh -c \"" READ_LINE "\"");
    wait_screen(&terminal, "begun");
    press(&terminal, "C-z");
    wait_screen(&terminal, "Stopped");
    int64_t expiry_ms = master_integer(&terminal.stage.masters[0], "PEXPIRETIME redlock:a");
    struct waiting waiting = waiting_for("the lock to be kept beyond its TTL");
    while (master_integer(&terminal.stage.masters[0], "PEXPIRETIME redlock:a") < expiry_ms + 3000)
        waiting_pause(&waiting);
    client_expect_match(&terminal.stage.client, "HELD .*", "STATUS a");
    type_line(&terminal, "fg");
    wait_screen(&terminal, "awake");
    type_line(&terminal, "hello");
    wait_screen(&terminal, "got:hello");
    close_terminal(&terminal);
}

/* The first process of the command has ended, but another one of its group goes on. */
TEST(a_run_is_suspended_although_its_first_process_has_ended)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal,
              "$run a -- sh -c \"(trap 'echo awa''ke' CONT; while :; do sleep 0.2; done) & "
              "echo parent \\$\\$\"");
    process_wait_gone(read_parent(&terminal));
    press(&terminal, "C-z");
    wait_screen(&terminal, "Stopped");
    type_line(&terminal, "fg");
    wait_screen(&terminal, "awake");
    press(&terminal, "C-z");
    type_line(&terminal, "clear; jo''bs");
    wait_screen(&terminal, "Stopped");
    close_terminal(&terminal);
}

static const char *const backgrounds[] = {
    "sh -c \"$run a -- sh -c 'echo be''gun; sleep 600' & ",
    "bash -c \"{ $run a -- sh -c 'echo be''gun; sleep 600'; } & ",
};

/* A run that a script has started with & must not take the terminal from the script. */
TEST_ROWS(a_script_keeps_the_terminal_beside_a_run, backgrounds)
{
    struct terminal terminal;
    char line[COMMAND_LINE];
    open_terminal(&terminal, __func__);
    snprintf(line, sizeof(line), "%s%s", backgrounds[_i],
             "trap 'echo tra''pped; kill \\$!; exit 1' INT; read x; echo got:\\$x; read y\"");
    type_line(&terminal, line);
    wait_screen(&terminal, "begun");
    type_line(&terminal, "hello");
    wait_screen(&terminal, "got:hello");
    press(&terminal, "C-c");
    wait_screen(&terminal, "trapped");
    close_terminal(&terminal);
}

/* ... unless its command uses the terminal. */
TEST(a_run_of_a_script_gets_the_terminal_if_it_reads_from_it)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal,
              "sh -c \"$run a -- sh -c 'echo be''gun; read x </dev/tty; echo got:\\$x' & wait\"");
    wait_screen(&terminal, "begun");
    type_line(&terminal, "hello");
    wait_screen(&terminal, "got:hello");
    close_terminal(&terminal);
}

/* The kernel stops a background job that reads from the terminal. "fg" gives the terminal to the
 * job. */
TEST(a_background_run_can_be_brought_to_the_foreground)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    /* The shell is to report the stop at once, not after the next Enter. */
    type_line(&terminal, "set -b");
    type_line(&terminal, "$run a -- sh -c \"" READ_LINE "\" &");
    wait_screen(&terminal, "Stopped");
    type_line(&terminal, "fg");
    wait_screen(&terminal, "awake");
    type_line(&terminal, "hello");
    wait_screen(&terminal, "got:hello");
    close_terminal(&terminal);
}

/* The shell does not continue a job that is not stopped. */
TEST(a_run_is_not_stopped_if_it_reads_after_fg)
{
    struct terminal terminal;
    char line[COMMAND_LINE], file[SANDBOX_FILE];
    open_terminal(&terminal, __func__);
    sandbox_path(&terminal.stage.sandbox, "go", file);
    snprintf(line, sizeof(line),
             "$run a -- sh -c \"echo be''gun; until test -e %s; do sleep 0.1; done; read x; "
             "echo got:\\$x\" &",
             file);
    type_line(&terminal, line);
    wait_screen(&terminal, "begun");
    type_line(&terminal, "fg");
    wait_foreground(&terminal);
    sandbox_write(file, "");
    type_line(&terminal, "hello");
    wait_screen(&terminal, "got:hello");
    ck_assert_ptr_null(strstr(terminal.screen, "Stopped"));
    unlink(file);
    close_terminal(&terminal);
}

/* The process group of the run is orphaned, because its shell has ended: nothing can bring it to
 * the foreground. The command ignores HUP, as under nohup(1), and reads from the terminal. */
TEST(an_orphaned_command_that_needs_the_terminal_ends)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal, "(trap '' HUP; ($run a -- cat /dev/tty; echo co''de:$?) &) &");
    wait_screen(&terminal, "code:137");
    client_expect(&terminal.stage.client, "FREE", "STATUS a");
    close_terminal(&terminal);
}

TEST(an_editor_works_and_can_be_suspended)
{
    struct terminal terminal;
    char line[COMMAND_LINE];
    struct waiting waiting;
    open_terminal(&terminal, __func__);
    snprintf(line, sizeof(line), "$run a -- vi %s/text", terminal.stage.sandbox.dir);
    type_line(&terminal, line);
    wait_screen(&terminal, "/text\"");
    tmux(&terminal, "send-keys -t 0 -l 'iabc'");
    press(&terminal, "Escape");
    press(&terminal, "C-z");
    wait_screen(&terminal, "Stopped");
    type_line(&terminal, "fg");
    wait_screen(&terminal, "~");
    /* vi reads the window size on SIGWINCH. */
    tmux(&terminal, "resize-window -t 0 -x 60 -y 12");
    waiting = waiting_for("vi to read its new size");
    do {
        type_line(&terminal, ":set lines?");
        waiting_pause(&waiting);
        capture_screen(&terminal);
    } while (strstr(terminal.screen, "lines=12") == NULL);
    type_line(&terminal, ":wq");
    /* Input typed before vi has ended would be lost. */
    stage_wait_stats(&terminal.stage.client, " holding=0 ");
    snprintf(line, sizeof(line), "clear; echo code:$?; cat %s/text", terminal.stage.sandbox.dir);
    type_line(&terminal, line);
    wait_screen(&terminal, "code:0\nabc");
    snprintf(line, sizeof(line), "%s/text", terminal.stage.sandbox.dir);
    unlink(line);
    close_terminal(&terminal);
}

/* A command killed in raw mode leaves the terminal in its previous mode. */
TEST(a_killed_command_leaves_the_terminal_restored)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal, "$run a -- sh -c \"stty raw -echo; kill -KILL \\$\\$\"; echo code:$?");
    wait_screen(&terminal, "code:137");
    type_line(&terminal, "stty -a | grep -q -e -icanon && echo ra''w || echo co''oked");
    wait_screen(&terminal, "cooked");
    close_terminal(&terminal);
}

TEST(a_waiter_shows_its_lock_and_place)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    struct client other;
    struct grant grant = client_lock(&terminal.stage.client, "deploy", "60s");
    daemon_connect(&terminal.stage.daemon, &other);
    client_send(&other, "LOCK deploy 60s WAIT 60s\n");
    stage_wait_stats(&terminal.stage.client, " waiting=1 ");
    type_line(&terminal, "$run deploy -- echo ra''n");
    wait_screen(&terminal, "waiting for deploy, 2nd in line, ");
    client_close(&other);
    wait_screen(&terminal, "waiting for deploy, 1st in line, ");
    client_expect(&terminal.stage.client, "OK", "UNLOCK deploy %s", grant.token);
    wait_screen(&terminal, "ran");
    ck_assert_ptr_null(strstr(terminal.screen, "waiting for"));
    stage_wait_stats(&terminal.stage.client, " holding=0 ");
    /* After ^C the waiter leaves the queue. */
    grant = client_lock(&terminal.stage.client, "deploy", "60s");
    type_line(&terminal, "clear; $run deploy -- echo twi''ce");
    wait_screen(&terminal, "waiting for deploy, 1st in line, ");
    press(&terminal, "C-c");
    stage_wait_stats(&terminal.stage.client, " waiting=0 ");
    close_terminal(&terminal);
}

TEST(a_waiter_without_a_quorum_says_so)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    stage_stop_masters(&terminal.stage, 1, 2);
    type_line(&terminal, "$run deploy -- echo ra''n");
    wait_screen(&terminal, "redlock: deploy: too few masters could vote: 1/3 ");
    wait_screen(&terminal, "waiting for deploy, 1st in line, ");
    stage_continue_masters(&terminal.stage, 1, 2);
    wait_screen(&terminal, "ran");
    close_terminal(&terminal);
}

/* The number of requests of the connection that has one under way. */
static long waiter_requests(struct client *client)
{
    long requests = 0;
    for (const char *line = client_ask(client, "CLIENTS"); strcmp(line, "END") != 0;
         line = client_read(client)) {
        const char *count = strstr(line, " requests=");
        ck_assert_ptr_nonnull(count);
        if (strstr(line, " under_way=1 ") != NULL)
            requests = strtol(count + strlen(" requests="), NULL, 10);
    }
    return requests;
}

/* Output to a terminal that ^S has stopped blocks. A waiter that is blocked could be granted the
 * lock and not use it. It waits for another client, or for a quorum. */
TEST_LOOP(a_stopped_terminal_does_not_stop_a_waiter, 0, 2)
{
    struct terminal terminal;
    struct grant grant;
    char line[COMMAND_LINE], ran[SANDBOX_FILE];
    open_terminal(&terminal, __func__);
    sandbox_path(&terminal.stage.sandbox, "ran", ran);
    if (_i == 0)
        grant = client_lock(&terminal.stage.client, "deploy", "60s");
    else
        stage_stop_masters(&terminal.stage, 1, 2);
    /* The shell itself writes when it reads the line, so it gets some time before ^S. */
    snprintf(line, sizeof(line), "echo st''arts; sleep 3; $run deploy -- touch %s", ran);
    type_line(&terminal, line);
    wait_screen(&terminal, "starts");
    press(&terminal, "C-s");
    /* After the LOCK come the query and requests for the place. After each one that is answered,
     * the waiter writes. */
    struct waiting waiting = waiting_for("requests of the waiter");
    while (waiter_requests(&terminal.stage.client) < 6)
        waiting_pause(&waiting);
    if (_i == 0)
        client_expect(&terminal.stage.client, "OK", "UNLOCK deploy %s", grant.token);
    else
        stage_continue_masters(&terminal.stage, 1, 2);
    waiting = waiting_for("the command of the waiter");
    while (!sandbox_exists(ran))
        waiting_pause(&waiting);
    stage_wait_stats(&terminal.stage.client, " holding=0 ");
    press(&terminal, "C-q");
    unlink(ran);
    close_terminal(&terminal);
}

/* A background waiter must not erase the prompt. */
TEST(a_background_waiter_prints_nothing)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    struct grant grant = client_lock(&terminal.stage.client, "deploy", "60s");
    type_line(&terminal, "$run deploy -- echo ra''n");
    wait_screen(&terminal, "waiting for deploy, 1st in line, ");
    press(&terminal, "C-z");
    wait_screen(&terminal, "Stopped");
    stage_wait_stats(&terminal.stage.client, " waiting=0 ");
    type_line(&terminal, "clear; fg");
    wait_screen(&terminal, "waiting for deploy, 1st in line, ");
    press(&terminal, "C-z");
    wait_screen(&terminal, "Stopped");
    type_line(&terminal, "bg");
    wait_screen(&terminal, "&\nprompt:");
    client_expect(&terminal.stage.client, "OK", "UNLOCK deploy %s", grant.token);
    wait_screen(&terminal, "ran");
    ck_assert_msg(strstr(terminal.screen, "&\nprompt: ran\n") != NULL, "%s", terminal.screen);
    stage_wait_stats(&terminal.stage.client, " holding=0 ");
    close_terminal(&terminal);
}

/* With `stty tostop`, a message from the background would stop the waiter while it is queued. */
TEST(a_background_waiter_is_not_stopped_by_its_own_message)
{
    struct terminal terminal;
    struct stage *stage = &terminal.stage;
    open_terminal(&terminal, __func__);
    struct grant grant = client_lock(&stage->client, "a", "60s");
    type_line(&terminal, "stty tostop; $run a -- sleep 600 &");
    stage_wait_stats(&stage->client, " waiting=1 ");
    client_close(&stage->client);
    daemon_stop(&stage->daemon);
    wait_screen(&terminal, "trying again");
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, 3);
    daemon_connect(&stage->daemon, &stage->client);
    stage_wait_stats(&stage->client, " waiting=1 ");
    client_expect(&stage->client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_stats(&stage->client, " waiting=0 ");
    close_terminal(&terminal);
}

/* When the parent is stopped, the shell takes the terminal and gives it to the next job, `cat`. The
 * run in the background must not take it away when the run ends. */
TEST(a_background_run_leaves_the_terminal_to_its_owner)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal, "$run a -- sh -c \"echo parent \\$(ps -o ppid= \\$PPID); sleep 3\"");
    pid_t parent = read_parent(&terminal);
    kill(parent, SIGSTOP);
    wait_screen(&terminal, "Stopped");
    type_line(&terminal, "bg; cat");
    struct waiting waiting = waiting_for("the end of the parent");
    while (process_runs(parent))
        waiting_pause(&waiting);
    type_line(&terminal, "still there");
    wait_screen(&terminal, "still there\nstill there");
    close_terminal(&terminal);
}

/* The terminal belongs to the command, so `redlock run` writes its message from the background.
 * With `stty tostop`, writing the message must not stop `redlock run`. */
TEST(a_loss_is_reported_from_the_background)
{
    struct terminal terminal;
    open_terminal(&terminal, __func__);
    type_line(&terminal, "stty tostop; $run a -- sh -c \"echo token \\$REDLOCK_TOKEN; sleep 600\"");
    wait_screen(&terminal, "\ntoken ");
    capture_screen(&terminal);
    const char *token = strstr(terminal.screen, "\ntoken ") + 7;
    client_expect(&terminal.stage.client, "OK", "UNLOCK a %.40s", token);
    wait_screen(&terminal, "a is lost: ");
    type_line(&terminal, "echo code $?");
    wait_screen(&terminal, "code 122");
    close_terminal(&terminal);
}
