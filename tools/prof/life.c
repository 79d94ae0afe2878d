/* life.c: starts and ends the recording. In MPI_Finalize rank 0 gathers the records of all ranks; a program
 * that uses only sessions, ends without MPI_Finalize or aborts leaves one record per process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "prof.h"

struct session {
    struct session *next;
    MPI_Session handle;
};

/* Protects the list of sessions: several threads may open and close sessions at once. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions;
static MPI_Session lender =
    MPI_SESSION_NULL; /* the session from which the group of MPI_COMM_WORLD was obtained */
static MPI_Group group = MPI_GROUP_NULL;
static bool world;

static void set_world_group(MPI_Group taken)
{
    group = taken;
    prof_comm_world(group);
}

static void life_begin_profiling(void)
{
    int length, rank = 0, size = 0;
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    PMPI_Group_rank(group, &rank);
    PMPI_Group_size(group, &size);
    PMPI_Get_processor_name(host, &length);
    bool locked = prof_lock();
    if (!prof.used) {
        prof.rank = rank;
        prof.size = size;
        prof.peers = calloc((size_t)size + 1, sizeof(*prof.peers));
        prof.pid = (int)getpid();
        memcpy(prof.host, host, sizeof(host));
    }
    if (!prof.running && prof.on)
        prof.on_since = clock_ns();
    PROF_SET(prof.running, true);
    prof.used = true;
    prof_unlock(locked);
}

static void life_end_profiling(void)
{
    bool locked = prof_lock();
    if (prof.on_since)
        prof.on_ns += clock_ns() - prof.on_since;
    prof.on_since = 0;
    PROF_SET(prof.running, false);
    prof_unlock(locked);
}

void prof_world_begins(void)
{
    int provided = MPI_THREAD_SINGLE;
    MPI_Group taken;
    PMPI_Query_thread(&provided);
    prof_threads(provided);
    prof.threaded |= provided == MPI_THREAD_MULTIPLE;
    if (group == MPI_GROUP_NULL) {
        PMPI_Comm_group(MPI_COMM_WORLD, &taken);
        set_world_group(taken);
    }
    world = true;
    life_begin_profiling();
    prof_about_begin();
    prof_start_catching_signals();
}

void prof_world_ends(void)
{
    if (!world || prof.shipped)
        return;
    life_end_profiling();
    prof.calls[CALL_Finalize].calls += prof.on; /* MPI_Finalize itself: its end cannot be observed */
    prof_ship_gathered();
    PROF_SET(prof.shipped, true);
    prof_stop_catching_signals();
    if (lender == MPI_SESSION_NULL)
        PMPI_Group_free(&group);
    world = false;
}

/* Takes the group of MPI_COMM_WORLD from a session: mpi://WORLD is a process set of every session. */
static void get_group_from_session(MPI_Session from)
{
    MPI_Group taken;
    if (PMPI_Group_from_session_pset(from, "mpi://WORLD", &taken) != MPI_SUCCESS)
        return;
    lender = from;
    set_world_group(taken);
}

void prof_session_begins(MPI_Session session)
{
    struct session *s = malloc(sizeof(*s));
    if (!s || PROF_GET(prof.shipped)) {
        free(s);
        return;
    }
    pthread_mutex_lock(&life);
    *s = (struct session){.next = sessions, .handle = session};
    sessions = s;
    prof.threaded = true; /* the threads of a session may call MPI concurrently */
    if (group == MPI_GROUP_NULL)
        get_group_from_session(session);
    if (group != MPI_GROUP_NULL)
        life_begin_profiling();
    pthread_mutex_unlock(&life);
}

static void life_remove_session(MPI_Session session)
{
    for (struct session **at = &sessions; *at; at = &(*at)->next)
        if ((*at)->handle == session) {
            struct session *old = *at;
            *at = old->next;
            free(old);
            return;
        }
}

void prof_session_ends(const MPI_Session *session)
{
    if (!session)
        return;
    pthread_mutex_lock(&life);
    life_remove_session(*session);
    if (!sessions && !world)
        life_end_profiling();
    if (*session == lender && lender != MPI_SESSION_NULL) {
        lender = MPI_SESSION_NULL;
        PMPI_Group_free(&group);
        set_world_group(MPI_GROUP_NULL);
        if (sessions)
            get_group_from_session(sessions->handle);
    }
    pthread_mutex_unlock(&life);
}

static void write_record_if_pending(void)
{
    if (!prof.used || prof.shipped || prof.pid != (int)getpid()) /* a child of fork() writes no record */
        return;
    life_end_profiling();
    prof_ship_own_record();
    PROF_SET(prof.shipped, true);
    prof_stop_catching_signals();
}

void prof_on_abort(void)
{
    write_record_if_pending();
}

__attribute__((destructor)) static void at_exit(void)
{
    write_record_if_pending();
}
