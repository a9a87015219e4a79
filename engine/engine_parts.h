/*
 * What the parts of the engine are to each other. For these files alone:
 *
 *     engine.c            the rounds that are run for requests
 *     engine_requests.c   what clients ask for, and their leaving
 *     engine_waits.c      LOCK: who waits for what, and whose turn it is
 *     engine_locks.c      the locks that were granted, and those that are held for a connection
 *     engine_break.c      locks that are released by force
 *     engine_releases.c   the releases of one pass, as few commands
 *     engine_try.c        whether a node does what rounds ask for
 *     engine_links.c      the connections, the guard, the votes that wait for it
 */
#ifndef ENGINE_ENGINE_PARTS_H
#define ENGINE_ENGINE_PARTS_H

#include "engine/engine.h"

/* What an alarm lies inside of. */
enum engine_alarm { ALARM_WALL, ALARM_WAKE, ALARM_LOCK };

/* --- engine.c --- */

/* Have an operation's round take one step, and do what it asks for. The operation may be gone
 * afterwards. */
void engine_step(struct engine *engine, struct operation *operation,
                 const struct round_event *event);

/* Its round is finished: it is gone. */
void engine_end(struct engine *engine, struct operation *operation);

/* What follows from the rounds that have settled, each after the other; then resources that nothing
 * is known of any more go. The last thing that each function of engine.h does. */
void engine_finish(struct engine *engine, int64_t now_ns);

/* Begin its round. */
void engine_start(struct engine *engine, struct operation *operation, int64_t now_ns);

/* Answer a request, which then is over. False if it reached nobody. */
bool engine_reply(struct engine *engine, struct call *call, enum round_kind kind,
                  const struct reply *reply);

/* The same, and it is not counted. */
bool engine_say(struct engine *engine, struct call *call, const struct reply *reply);

/* ... from what its round has come to. */
bool engine_answer(struct engine *engine, struct operation *operation, int64_t now_ns);

/* Format one of an operation's commands, in this form, in engine->command; returns its length. */
size_t engine_format(struct engine *engine, const struct operation *operation,
                     enum round_command command, enum redis_form form, int64_t now_ns);

/* The node is owed the release of the operation's token. */
void engine_owe(struct engine *engine, unsigned node, const struct operation *operation,
                int64_t now_ns);

/* Release a token, or hand it over to the next in line if this daemon has granted it (known).
 * Without a call, nobody is told. */
void engine_release(struct engine *engine, struct resource *resource, const char *token,
                    struct operation *operation, bool known, int64_t now_ns);

void engine_make_token(struct engine *engine, char *token);

/* --- engine_waits.c --- */

void engine_lock(struct engine *engine, struct engine_client *client, const struct request *request,
                 struct resource *resource, int64_t now_ns);

/* The round for the first in line has settled. False if a grant reached nobody. */
bool engine_on_asked(struct engine *engine, struct operation *operation, int64_t now_ns);

/* Do what the queue wants done now. */
void engine_run_queue(struct engine *engine, struct resource *resource, int64_t now_ns);

/* Hand the lock over instead of releasing it, if somebody waits for it and it is his turn. */
bool engine_hand_over(struct engine *engine, struct operation *release, int64_t now_ns);

void engine_on_wall(struct engine *engine, struct call *call, int64_t now_ns);

/* The command tells of this daemon; and how long a lock has to be free for its waiters, if it
 * leaves word. */
void engine_sign(const struct engine *engine, struct redis_call *call);

/* A call that waits, or that is asked for, is over without an answer. */
void engine_leave_line(struct engine *engine, struct call *call);

/* A look, or an undo, has told who holds the key. */
void engine_on_seen(struct engine *engine, unsigned node, struct queue *queue,
                    const struct answer *answer, const struct link_ticket *ticket, int64_t now_ns);

/* A look has been answered, or lost with its connection. */
void engine_on_look(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                    const struct redis_reply *reply, int64_t now_ns);
void engine_on_look_lost(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                         int64_t now_ns);

/* All who wait for something are told that the daemon stops. */
void engine_drain_queues(struct engine *engine, int64_t now_ns);

/* A node tells of changes from now on; it does no more; one key has changed, or any may have. */
void engine_on_tracked(struct engine *engine, unsigned node, int64_t now_ns);
void engine_on_untracked(struct engine *engine, unsigned node, int64_t now_ns);
/* It has its vote back: whoever waits looks at it again. */
void engine_on_vote(struct engine *engine, unsigned node, int64_t now_ns);
void engine_on_changed(struct engine *engine, unsigned node, const char *key, size_t key_len,
                       int64_t now_ns);

/* --- engine_locks.c --- */

bool engine_locks_init(struct engine *engine);

/* max_hold has changed: so may have when each HOLD is extended next, or is lost. */
void engine_set_hold_alarms(struct engine *engine);

/* A LOCK was granted to this client. */
void engine_on_granted(struct engine *engine, const struct operation *operation,
                       struct engine_client *client, bool hold, bool lingers, int64_t now_ns);

/* The bound that this EXTEND meets, if any: one word for LIMIT. Over the connection that holds the
 * lock that is max_hold alone, and as the daemon's own extensions are, it is not counted. */
const char *engine_refuses_extension(const struct engine *engine,
                                     const struct engine_client *client,
                                     const struct request *request, const struct resource *resource,
                                     int64_t now_ns);

/* An extension has settled: of a client, or of the daemon itself. */
void engine_on_extended(struct engine *engine, struct operation *operation, int64_t now_ns);

/* This client has it released. If another one holds it, that one is told. False if the token was
 * not granted through this daemon, as far as it knows. */
