/* test_process_end.c: the end of each watched process is reported once, and the watching thread can be
 * closed while idle, before the ends are taken, and right after. The program has more thread-local
 * variables than the thread's stack holds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/shm/process_end.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define ROUNDS 900

static _Thread_local volatile char large[256 * 1024];

enum close_case { CLOSE_IDLE, CLOSE_BEFORE_TAKE, CLOSE_AFTER_TAKE, CLOSE_CASES };

/* Starts a child that exits as soon as `go` is closed, and remains a zombie until it is waited for. */
static pid_t start_child(int *go)
{
    int ends[2];
    char byte;
    EXPECT(pipe(ends) == 0);
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    close(ends[0]);
    *go = ends[1];
    return child;
}

static void run_close_case(struct net *net, enum close_case close_case)
{
    struct process_ends ends = {.is_open = false};
    struct process_end end = {.number = 7};
    int go;
    const pid_t child = start_child(&go);
    const int error = process_ends_add(&ends, net, child, &end);
    if (error == ENOSYS) {
        printf("this kernel has no pidfd_open\n");
        exit(77);
    }
    EXPECT_EQ(error, 0);
    if (close_case == CLOSE_IDLE) {
        process_ends_remove(&ends, &end);
        process_ends_close(&ends);
        close(go);
    } else {
        close(go);
        while (!process_ends_is_pending(&ends))
            poll(NULL, 0, 0);
        if (close_case == CLOSE_AFTER_TAKE) {
            EXPECT(process_ends_pop(&ends) == &end);
            EXPECT(process_ends_pop(&ends) == NULL);
        } else {
            process_ends_remove(&ends, &end);
        }
        process_ends_close(&ends);
    }
    EXPECT_EQ(waitpid(child, NULL, 0), child);
}

int main(void)
{
    struct doorbell bell = {0};
    struct net net = {.doorbell = &bell};
    large[0] = 1;
    for (int round = 0; round < ROUNDS && test_failures == 0; round++)
        run_close_case(&net, (enum close_case)(round % CLOSE_CASES));
    return test_result();
}
