/* place.c: determines the core of each rank. If the launcher did not bind the ranks, the ranks of a test are
 * pinned to separate cores here; the report lists the placement.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct seat {
    int core;    /* core on which the rank ran at the start */
    int bound;   /* the affinity mask of the rank has only one core */
    int node;    /* lowest rank on the same node */
    int machine; /* lowest rank on the same machine: virtual nodes share its cores */
};

struct bench_place {
    cpu_set_t own;   /* affinity mask of this rank at its start */
    cpu_set_t cores; /* all cores that ranks of this machine may use */
    char host[MPI_MAX_PROCESSOR_NAME];
    struct seat *seats; /* [size] one entry for each rank */
    bool pinned;        /* bench_pin has pinned this rank */
};

/* Returns a number that identifies the machine: a hash of the kernel's boot identifier, which virtual
 * nodes and containers share. */
static int hash_machine_id(const char *host)
{
    char line[64] = "";
    unsigned hash = 2166136261u;
    FILE *in = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!in || !fgets(line, sizeof(line), in))
        snprintf(line, sizeof(line), "%.60s", host);
    if (in)
        fclose(in);
    for (const char *c = line; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return (int)(hash >> 1);
}

/* Returns the lowest rank of a communicator and frees the communicator. */
static int find_lowest_rank(MPI_Comm *comm, int rank)
{
    MPI_Bcast(&rank, 1, MPI_INT, 0, *comm);
    MPI_Comm_free(comm);
    return rank;
}

struct bench_place *bench_place_find(struct bench *b)
{
    struct bench_place *p = calloc(1, sizeof(*p));
    struct seat *seats = calloc((size_t)b->size, sizeof(*seats));
    if (!p || !seats)
        MPI_Abort(b->comm, 1);
    p->seats = seats;
    int len = 0;
    MPI_Get_processor_name(p->host, &len);
    if (sched_getaffinity(0, sizeof(p->own), &p->own) != 0)
        CPU_SET(0, &p->own);

    MPI_Comm node, machine;
    MPI_Comm_split_type(b->comm, MPI_COMM_TYPE_SHARED, b->rank, MPI_INFO_NULL, &node);
    MPI_Comm_split(b->comm, hash_machine_id(p->host), b->rank, &machine);
    MPI_Allreduce(&p->own, &p->cores, (int)sizeof(p->own), MPI_BYTE, MPI_BOR, machine);
    struct seat mine = {.core = sched_getcpu(),
                        .bound = CPU_COUNT(&p->own) == 1,
                        .node = find_lowest_rank(&node, b->rank),
                        .machine = find_lowest_rank(&machine, b->rank)};
    MPI_Allgather(&mine, (int)sizeof(mine), MPI_BYTE, seats, (int)sizeof(mine), MPI_BYTE, b->comm);
    return p;
}

void bench_place_free(struct bench_place *p)
{
    free(p->seats);
    free(p);
}

/* Returns the i-th core of a mask; -1 if there are fewer. */
static int find_nth_core(const cpu_set_t *mask, int i)
{
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, mask) && i-- == 0)
            return core;
    return -1;
}

/* Returns how many of the `active` lowest ranks run on this machine; *place: number of lower ones. */
static int place_count_active(struct bench *b, int active, int *place)
{
    int here = 0;
    *place = 0;
    for (int r = 0; r < active; r++) {
        if (b->place->seats[r].machine != b->place->seats[b->rank].machine)
            continue;
        *place += r < b->rank;
        here++;
    }
    return here;
}

bool bench_is_oversubscribed(struct bench *b, int active)
{
    int place;
    return place_count_active(b, active, &place) > CPU_COUNT(&b->place->cores);
}

void bench_pin(struct bench *b, int active)
{
    struct bench_place *p = b->place;
    int place;
    place_count_active(b, active, &place);
    if (b->options.no_pin || CPU_COUNT(&p->own) == 1 || bench_is_oversubscribed(b, active))
        return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(find_nth_core(&p->cores, place), &one);
    p->pinned = sched_setaffinity(0, sizeof(one), &one) == 0;
}

void bench_unpin(struct bench *b)
{
    if (b->place->pinned)
        sched_setaffinity(0, sizeof(b->place->own), &b->place->own);
    b->place->pinned = false;
}

int bench_cores(struct bench *b, int core[2])
{
    core[0] = find_nth_core(&b->place->cores, 0);
    core[1] = find_nth_core(&b->place->cores, 1);
    return core[1] >= 0 ? 2 : 1;
}

void bench_place_describe(struct bench *b, char *out, size_t size)
{
    const struct bench_place *p = b->place;
    int nodes = 0, bound = 0, cores = CPU_COUNT(&p->cores);
    for (int r = 0; r < b->size; r++) {
        nodes += p->seats[r].node == r;
        bound += p->seats[r].bound;
    }
    int n = snprintf(out, size, "%d rank%s on %s%s, %d core%s", b->size, b->size == 1 ? "" : "s", p->host,
                     nodes > 1 ? " and other nodes" : "", cores, cores == 1 ? "" : "s");
    if (bound < b->size) {
        snprintf(out + n, size - (size_t)n, "; %s",
                 b->options.no_pin
                     ? "not bound"
                     : "not bound: each rank of a test is bound to a core while there are enough cores");
        return;
    }
    n += snprintf(out + n, size - (size_t)n, "; bound to core");
    for (int r = 0; r < b->size && r < 16 && (size_t)n < size; r++)
        n += snprintf(out + n, size - (size_t)n, " %d", p->seats[r].core);
    if (b->size > 16 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, " ...");
}
