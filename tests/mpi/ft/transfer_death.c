/* transfer_death.c: one end of a large message dies during the transfer, for each protocol. One process
 * watches the receiver's memory and, when the first bytes have arrived, kills the other process or itself:
 * some protocols copy at one end, some at the other, and the copying process does not watch. The surviving
 * end gets MPIX_ERR_PROC_FAILED, or the whole message if the transfer was faster; after its call has
 * returned, its memory is no longer accessed.
 *
 * ranks: 8
 * nodes: 8
 * mpiexec: -enable-recovery
 * also: FISHPLATE_SHM_CMA=0
 * also: FISHPLATE_RENDEZVOUS=rput
 * also: FISHPLATE_RENDEZVOUS=split
 * on nodes: FISHPLATE_RENDEZVOUS=rput
 * on nodes: FISHPLATE_RENDEZVOUS=getcqe
 * on nodes: FISHPLATE_RENDEZVOUS=get
 * on nodes: FISHPLATE_RENDEZVOUS=putnr
 * on nodes: FISHPLATE_RENDEZVOUS=put
 * on nodes: FISHPLATE_RENDEZVOUS=split
 * on nodes: FISHPLATE_RENDEZVOUS=r3
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "ft/ft.h"

#define BYTES        (16 << 20)
#define PAGE         4096
#define WATCHED_BYTE (1 << 18) /* one process of the pair dies when the byte at this offset has arrived */
#define FILL         7
#define PAIRS        4 /* pairs of rank i and rank i + PAIRS, which dies */

/* For each pair: whether the survivor receives, and whether the receiver watches. */
static const struct {
    int survivor_receives, receiver_watches;
} pairs[PAIRS] = {{1, 0}, {1, 1}, {0, 1}, {0, 0}};

struct process_memory {
    int pid, file; /* process id and descriptor of its memory file */
};

static char *memory;
static struct process_memory me, other;
static int partner, receives, survives, watches;
static int ncomplete,
    ninterrupted; /* numbers of messages that arrived completely, and that the death ended */

/* Byte i of the message: each page has one value. */
static int message_byte(size_t i)
{
    return 20 + (int)(i / PAGE) % 100;
}

static void fill_message(void)
{
    for (size_t i = 0; i < BYTES; i += PAGE)
        memset(memory + i, message_byte(i), PAGE);
}

static int message_is_complete(void)
{
    char page[PAGE];
    for (size_t i = 0; i < BYTES; i += PAGE) {
        memset(page, message_byte(i), PAGE);
        if (memcmp(memory + i, page, PAGE) != 0)
            return 0;
    }
    return 1;
}

static int transfer_has_begun(void)
{
    for (size_t i = 0; i < BYTES; i += PAGE)
        if (memory[i] != FILL)
            return 1;
    return 0;
}

static void agree_repeatedly(void)
{
    for (int i = 0; i < 3; i++) {
        int flag = 1;
        MPIX_Comm_agree(now, &flag);
        EXPECT_EQ(flag, 1);
    }
}

/* Protects the buffer: from now on a write by this process crashes, and a write by another process is
 * detected. */
static void expect_no_more_writes(void)
{
    char *copy = malloc(BYTES);
    memcpy(copy, memory, BYTES);
    mprotect(memory, BYTES, PROT_READ);
    agree_repeatedly();
    EXPECT(memcmp(copy, memory, BYTES) == 0);
    free(copy);
}

/* Connects the pair and exchanges large messages, so that the tuner has measured them. */
static void warm_up(void)
{
    MPI_Sendrecv(&me, 2, MPI_INT, partner, 0, &other, 2, MPI_INT, partner, 0, now, MPI_STATUS_IGNORE);
    if (receives)
        MPI_Recv(memory, BYTES, MPI_BYTE, partner, 1, now, MPI_STATUS_IGNORE);
    else
        MPI_Send(memory, BYTES, MPI_BYTE, partner, 1, now);
}

