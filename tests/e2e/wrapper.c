#include "tests/e2e/wrapper.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"

enum { WORDS_MAX = 32 };

const char *wrapper_program(void)
{
    const char *program = getenv("REDLOCK");
    return program != NULL ? program : "build/redlock";
}

void wrapper_start(struct wrapper *wrapper, const struct sandbox *sandbox, const char *name,
                   const char *socket, const char *const *words)
{
    char url[SANDBOX_FILE + 8], file[SANDBOX_FILE];
    const char *argv[WORDS_MAX] = {wrapper_program(), "run", "--url", url};
    size_t count = 4;
    snprintf(url, sizeof(url), "unix:%s", socket);
    for (; *words != NULL; words++) {
        ck_assert_uint_lt(count, WORDS_MAX - 1);
        argv[count++] = *words;
    }
    wrapper->sandbox = sandbox;
    snprintf(file, sizeof(file), "%s.out", name);
    sandbox_path(sandbox, file, wrapper->output);
    snprintf(file, sizeof(file), "%s.err", name);
    sandbox_path(sandbox, file, wrapper->errors);
    wrapper->pid = process_start(
        &(struct process_plan){.argv = argv, .output = wrapper->output, .errors = wrapper->errors});
}

int wrapper_wait(struct wrapper *wrapper)
{
    int status = process_wait(wrapper->pid, "redlock run");
    ck_assert_msg(WIFEXITED(status), "signal %d ended redlock", WTERMSIG(status));
    return WEXITSTATUS(status);
}

int wrapper_run(struct wrapper *wrapper, const struct sandbox *sandbox, const char *socket,
                const char *const *words)
{
    wrapper_start(wrapper, sandbox, "run", socket, words);
    return wrapper_wait(wrapper);
}

static pid_t only_child(pid_t parent, const char *what)
{
    pid_t child;
    struct waiting waiting = waiting_for(what);
    while (process_children(parent, &child, 1) == 0)
        waiting_pause(&waiting);
    return child;
}

pid_t wrapper_supervisor(const struct wrapper *wrapper)
{
    return only_child(wrapper->pid, "the supervisor");
}

pid_t wrapper_command(const struct wrapper *wrapper)
{
    return only_child(wrapper_supervisor(wrapper), "the command");
}

static unsigned count_in(const char *file, const char *text)
{
    unsigned count = 0;
    char *content = sandbox_read(file);
    for (const char *at = content; (at = strstr(at, text)) != NULL; at += strlen(text))
        count++;
    free(content);
    return count;
}

static void wait_in(const char *file, const char *text)
{
    char what[256];
    snprintf(what, sizeof(what), "\"%s\" to be printed", text);
    struct waiting waiting = waiting_for(what);
    while (count_in(file, text) == 0)
        waiting_pause(&waiting);
}

void wrapper_wait_output(const struct wrapper *wrapper, const char *text)
{
    wait_in(wrapper->output, text);
}

void wrapper_wait_errors(const struct wrapper *wrapper, const char *text)
{
    wait_in(wrapper->errors, text);
}

unsigned wrapper_count_output(const struct wrapper *wrapper, const char *text)
{
    return count_in(wrapper->output, text);
}

bool wrapper_complained(const struct wrapper *wrapper, const char *text)
{
    return count_in(wrapper->errors, text) > 0;
}

unsigned wrapper_printed_pids(const struct wrapper *wrapper, pid_t *pids, unsigned max)
{
    unsigned count = 0;
    char *text = sandbox_read(wrapper->output);
    for (const char *at = text; count < max && (at = strstr(at, "pid ")) != NULL; at++)
        pids[count++] = (pid_t)strtol(at + 4, NULL, 10);
    free(text);
    return count;
}
