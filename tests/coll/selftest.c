/* selftest.c: two ranks with schedules that are wrong in one way each. A checker that finds nothing proves
 * nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "selftest.h"

#include <stdio.h>
#include <string.h>

#include "machine.h"

static const struct loc send0 = {BUF_SEND, 0}, recv0 = {BUF_RECV, 0}, temp0 = {BUF_TEMP, 0};

static void deadlock(struct sched *s, int rank)
{
    sched_send(s, 1 - rank, send0, 1);
    sched_fence(s);
    sched_recv(s, 1 - rank, recv0, 1);
}
static void sizes(struct sched *s, int rank)
{
    if (rank == 0)
        sched_send(s, 1, send0, 1);
    else
        sched_recv(s, 0, recv0, 2);
}
static void unreceived(struct sched *s, int rank)
{
    if (rank == 0)
        sched_send(s, 1, send0, 1);
}
static void uninitialised(struct sched *s, int rank)
{
    sched_temp(s, 2);
    sched_copy(s, temp0, recv0, 1);
}
static void unfenced(struct sched *s, int rank)
{
    sched_recv(s, 1 - rank, recv0, 1);
    sched_send(s, 1 - rank, send0, 1);
    sched_reduce(s, send0, recv0, recv0, 1);
}
static void overwritten(struct sched *s, int rank)
{
    sched_copy(s, send0, recv0, 1);
    sched_send(s, 1 - rank, recv0, 1);
    sched_recv(s, 1 - rank, recv0, 1);
}
static void constant(struct sched *s, int rank)
{
    sched_recv(s, 1 - rank, send0, 1);
    sched_send(s, 1 - rank, send0, 1);
}
static void bounds(struct sched *s, int rank)
{
    sched_copy(s, send0, loc_add(recv0, 2), 1);
}
static void left_operand(struct sched *s, int rank)
{
    sched_copy(s, send0, recv0, 1);
    sched_copy(s, send0, sched_temp(s, 1), 1);
    sched_reduce(s, recv0, temp0, recv0, 1);
}
static void elements(struct sched *s, int rank)
{
    sched_copy(s, send0, recv0, 2);
    sched_reduce(s, send0, loc_add(recv0, 1), loc_add(recv0, 1), 1);
}

int selftest(void)
{
    static const struct {
        const char *name, *wanted;
        void (*make)(struct sched *s, int rank);
    } mistakes[] = {
        {"deadlock", "deadlock", deadlock},
        {"sizes", "who expects", sizes},
        {"unreceived", "deadlock", unreceived},
        {"uninitialised", "never written", uninitialised},
        {"unfenced", "while a message", unfenced},
        {"overwritten", "while a message", overwritten},
        {"constant", "only to be read", constant},
        {"bounds", "outside", bounds},
        {"left operand", "left operand", left_operand},
        {"elements", "combines element", elements},
    };
    int missed = 0;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct machine m;
        machine_open(&m, 2, 0);
        for (int r = 0; r < 2; r++) {
            m.procs[r].shape =
                (struct coll_shape){.rank = r, .size = 2, .kind = COLL_ALLREDUCE, .adjacent = true};
            machine_buffer(&m, r, BUF_SEND, 2, true);
            machine_buffer(&m, r, BUF_RECV, 2, false);
            machine_set(&m, r, BUF_SEND, 0, r, 0);
            machine_set(&m, r, BUF_SEND, 1, r, 1);
            mistakes[i].make(&m.procs[r].sched, r);
        }
        if (machine_run(&m) || !strstr(m.error, mistakes[i].wanted)) {
            printf("FAIL selftest '%s': the checker says '%s'\n", mistakes[i].name, m.error);
            missed++;
        }
        machine_close(&m);
    }
    return missed;
}
