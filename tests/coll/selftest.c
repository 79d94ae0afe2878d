/* selftest.c: schedules of two ranks with one error each, which the checker must find.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "selftest.h"

#include <stdio.h>
#include <string.h>

#include "machine.h"

static const struct loc send0 = {BUF_SEND, 0}, recv0 = {BUF_RECV, 0}, temp0 = {BUF_TEMP, 0};

static void make_deadlock(struct sched *s, int rank)
{
    sched_send(s, 1 - rank, send0, 1);
    sched_fence(s);
    sched_recv(s, 1 - rank, recv0, 1);
}
static void make_size_mismatch(struct sched *s, int rank)
{
    if (rank == 0)
        sched_send(s, 1, send0, 1);
    else
        sched_recv(s, 0, recv0, 2);
}
static void make_unreceived_message(struct sched *s, int rank)
{
    if (rank == 0)
        sched_send(s, 1, send0, 1);
}
static void make_uninitialised_read(struct sched *s, int rank)
{
    sched_temp(s, 2);
    sched_copy(s, temp0, recv0, 1);
}
static void make_missing_fence(struct sched *s, int rank)
{
    sched_recv(s, 1 - rank, recv0, 1);
    sched_send(s, 1 - rank, send0, 1);
    sched_reduce(s, send0, recv0, recv0, 1);
}
static void make_overwritten_send(struct sched *s, int rank)
{
    sched_copy(s, send0, recv0, 1);
    sched_send(s, 1 - rank, recv0, 1);
    sched_recv(s, 1 - rank, recv0, 1);
}
static void make_write_to_constant(struct sched *s, int rank)
{
    sched_recv(s, 1 - rank, send0, 1);
    sched_send(s, 1 - rank, send0, 1);
}
static void make_out_of_bounds(struct sched *s, int rank)
{
    sched_copy(s, send0, loc_add(recv0, 2), 1);
}
static void make_wrong_operand_order(struct sched *s, int rank)
{
    sched_copy(s, send0, recv0, 1);
    sched_copy(s, send0, sched_temp(s, 1), 1);
    sched_reduce(s, recv0, temp0, recv0, 1);
}
static void make_wrong_elements(struct sched *s, int rank)
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
        {"deadlock", "deadlock", make_deadlock},
        {"sizes", "who expects", make_size_mismatch},
        {"unreceived", "deadlock", make_unreceived_message},
        {"uninitialised", "never written", make_uninitialised_read},
        {"unfenced", "while a message", make_missing_fence},
        {"overwritten", "while a message", make_overwritten_send},
        {"constant", "only to be read", make_write_to_constant},
        {"bounds", "outside", make_out_of_bounds},
        {"left operand", "left operand", make_wrong_operand_order},
        {"elements", "combines element", make_wrong_elements},
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
            printf("FAIL selftest '%s': the checker reports '%s'\n", mistakes[i].name, m.error);
            missed++;
        }
        machine_close(&m);
    }
    return missed;
}
