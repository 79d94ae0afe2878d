/* threads.c: threads read variables, open sessions and register for events while other threads send messages.
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "mpitest.h"

#define SENDERS      2
#define TOOL_THREADS 2
#define MESSAGES     300

static int notified[TOOL_THREADS];

static void on_event(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *user)
{
    int tag;
    MPI_T_event_read(e, 3, &tag);
    ++*(int *)user;
}

static void *send_messages(void *arg)
{
    int tag = (int)(long)arg, x = tag, y;
    for (int i = 0; i < MESSAGES; i++)
        MPI_Sendrecv(&x, 1, MPI_INT, 1 - mpitest_rank, tag, &y, 1, MPI_INT, 1 - mpitest_rank, tag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void *use_tool_interface(void *arg)
{
    int index, count, event;
    unsigned long long value, last = 0;
    MPI_T_pvar_get_index("p2p_comm_received", MPI_T_PVAR_CLASS_COUNTER, &index);
    MPI_T_event_get_index("p2p_message_arrived", &event);
    for (int i = 0; i < MESSAGES / 10; i++) {
        MPI_Comm comm = MPI_COMM_WORLD;
        MPI_T_pvar_session session;
        MPI_T_pvar_handle h;
        MPI_T_event_registration r;
        MPI_T_pvar_session_create(&session);
        MPI_T_pvar_handle_alloc(session, index, &comm, &h, &count);
        MPI_T_pvar_start(session, h);
        MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &r);
        MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, arg, on_event);
        last = 0;
        for (int k = 0; k < 20; k++) {
            MPI_T_pvar_read(session, h, &value);
            EXPECT(value >= last);
            last = value;
        }
        MPI_T_event_handle_free(r, NULL, NULL);
        MPI_T_pvar_session_free(&session);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[SENDERS + TOOL_THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    for (long i = 0; i < SENDERS; i++)
        pthread_create(&threads[i], NULL, send_messages, (void *)i);
    for (int i = 0; i < TOOL_THREADS; i++)
        pthread_create(&threads[SENDERS + i], NULL, use_tool_interface, &notified[i]);
    for (int i = 0; i < SENDERS + TOOL_THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_T_finalize();
    return mpitest_end();
}