static const volatile char *map_receiver_memory(void)
{
    char path[64];
    if (receives)
        return memory;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", other.pid, other.file);
    int fd = open(path, O_RDONLY);
    void *there = fd < 0 ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (there == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return there;
}

static void start_message(MPI_Request *r)
{
    if (receives) {
        memset(memory, FILL, BYTES);
        MPI_Irecv(memory, BYTES, MPI_BYTE, partner, 2, now, r);
        MPI_Send(memory, 0, MPI_BYTE, partner, 3, now);
    } else {
        MPI_Recv(memory, 0, MPI_BYTE, partner, 3, now, MPI_STATUS_IGNORE);
        MPI_Isend(memory, BYTES, MPI_BYTE, partner, 2, now, r);
    }
}

static int watch_and_kill(MPI_Request *r, const volatile char *received)
{
    int flag = 0, rc = MPI_SUCCESS;
    while (!flag && received[WATCHED_BYTE] == FILL)
        rc = MPI_Test(r, &flag, MPI_STATUS_IGNORE);
    kill(survives ? other.pid : me.pid, SIGKILL);
    return flag ? rc : MPI_Wait(r, MPI_STATUS_IGNORE);
}

static void check_result(int rc)
{
    char nothing;
    if (rc != MPI_SUCCESS)
        EXPECT_DEATH(rc);
    else if (receives)
        EXPECT(message_is_complete());
    if (rc == MPI_SUCCESS || (receives && message_is_complete()))
        ncomplete++;
    else if (!receives || transfer_has_begun())
        ninterrupted++;
    EXPECT_DEATH(MPI_Recv(&nothing, 1, MPI_BYTE, partner, 2, now, MPI_STATUS_IGNORE));
}

static void run_pair(int pair)
{
    MPI_Request r;
    partner = (rank + PAIRS) % size;
    survives = rank < PAIRS;
    receives = survives == pairs[pair].survivor_receives;
    watches = receives == pairs[pair].receiver_watches;
    warm_up();
    const volatile char *received = watches ? map_receiver_memory() : NULL;
    start_message(&r);
    int rc = watches ? watch_and_kill(&r, received) : MPI_Wait(&r, MPI_STATUS_IGNORE);
    while (!survives) /* until this process is killed */
        MPI_Recv(memory, 1, MPI_BYTE, partner, 4, now, MPI_STATUS_IGNORE);
    check_result(rc);
    expect_no_more_writes();
}

/* Runs one pair after the other, while the other processes sleep. */
static void run_pairs(void)
{
    for (int pair = 0; pair < PAIRS; pair++) {
        int flag = 1;
        MPIX_Comm_agree(now, &flag);
        if (rank % PAIRS == pair)
            run_pair(pair);
        else
            agree_repeatedly();
    }
}

/* The living ranks continue to communicate, with new memory at the former address. */
static void continue_with_survivors(void)
{
    MPI_Comm next;
    int ends[2] = {ncomplete, ninterrupted}, sum[2], one = 1, all = 0;
    EXPECT_CLASS(MPIX_Comm_shrink(now, &next), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, next), MPI_SUCCESS);
    EXPECT_EQ(all, PAIRS);
    munmap(memory, BYTES);
    memory = malloc(BYTES);
    fill_message();
    EXPECT_CLASS(MPI_Bcast(memory, BYTES, MPI_BYTE, 0, next), MPI_SUCCESS);
    EXPECT(message_is_complete());
    MPI_Reduce(ends, sum, 2, MPI_INT, MPI_SUM, 0, next);
    if (rank == 0)
        printf("%d messages arrived completely, %d ended during the transfer\n", sum[0], sum[1]);
    free(memory);
    MPI_Comm_free(&next);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    now = MPI_COMM_WORLD;
    update_rank_and_size();
    me = (struct process_memory){getpid(), memfd_create("midway", 0)};
    if (me.file < 0 || ftruncate(me.file, BYTES) != 0 || size != 2 * PAIRS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, me.file, 0);
    if (memory == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    fill_message();
    run_pairs();
    expect_no_more_writes();
    continue_with_survivors();
    return finalize_and_get_status();
}
