/* damage.c: the faults that a rank causes, at a point of its program that the seed selects.
 *
 *     kill        this rank dies of SIGKILL
 *     stop        this rank is stopped; faults.py continues it, or does not
 *     front       mpiexec's first process, which the user's shell started, is killed
 *     worker      the process that started this rank is killed: mpiexec's worker, or the agent of this host
 *     port-down   the port of node 1 goes down
 *     port-flap   the port of node 1 goes down and comes up again
 *     qp          a queue pair of this process goes into its error state (breaker.c)
 *     away        this rank makes no MPI call for some time
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

static int get_setting(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

int damage_rank(void)
{
    return get_setting("FAULTS_RANK");
}

int damage_round(void)
{
    return get_setting("FAULTS_ROUND");
}

static pid_t find_parent(pid_t pid)
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

static void kill_process(pid_t pid)
{
    if (pid > 1)
        kill(pid, SIGKILL);
}

static bool set_port_state(const char *state)
{
    char command[512];
    snprintf(command, sizeof(command), "\"%s\" ctl port %s node1/hca0/1", getenv("SOFTIB"), state);
    return system(command) == 0;
}

/* Waits, with a limit, until a queue pair exists (at the start of a job there may be none); then moves it to the
 * error state. */
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

void damage_cause_now(void)
{
    const char *what = getenv("FAULTS_WHAT");
    if (!what)
        return;
    if (strcmp(what, "kill") == 0)
        kill(getpid(), SIGKILL);
    else if (strcmp(what, "stop") == 0)
        kill(getpid(), SIGSTOP);
    else if (strcmp(what, "front") == 0)
        kill_process(find_parent(find_parent(getppid()))); /* the parent of the worker and of the reaper */
    else if (strcmp(what, "worker") == 0)
        kill_process(getppid());
    else if (strcmp(what, "port-down") == 0)
        set_port_state("down");
    else if (strcmp(what, "port-flap") == 0 && set_port_state("down"))
        set_port_state("up");
    else if (strcmp(what, "qp") == 0)
        break_queue_pair();
    else if (strcmp(what, "away") == 0)
        usleep(300 * 1000);
}

static void *cause_delayed_damage(void *unused)
{
    (void)unused;
    usleep((useconds_t)get_setting("FAULTS_DELAY"));
    damage_cause_now();
    return NULL;
}

void damage_cause_later(void)
{
    pthread_t thread;
    if (get_setting("PMI_RANK") == damage_rank() && getenv("FAULTS_WHAT"))
        if (pthread_create(&thread, NULL, cause_delayed_damage, NULL) == 0)
            pthread_detach(thread);
}
