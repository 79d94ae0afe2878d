/* buffers.c: a program that allocates a large buffer for each message and frees it again does not pay for a
 * registration each time: malloc keeps the memory. Where it is configured not to, the messages are right all the
 * same. Memory that is really given back and mapped again at the same address is other memory: what was registered
 * there must be forgotten, or the adapter reads and writes pages that nobody sees (on softib, which pins nothing, only
 * the counter would tell).
 *
 * ranks: 2
 * nodes: only 2
 * also: MALLOC_TOP_PAD_=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <sys/mman.h>

#include "../p2p/pattern.h"

enum { MESSAGES = 24, BYTES = 3 << 20 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle misses;

static void start_counting(void)
{
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    EXPECT_EQ(MPI_T_pvar_get_index("reg_misses", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(session, index, NULL, &misses, &count);
    MPI_T_pvar_start(session, misses);
}

static unsigned long long buffers_registered(void)
{
    unsigned long long n = 0;
    EXPECT_EQ(MPI_T_pvar_read(session, misses, &n), MPI_SUCCESS);
    return n;
}

static void one_message(char *buf, int seed)
{
    struct layout l = layout_of(BYTES, 0);
    if (mpitest_rank == 0) {
        pattern_fill(buf, &l, seed);
        MPI_Send(buf, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buf, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(pattern_wrong(buf, &l, seed), 0);
    }
}

/* A sanitizer brings a malloc of its own, which cannot be configured to keep memory. */
static int malloc_is_libc(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.arena + now.hblks > 0;
}

static void from_malloc(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        char *buf = malloc(BYTES);
        EXPECT(buf != NULL);
        one_message(buf, i);
        free(buf);
    }
    EXPECT(buffers_registered() > 0);
    if (malloc_is_libc() && !getenv("MALLOC_TOP_PAD_"))
        EXPECT(buffers_registered() < MESSAGES / 2);
}

/* Maps new pages at the same address, as far as the kernel permits. */
static void from_the_kernel(void)
{
    unsigned long long before = buffers_registered();
    void *wish = NULL;
    int again = 0;
    for (int i = 0; i < MESSAGES; i++) {
        void *buf = mmap(wish, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(buf != MAP_FAILED);
        again += buf == wish;
        wish = buf;
        one_message(buf, MESSAGES + i);
        munmap(buf, BYTES);
    }
    EXPECT(again > MESSAGES / 2);
    EXPECT(buffers_registered() - before >= MESSAGES);
}

int main(int argc, char **argv)
{
    start_counting();
    mpitest_begin(&argc, &argv);
    from_malloc();
    from_the_kernel();
    return mpitest_end();
}
