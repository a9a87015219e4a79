#include "client/cli/command.h"

#include <stddef.h>
#include <string.h>

#include "protocol/spelling.h"

#define TOKEN_HELP                                                                                 \
    "TOKEN is what lock has printed. - reads it from standard input; left out, it is\n"            \
    "$REDLOCK_TOKEN: so other users of this machine do not see it.\n"

const struct command commands[] = {
    {"run",
     "[--ttl T] [--wait T | --nonblock] [--fence]\n"
     "                   [--on-lost SIGNAL] [--grace T] [--conflict-exit N]\n"
     "                   NAME [--] COMMAND [ARGS...]",
     "run a command while holding a lock", OPERANDS_NAME_COMMAND, OPTIONS_RUN,
     "Exits with what COMMAND exits with, or 128+n if signal n ended it; 122: the lock\n"
     "was lost, so COMMAND and all it had started were ended in time. The daemon's\n"
     "max_hold bounds how long it may take. COMMAND finds REDLOCK_RESOURCE, _TOKEN,\n"
     "_DEADLINE_MS, _URL, _HELD and, with --fence, _FENCE in its environment.\n"},
    {"lock", "[--ttl T] [--wait T | --nonblock] [--fence] NAME", "acquire a lock, print its token",
     OPERANDS_NAME, OPTIONS_LOCK,
     "Prints TOKEN, or TOKEN FENCE. Nobody extends this lock: it ends by itself.\n"
     "Example:  token=$(redlock lock deploy) && make; redlock unlock deploy $token\n"},
    {"unlock", "NAME [TOKEN]", "give a lock back", OPERANDS_NAME_TOKEN, 0,
     TOKEN_HELP "Exits with 1 if the token does not hold it, or not any more.\n"},
    {"extend", "[--ttl T] NAME [TOKEN]", "make a lock live longer, from now on",
     OPERANDS_NAME_TOKEN, OPTION_BIT(OPTION_TTL),
     TOKEN_HELP "Prints how long it is good for at least; it is never shortened. Exits with 1 if\n"
                "the token does not hold it.\n"},
    {"status", "NAME", "does anybody hold it?", OPERANDS_NAME, 0,
     "Prints free; or held, and for how long at least if that is known. It may be\n"
     "otherwise when you read it: to have the lock, ask for it.\n"},
    {"break", "NAME", "release a lock by force, whoever holds it", OPERANDS_NAME, 0,
     "For operators: the daemon has to allow it. Its holder goes on until it notices,\n"
     "so be sure of it. Prints free if nobody holds it. Exits with 1 if it changed\n"
     "hands meanwhile, or is no lock of redlockd, and is left alone.\n"},
    {"locks", "[NAME]", "the locks that the daemon knows, and how many wait", OPERANDS_MAYBE_NAME,
     0, "Those that this daemon has granted, or that are waited for here.\n"},
    {"nodes", "", "the masters, and why one of them has no vote", OPERANDS_NONE, 0, ""},
    {"clients", "", "the connections of the daemon", OPERANDS_NONE, 0, ""},
    {"stats", "", "what the daemon has counted since its start", OPERANDS_NONE, 0, ""},
    {"ping", "", "is the daemon there?", OPERANDS_NONE, 0, ""},
    {"help", "[COMMAND]", "this, or more about a command", OPERANDS_TOPIC, 0, ""},
    {"version", "", "print the version", OPERANDS_NONE, 0, ""},
    {0},
};

const struct command *command_find(const char *name)
{
    const struct command *command = commands;
    while (command->name != NULL && strcmp(command->name, name) != 0)
        command++;
    return command->name != NULL ? command : NULL;
}

/* What others call it. */
static const struct {
    const char *name;
    const char *meant;
} aliases[] = {
    {"acquire", "lock"}, {"exec", "run"},     {"info", "stats"},     {"list", "locks"},
    {"ls", "locks"},     {"renew", "extend"}, {"release", "unlock"},
};

const char *command_nearest(const char *name)
{
    const char *names[COMMANDS_MAX + 1] = {NULL};
    for (unsigned i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
        if (strcmp(aliases[i].name, name) == 0)
            return aliases[i].meant;
    for (unsigned i = 0; i < COMMANDS_MAX && commands[i].name != NULL; i++)
        names[i] = commands[i].name;
    return spelling_nearest(name, names);
}
