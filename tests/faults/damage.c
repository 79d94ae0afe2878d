/* damage.c: the faults that a rank causes itself, at a point of its program that the seed decides.
 *
 *     kill        this rank dies of SIGKILL
 *     stop        this rank is stopped; faults.py continues it, or does not
 *     front       mpiexec's first process is killed: the one the user's shell knows
 *     worker      the process that started this rank is killed: mpiexec's worker, or the agent of this host
 *     port-down   the port of node 1 goes down
 *     port-flap   ... and comes up again
 *     qp          a queue pair of this process goes into its error state (breaker.c)
 *     away        this rank makes no MPI call for a while
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "damage.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int damage_setting(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

int damage_rank(void)
{
    return damage_setting("FAULTS_RANK");
}

int damage_round(void)
{
    return damage_setting("FAULTS_ROUND");
}

static pid_t parent_of(pid_t pid)
{
    char path[64], name[64], state;
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%*d (%63[^)]) %c %d", name, &state, &parent) != 3)
        parent = 0;
    if (f)
        fclose(f);
    return parent;
}

static void damage_end(pid_t pid)
{
    if (pid > 1)
        kill(pid, SIGKILL);
}

static bool damage_port(const char *state)
{
    char command[512];
    snprintf(command, sizeof(command), "\"%s\" ctl port %s node1/hca0/1", getenv("SOFTIB"), state);
    return system(command) == 0;
}

/* At the start of a job there may be no queue pair yet: waits for one, not for ever. */
static void break_queue_pair(void)
{
    void *library = dlopen(getenv("FISHPLATE_VERBS"), RTLD_NOW);
    bool (*breaker)(void) = NULL;
    if (library)
        *(void **)&breaker = dlsym(library, "faults_break");
    if (!breaker) {
        printf("no library that breaks queue pairs: %s\n", dlerror());
        return;
    }
    for (int tries = 0; tries < 2000 && !breaker(); tries++)
        usleep(100);
}

void damage_now(void)
{
    const char *what = getenv("FAULTS_WHAT");
    if (!what)
        return;
    if (strcmp(what, "kill") == 0)
        kill(getpid(), SIGKILL);
    else if (strcmp(what, "stop") == 0)
        kill(getpid(), SIGSTOP);
    else if (strcmp(what, "front") == 0)
        damage_end(parent_of(parent_of(getppid()))); /* behind the worker and the reaper */
    else if (strcmp(what, "worker") == 0)
        damage_end(getppid());
    else if (strcmp(what, "port-down") == 0)
        damage_port("down");
    else if (strcmp(what, "port-flap") == 0 && damage_port("down"))
        damage_port("up");
    else if (strcmp(what, "qp") == 0)
        break_queue_pair();
    else if (strcmp(what, "away") == 0)
        usleep(300 * 1000);
}

static void *damage_delayed(void *unused)
{
    (void)unused;
    usleep((useconds_t)damage_setting("FAULTS_DELAY"));
    damage_now();
    return NULL;
}

void damage_soon(void)
{
    pthread_t thread;
    if (damage_setting("PMI_RANK") == damage_rank() && getenv("FAULTS_WHAT"))
        if (pthread_create(&thread, NULL, damage_delayed, NULL) == 0)
            pthread_detach(thread);
}
