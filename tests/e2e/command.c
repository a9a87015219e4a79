#include "tests/e2e/command.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/process.h"

void command_run(struct command *command, const struct sandbox *sandbox, const char *const *argv)
{
    char output[SANDBOX_FILE];
    char errors[SANDBOX_FILE];
    sandbox_path(sandbox, "output.log", output);
    sandbox_path(sandbox, "errors.log", errors);
    unlink(output);
    unlink(errors);
    const char *environment[] = {"TMPDIR", sandbox->dir, NULL};
    pid_t pid = process_start(&(struct process_plan){
        .argv = argv, .output = output, .errors = errors, .environment = environment});
    int status = process_wait(pid, "a command");
    command->output = sandbox_read(output);
    command->errors = sandbox_read(errors);
    ck_assert_msg(WIFEXITED(status), "the command was killed by signal %d", WTERMSIG(status));
    command->status = WEXITSTATUS(status);
}

void command_free(struct command *command)
{
    free(command->output);
    free(command->errors);
}
