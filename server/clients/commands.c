#include "server/clients/session.h"

#include <string.h>

#include "server/clients/clients.h"
#include "server/clients/resp_session.h"

/* Whether all earlier commands are answered. If not, the command that asks waits for that. */
static bool is_alone(struct session *session)
{
    session->commands_wait = session->replies.pending > 0;
    return !session->commands_wait;
}

static void refuse_long(struct session *session)
{
    session->requests++;
    session_write_error(session, NULL, REQUEST_LINE_TOO_LONG,
                        "the words of a command, with a space between them, must be shorter than "
                        "2048 bytes");
}

/* A request that the line protocol has as well. False if it has to wait. */
static bool take_request(struct session *session, const struct command_reader *commands)
{
    struct error error;
    enum request_error failed = request_check_words(&commands->words, &error);
    if (failed == REQUEST_FINE)
        return requests_take_line(session, commands->line, commands->line_len) == LINE_TAKEN;
    session->requests++;
    session_write_error(session, NULL, failed, error.text);
    return true;
}

/* Take the current command. False if it has to wait. */
static bool take_command(struct session *session, const struct command_reader *commands)
{
    const struct request_words *words = &commands->words;
    session->turn.lines_left--;
    if (commands->too_long) {
        refuse_long(session);
        return true;
    }
    if (words->count == 0)
        return true;
    const struct resp_command *command = resp_session_find(words);
    if (command == NULL)
        return take_request(session, commands);
    if (command->exclusive && !is_alone(session))
        return false;
    resp_session_run(session, command, words);
    return true;
}

/* Nothing after this can be understood. */
static void end_for_garbage(struct session *session, const char *why)
{
    if (!is_alone(session))
        return;
    session->clients->request_errors[REQUEST_BAD_BYTE]++;
    session_write_refusal(session, NULL, "ERR", "ERR", why);
    session_close_when_written(session);
}

/* Take the next command of the reader. False if there is none, or it has to wait. */
static bool take_next(struct session *session, struct command_reader *commands)
{
    /* The engine accepts no more requests. Or the client has to read its replies first, or they
     * wait for the reply to an earlier command. */
    if (session->replies.pending >= LIMIT_CLIENT_REQUESTS ||
        session_room(session) < LIMIT_RESP_OUTPUT - LIMIT_CLIENT_OUTPUT / 2) {
        session->commands_wait = true;
        return false;
    }
    switch (command_reader_next(commands)) {
    case COMMAND_READ:
        return take_command(session, commands);
    case COMMAND_GARBAGE:
        end_for_garbage(session, commands->garbage);
        return false;
    case COMMAND_MORE:
        break;
    }
    return false;
}

/* Take commands from the beginning of the input. True if the reader has not seen all of it, so that
 * there may be more commands. */
static bool take_some(struct session *session)
{
    struct command_reader *commands = &session->clients->commands;
    bool secret = session_may_send_secret(session);
    size_t len;
    char *bytes = stream_input(&session->stream, &len);
    if (len == 0)
        return false;
    if (!command_reader_begin(commands, bytes, len, secret)) {
        session_drop(session, "there is not enough memory for the client's requests");
        return false;
    }
    while (session_has_budget(session) && take_next(session, commands))
        command_reader_accept(commands);
    size_t taken = command_reader_end(commands);
    if (secret)
        explicit_bzero(bytes, taken);
    if (taken > 0)
        stream_consume(&session->stream, taken);
    return taken > 0 && len > COMMAND_BYTES;
}

void commands_take(struct session *session)
{
    session->commands_wait = false;
    while (!session->commands_wait && session_has_budget(session) && take_some(session))
        ;
}
