/* test_loop.c: the event loop of mpiexec: a watch that a handler removes is not called again in the same
 * turn and may be freed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../launcher/core/loop.h"
#include "test.h"

struct watched_pipe {
    struct watch watch;
    int pipe[2];
};

static struct loop loop;
static struct watched_pipe *ends[2];
static int called;

static void free_watched_pipe(struct watched_pipe *e)
{
    loop_remove(&loop, &e->watch);
    close(e->pipe[0]);
    close(e->pipe[1]);
    /* File 0 and no handler: any use of the freed watch ends the test, with or without a sanitizer. */
    memset(e, 0, sizeof(*e));
    free(e);
}

/* Both pipes are readable in the same turn: the handler called first removes the other watch. */
static void on_readable(void *ctx, uint32_t events)
{
    const int other = ctx == ends[0];
    (void)events;
    called++;
    if (ends[other]) {
        free_watched_pipe(ends[other]);
        ends[other] = NULL;
    } else {
        loop.stop = true;
    }
}

static void test_watch_removed_in_its_turn(void)
{
    loop_init(&loop);
    for (int i = 0; i < 2; i++) {
        ends[i] = calloc(1, sizeof(*ends[i]));
        EXPECT_EQ(pipe(ends[i]->pipe), 0);
        EXPECT_EQ(write(ends[i]->pipe[1], "x", 1), 1);
        ends[i]->watch = (struct watch){.fn = on_readable, .ctx = ends[i]};
        EXPECT(loop_add(&loop, &ends[i]->watch, ends[i]->pipe[0], EPOLLIN));
    }
    loop_run(&loop);
    EXPECT_EQ(called, 2); /* the handler of the remaining watch ran twice, that of the freed watch never */
    for (int i = 0; i < 2; i++)
        if (ends[i])
            free_watched_pipe(ends[i]);
    close(loop.epoll);
}

int main(void)
{
    TEST_RUN(test_watch_removed_in_its_turn);
    return test_result();
}
