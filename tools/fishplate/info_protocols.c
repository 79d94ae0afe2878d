/* info_protocols.c: how rank 0 reaches the other ranks of the job: the transport, its capabilities, and which
 * protocol is used up to which message size. Ranks that are reached in the same way share one line.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <mpi.h>
#include <string.h>

#include "base/tunable.h"
#include "info.h"
#include "net/net.h"
#include "net/peer.h"

static bool protocols_are_equal(const struct peer *a, const struct peer *b)
{
    return a->ops == b->ops && memcmp(&a->caps, &b->caps, sizeof(a->caps)) == 0 &&
           a->eager_max == b->eager_max;
}

/* Returns the protocol for messages above the eager limit: the one that the user or the tuner selected if
 * the receiver can read the sender's memory, else r3. */
static const char *describe_large_protocol(const struct fishplate_inside *in, const struct peer *p)
{
    char choice[32] = "";
    for (size_t i = 0; i < in->tunables_count(); i++)
        if (strcmp(in->tunables_get(i)->name, "RENDEZVOUS") == 0)
            in->tunable_format(in->tunables_get(i), choice, sizeof(choice));
    static const struct {
        const char *name, *text;
    } forced[] = {{"rput", "rput (the sender writes into the receiver's memory on request)"},
                  {"getcqe", "getcqe (the receiver reads the sender's memory)"},
                  {"get", "get (the receiver reads the sender's memory and polls the last byte)"},
                  {"putnr", "putnr (the receiver offers its memory, its last byte a constant), or get"},
                  {"put", "put (the receiver offers its memory, its last byte random), or get"},
                  {"split", "split (the receiver reads a part while the sender writes the rest)"}};
    if (strncmp(choice, "map", 3) == 0)
        choice[0] = '\0'; /* the setting concerns only GPU memory */
    if ((!p->caps.get && !p->caps.put) || strcmp(choice, "r3") == 0)
        return "r3 (copied in pieces)";
    for (size_t i = 0; i < sizeof(forced) / sizeof(forced[0]); i++)
        if (strcmp(choice, forced[i].name) == 0)
            return forced[i].text;
    return p->caps.cpu_moves
               ? "getcqe (the receiver reads the sender's memory), split (the sender writes a part) or r3 "
                 "(copied in pieces), whichever is measured to be fastest"
           : p->caps.software
               ? "get, rput or split (the receiver reads a part, the sender writes the rest), whichever is "
                 "measured to be fastest"
               : "put where the receive was offered; else get or rput, whichever is measured to be faster";
}

/* Prints the settings for several rails; nothing with one rail. */
static void print_rails(const struct peer *p)
{
    if (!p->caps.striped_from)
        return;
    printf("    several rails      %s; ",
           p->caps.frames_spread
               ? "frames and slots of rings take any of them, by their size (FISHPLATE_LAB=IB_MESSAGES)"
               : "frames take one, and another when it fails (FISHPLATE_LAB=IB_MESSAGES=binding)");
    if (p->caps.striped_from > SIZE_MAX / 8)
        printf("so does each large message (FISHPLATE_IB_STRIPE)\n");
    else
        printf("large messages of at least %zu bytes are divided among all (FISHPLATE_IB_STRIPE)\n",
               p->caps.striped_from);
    printf(
        "                       get, putnr and put: a message reports the end, since the last byte may not "
        "be the last to arrive\n");
}

struct printer {
    const struct fishplate_inside *in;
    struct json *json;
};

/* Calls visit for each group of consecutive ranks first..last that are reached by the same protocol. */
static void for_each_protocol_range(const struct fishplate_inside *in,
                                    void (*visit)(const struct peer *, int, int, void *), void *arg)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int first = 0, last; first < size; first = last + 1) {
        const struct peer *p = in->peer(first);
        last = first;
        if (!p)
            continue;
        while (last + 1 < size && in->peer(last + 1) && protocols_are_equal(p, in->peer(last + 1)))
            last++;
        visit(p, first, last, arg);
    }
}