bool engine_end_lock(struct engine *engine, struct resource *resource, const char *token,
                     const struct engine_client *client);

/* Extend what is due, as far as there is room for that. */
bool engine_wants_renewals(const struct engine *engine);
void engine_renew(struct engine *engine, int64_t now_ns);

void engine_on_lock_alarm(struct engine *engine, struct lock *lock, int64_t now_ns);

/* The client has ended its connection in order: those that linger stay unless it said QUIT. */
void engine_release_holds(struct engine *engine, struct engine_client *client, bool by_quit,
                          int64_t now_ns);
/* The connection is gone. */
void engine_abandon_holds(struct engine *engine, struct engine_client *client);

/* The daemon stops; a node has lost its vote. */
void engine_lose_holds(struct engine *engine);
void engine_warn_holds(struct engine *engine, unsigned node, enum reason reason);

/* --- engine_break.c --- */

bool engine_break_init(struct engine *engine);

/* This round is the first of a BREAK, and tells which token is there. False: too many are under
 * way. */
bool engine_break(struct engine *engine, struct operation *look);

/* What a node has said to one of its rounds; whether that counts shows later. */
void engine_break_note(struct operation *operation, unsigned node, const struct redis_reply *reply);

/* One of its rounds has settled. The BREAK is answered; or it goes on with the next round: then it
 * is returned, and engine_break_go_on() is called as the last thing of this step. */
struct breaking *engine_break_on_settled(struct engine *engine, struct operation *operation,
                                         int64_t now_ns);
void engine_break_go_on(struct engine *engine, struct resource *resource, struct breaking *breaking,
                        int64_t now_ns);

/* A frozen form of this token that no other BREAK has. */
void engine_freeze_token(struct engine *engine, const char *token, char *frozen);

/* Its release is for those nodes alone that have answered the freeze. Otherwise, why not. */
enum reason engine_break_spares(const struct operation *release, unsigned node);

/* --- engine_releases.c ---
 *
 * What UNLOCKs of one pass have to delete goes to a node as one command: that costs the masters
 * much less than one for each. It is written at the end of the pass; or earlier, before anything
 * else about the same resource is, so that a node hears what is about one key in the order in which
 * it was decided. A node that refuses several at once gets each by itself, as it comes. What goes
 * by itself goes as the node's own compare-and-delete, if it has one: that costs it less than a
 * script.
 */

void engine_releases_init(struct engine *engine);

/* A token that is to be released must not be planted by an extension that is still under way. */
void engine_forbid_planting(struct engine *engine, const struct resource *resource,
                            const char *token, int64_t now_ns);

/* Is this a command of that kind? Then keep it for these nodes, and return those that do not take
 * it. */
bool engine_gathers(const struct operation *operation, enum round_command command);
uint32_t engine_gather(struct engine *engine, struct operation *operation, uint32_t nodes,
                       int64_t now_ns);

/* Something else about this resource is about to be written. Steps no operation. */
void engine_settle_order(struct engine *engine, const struct resource *resource, int64_t now_ns);

/* The end of the pass. */
bool engine_wants_releases(const struct engine *engine);
void engine_write_releases(struct engine *engine, int64_t now_ns);

/* The script has answered to a release that went by itself. */
void engine_on_released_alone(struct engine *engine, unsigned node, enum answer_kind said);

/* The node's own compare-and-delete has answered to one. */
void engine_on_native_release(struct engine *engine, unsigned node,
                              const struct link_ticket *ticket, const struct redis_reply *reply,
                              int64_t now_ns);

/* A release has found its token on less than a quorum: a BREAK that failed may have left it frozen,
 * which nodes that compare and delete by themselves do not see. They are sent the script. */
void engine_release_frozen(struct engine *engine, const struct operation *operation,
                           int64_t now_ns);

/* The answer to several, or the loss of its connection. */
void engine_on_releases(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                        const struct redis_reply *reply, int64_t now_ns);
void engine_on_releases_lost(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                             int64_t now_ns);

/* --- engine_try.c --- */

/* Name the key by which the guard asks whether locks may be set: see warden.h. */
void engine_name_absent_key(struct engine *engine);

void engine_on_trial(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                     const struct redis_reply *reply);

/* --- engine_links.c --- */

/* The room for the votes that wait. False if there is not enough memory. */
bool engine_links_init(struct engine *engine);
void engine_links_deinit(struct engine *engine);

/* What a node says to a command of an operation. The operation may be gone afterwards. */
void engine_deliver(struct engine *engine, unsigned node, struct operation *operation,
                    enum round_command command, const struct answer *said, int64_t now_ns);

/* The same of many votes one behind the other, most of which decide nothing. */
static inline void engine_deliver_vote(struct engine *engine, unsigned node,
                                       struct operation *operation, const struct answer *said,
                                       int64_t now_ns)
{
    if (said->kind != ANSWER_YES || !round_count_quietly(&operation->round, node, now_ns))
        engine_deliver(engine, node, operation, ROUND_VOTE, said, now_ns);
    else if (round_is_finished(&operation->round) && !operation->settled)
        engine_end(engine, operation);
}

/* A command of an operation has been written to these nodes: if their answers are votes, the guard
 * is asked about them at the end of the pass. */
void engine_guard_votes(struct engine *engine, const struct operation *operation,
                        enum round_command command, uint32_t nodes);

/* A command that hands over could not be written, or is not answered: both its rounds hear it. */
void engine_fail_swap(struct engine *engine, unsigned node, struct operation *operation,
                      enum reason reason, int64_t now_ns);

/* Let the connections do what is due. */
void engine_links_on_timer(struct engine *engine, int64_t now_ns);

#endif
