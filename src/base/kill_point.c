/* kill_point.c: parses FISHPLATE_KILL_AT and sends the signal (kill_point.h), after a line of output that
 * shows a test that the point was reached.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/kill_point.h"

#ifdef FISHPLATE_KILL_POINTS
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tunable.h"
#include "base/util.h"

static TUNABLE_STRING(kill_at, "KILL_AT",
                      "name:count:rank or name:count:rank:stop: kill or stop that rank when it reaches the "
                      "named point of the library for the count-th time (tests only).");

static const char *const names[] = {
#define KILL_POINT_ENTRY(name, file, doc) #name,
#include "base/kill_points.def"
#undef KILL_POINT_ENTRY
};

static struct {
    enum kill_point point;
    bool stop;
    _Atomic int32_t
        left; /* times the rank must still reach the point until it receives the signal; <= 0: never */
} order = {.point = KILL_POINTS};

static void kill_point_exit_with_usage(void)
{
    fprintf(stderr,
            "FISHPLATE_KILL_AT=%s: not name:count:rank or name:count:rank:stop with one of the names:\n",
            kill_at.text);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        fprintf(stderr, "    %s\n", names[i]);
    exit(1);
}

void kill_point_open(uint32_t rank)
{
    char name[64], how[8] = "";
    int count;
    unsigned victim;
    if (kill_at.text[0] == '\0')
        return;
    const int read = sscanf(kill_at.text, "%63[a-z_0-9]:%d:%u:%7s", name, &count, &victim, how);
    enum kill_point point = 0;
    while (read >= 3 && point < KILL_POINTS && strcmp(name, names[point]) != 0)
        point++;
    if (read < 3 || count < 1 || point == KILL_POINTS || (how[0] && strcmp(how, "stop") != 0))
        kill_point_exit_with_usage();
    if (victim != rank)
        return;
    order.point = point;
    order.stop = how[0] != '\0';
    atomic_store(&order.left, count);
}

void kill_point_reach(enum kill_point point)
{
    if (point != order.point || atomic_fetch_sub(&order.left, 1) != 1)
        return;
    char line[128];
    const int n = snprintf(line, sizeof(line), "kill point %s: process %d %s\n", names[point], (int)getpid(),
                           order.stop ? "stops" : "dies");
    if (write(STDERR_FILENO, line, (size_t)n) == n)
        kill(getpid(), order.stop ? SIGSTOP : SIGKILL);
}
#endif