/* Returns the origin of the eager limit. */
static const char *describe_eager_source(const struct fishplate_inside *in, const struct peer *p)
{
    for (size_t i = 0; i < in->tunables_count(); i++) {
        const struct tunable *t = in->tunables_get(i);
        if (strcmp(t->name, "EAGER_MAX") != 0)
            continue;
        if (t->source != SOURCE_DEFAULT)
            return p->eager_max < (uint64_t)t->value
                       ? "one frame of the transport; FISHPLATE_EAGER_MAX is larger"
                       : "FISHPLATE_EAGER_MAX";
        if (p->caps.eager_best)
            return "what the transport does best; FISHPLATE_EAGER_MAX is not set";
    }
    return "the default of FISHPLATE_EAGER_MAX";
}

static void print_protocol_range(const struct peer *p, int first, int last, void *arg)
{
    const struct printer *to = arg;
    char ranks[32];
    snprintf(ranks, sizeof(ranks), first == last ? "%d" : "%d-%d", first, last);
    char by[256];
    to->in->peer_describe(p, by, sizeof(by));
    printf("  to rank %s by %s: frames of up to %zu bytes, the first %zu at no extra cost\n", ranks, by,
           p->caps.frame_max, p->caps.inline_max);
    printf("    up to %" PRIu64 " bytes  eager (sent at once); the limit is %s\n", p->eager_max,
           describe_eager_source(to->in, p));
    printf("    above %" PRIu64 " bytes  %s\n", p->eager_max, describe_large_protocol(to->in, p));
    print_rails(p);
}

static void json_protocol_range(const struct peer *p, int first, int last, void *arg)
{
    const struct printer *to = arg;
    struct json *j = to->json;
    json_object(j, NULL);
    json_members(j, "first_rank=%d last_rank=%d", first, last);
    char by[256];
    json_string(j, "transport", p->ops->name);
    to->in->peer_describe(p, by, sizeof(by));
    json_members(j, "over=%s frame_max=%lld inline_max=%lld eager_max=%lld eager_max_from=%s large=%s", by,
                 (long long)p->caps.frame_max, (long long)p->caps.inline_max, (long long)p->eager_max,
                 describe_eager_source(to->in, p), describe_large_protocol(to->in, p));
    json_bool(j, "several_rails", p->caps.striped_from != 0);
    json_bool(j, "frames_spread", p->caps.frames_spread);
    if (p->caps.striped_from && p->caps.striped_from <= SIZE_MAX / 8)
        json_int(j, "striped_from", (long long)p->caps.striped_from);
    json_members(j, "latency_ns=%d bandwidth_mbs=%d", p->caps.latency_ns, p->caps.bandwidth_mbs);
    json_end(j);
}

/* True if the job continues when ranks die (mpiexec -enable-recovery). */
static bool protocols_can_recover(const struct fishplate_inside *in)
{
    return in->peer(0) && in->peer(0)->net->lost;
}

/* Returns the methods by which this job may execute collective calls (info --coll lists the algorithms). */
static const char *protocols_collective_text(const struct fishplate_inside *in)
{
    return protocols_can_recover(in)
               ? "made of the messages above, every one (-enable-recovery): flags in memory, RDMA writes, "
                 "switches and multicast do not say who is missing"
               : "by flags in shared memory on one node, by messages, RDMA writes, switches or multicast "
                 "between nodes, as FISHPLATE_COLL or trials say";
}

void info_protocols_text(const struct fishplate_inside *in)
{
    printf("Protocols of rank 0\n");
    for_each_protocol_range(in, print_protocol_range, &(struct printer){.in = in});
    printf("  collectives: %s\n", protocols_collective_text(in));
}

void info_protocols_json(const struct fishplate_inside *in, struct json *j)
{
    json_array(j, "protocols");
    for_each_protocol_range(in, json_protocol_range, &(struct printer){.in = in, .json = j});
    json_end(j);
    json_string(j, "protocols_of_collectives", protocols_collective_text(in));
}
