/* buffers.c: a program that allocates and frees a large buffer for each message does not register it each
 * time, since malloc retains the memory; if malloc is configured not to, messages are still correct.
 * Memory that is unmapped and mapped again at the same address is different memory: its old registration
 * must be dropped, otherwise the adapter would access pages that are no longer mapped (on softib, which
 * pins nothing, only the counter shows this).
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

static unsigned long long count_registrations(void)
{
    unsigned long long n = 0;
    EXPECT_EQ(MPI_T_pvar_read(session, misses, &n), MPI_SUCCESS);
    return n;
}

static void exchange_message(char *buf, int seed)
{
    struct layout l = make_layout(BYTES, 0);
    if (mpitest_rank == 0) {
        pattern_fill(buf, &l, seed);
        MPI_Send(buf, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buf, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(pattern_count_wrong(buf, &l, seed), 0);
    }
}

/* False under a sanitizer, whose malloc cannot be configured to retain memory. */
static int malloc_is_libc(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.arena + now.hblks > 0;
}

static void test_malloc_buffers(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        char *buf = malloc(BYTES);
        EXPECT(buf != NULL);
        exchange_message(buf, i);
        free(buf);
    }
    EXPECT(count_registrations() > 0);
    if (malloc_is_libc() && !getenv("MALLOC_TOP_PAD_"))
        EXPECT(count_registrations() < MESSAGES / 2);
}

/* Maps new pages at the same address, as far as the kernel permits. */
static void test_remapped_buffers(void)
{
    unsigned long long before = count_registrations();
    void *wish = NULL;
    int again = 0;
    for (int i = 0; i < MESSAGES; i++) {
        void *buf = mmap(wish, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(buf != MAP_FAILED);
        again += buf == wish;
        wish = buf;
        exchange_message(buf, MESSAGES + i);
        munmap(buf, BYTES);
    }
    EXPECT(again > MESSAGES / 2);
    EXPECT(count_registrations() - before >= MESSAGES);
}

int main(int argc, char **argv)
{
    start_counting();
    mpitest_begin(&argc, &argv);
    test_malloc_buffers();
    test_remapped_buffers();
    return mpitest_end();
}
