/* test_exchange_heads.c: an aggregator posts no receive that reaches beyond its window, whatever a rank
 * announces in the head of a collective write.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <setjmp.h>

#include "io/exchange.h"
#include "test.h"

#define WINDOW 64

static char window[WINDOW];
static jmp_buf refused;
static const char *at; /* memory of the receive that was posted last */
static MPI_Count room;

_Noreturn void __wrap_err_panic(const char *file, int line, const char *sentence);
int __wrap_p2p_irecv(struct p2p *p, void *buf, MPI_Count count, struct dtype *type, struct envelope env,
                     struct request **out);

_Noreturn void __wrap_err_panic(const char *file, int line, const char *sentence)
{
    longjmp(refused, 1);
}

int __wrap_p2p_irecv(struct p2p *p, void *buf, MPI_Count count, struct dtype *type, struct envelope env,
                     struct request **out)
{
    at = buf;
    room = count;
    return MPI_ERR_OTHER;
}

/* Lets an aggregator receive the data of rank 1. Returns false if it refuses the head. */
static bool accepts_head(struct head head)
{
    static struct proc proc;
    struct comm comm = {.proc = &proc, .rank = 0, .size = 2};
    struct file file = {.comm = &comm};
    struct io_op op = {.file = &file};
    struct io_buffers buffers = {.size = WINDOW, .window = {window, window}};
    struct part parts[2] = {[1] = {.active = true, .head = head}};
    struct server server = {.parts = parts};
    struct exchange x = {.op = &op, .file = &file, .write = true, .window = WINDOW, .buffers = &buffers};
    if (setjmp(refused))
        return false;
    server_receive_bodies(&x, &server);
    part_free(&parts[1]);
    return true;
}

static void test_block_in_window(void)
{
    for (int64_t first = 0; first < WINDOW; first += 21) {
        EXPECT(accepts_head((struct head){.pieces = 1, .bytes = WINDOW - first, .first = first}));
        EXPECT(at == window + first);
        EXPECT_EQ(room, WINDOW - first);
    }
}

static void test_block_beyond_window(void)
{
    static const struct head heads[] = {{1, WINDOW, 1},    {1, 1, WINDOW}, {1, 33, 32}, {1, WINDOW + 1, 0},
                                        {1, 1, INT64_MAX}, {1, 1, -1},     {1, 0, 0},   {1, -1, 0},
                                        {-1, 1, 0},        {2, 1, 0}};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        EXPECT(!accepts_head(heads[i]));
}

int main(void)
{
    TEST_RUN(test_block_in_window);
    TEST_RUN(test_block_beyond_window);
    return test_result();
}
