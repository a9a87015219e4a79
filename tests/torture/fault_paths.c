/* Faults of the paths between daemons and masters. A partition can also cut off the clients. */
#include <stdio.h>

#include "tests/torture/faults.h"

enum { DISTURBED_MS = 1600, SLOW_MS = 120, LOST_MS = 1600 };

/* --- the proxy --- */

static void speed_up(struct faults *faults, unsigned index)
{
    struct proxy_line *line = &faults->torture->proxy.lines[index];
    for (unsigned way = 0; way < PROXY_WAYS; way++) {
        line->delay_ms[way] = 0;
        line->jitter_ms[way] = 0;
        line->stalled[way] = false;
    }
    ledger_note(&faults->torture->ledger, "proxy to master %u: normal", index);
}

static void slow_down(struct faults *faults, unsigned index)
{
    struct proxy_line *line = &faults->torture->proxy.lines[index];
    for (unsigned way = 0; way < PROXY_WAYS; way++) {
        line->delay_ms[way] = faults_below(faults, SLOW_MS);
        line->jitter_ms[way] = faults_below(faults, SLOW_MS);
    }
    faults_note(faults, FAULT_PROXY, "master %u: %u + %u ms there, %u + %u ms back", index,
                line->delay_ms[0], line->jitter_ms[0], line->delay_ms[1], line->jitter_ms[1]);
}

static void stall(struct faults *faults, unsigned index)
{
    static const char *const words[] = {"there", "back", "both ways"};
    struct proxy_line *line = &faults->torture->proxy.lines[index];
    unsigned which = faults_below(faults, 3);
    line->stalled[PROXY_TO_MASTER] = which != 1;
    line->stalled[PROXY_TO_DAEMON] = which != 0;
    faults_note(faults, FAULT_PROXY, "master %u: stalls %s", index, words[which]);
}

void strike_proxy(struct faults *faults, unsigned index)
{
    struct proxy_line *line = &faults->torture->proxy.lines[index];
    switch (faults_below(faults, 3)) {
    case 0:
        slow_down(faults, index);
        break;
    case 1:
        stall(faults, index);
        break;
    default:
        faults_note(faults, FAULT_PROXY, "master %u: resets", index);
        line->resets++;
        return;
    }
    faults_later(faults, 20 + faults_below(faults, DISTURBED_MS), speed_up, index);
}

/* --- lost packets --- */

struct peer_name {
    char text[16];
};

static struct peer_name peer_name(unsigned peer)
{
    struct peer_name name = {"the clients"};
    if (peer != NET_CLIENTS)
        snprintf(name.text, sizeof(name.text), "master %u", peer);
    return name;
}

static void end_partition(struct faults *faults, unsigned peer)
{
    net_restore(&faults->torture->net, peer);
    faults->cut_off &= ~(1u << peer);
    ledger_note(&faults->torture->ledger, "partition: packets reach %s again",
                peer_name(peer).text);
}

void strike_partition(struct faults *faults, unsigned master)
{
    static const char *const words[] = {"to", "from", "to and from"};
    unsigned way = faults_below(faults, 3);
    unsigned peer = faults_below(faults, 8) == 0 ? NET_CLIENTS : master;
    if (!faults->torture->net.there || (faults->cut_off >> peer & 1) != 0)
        return;
    faults_note(faults, FAULT_PARTITION, "packets %s %s are lost", words[way],
                peer_name(peer).text);
    faults->cut_off |= 1u << peer;
    if (!net_cut(&faults->torture->net, peer, (enum net_way)way))
        ledger_violated(&faults->torture->ledger,
                        "ip(8) failed to drop packets %s %s; read its error in net.log", words[way],
                        peer_name(peer).text);
    faults_later(faults, 20 + faults_below(faults, LOST_MS), end_partition, peer);
}
