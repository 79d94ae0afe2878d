/* info_tried.c: prints the choices that the library makes between the nodes of this job, with the measured
 * times: `mpiexec -n 8 -hosts a,b fishplate info --coll` calls each operation until its candidates are
 * measured (FISHPLATE_COLL_TRY=100 unless set) and prints the MPI_T variable coll_choices; `mpiexec -n 2
 * fishplate info --tuned` does the same for messages between two ranks and prints p2p_choices.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "info.h"

enum { CALLS = 40, SIZES = 2 };

static char *choices;   /* on rank 0; NULL: not in a job, or on one node */
static char *protocols; /* on rank 0; NULL: not requested */

static void trial_call_operation(int operation, char *in, char *out, int bytes, int root)
{
    MPI_Comm c = MPI_COMM_WORLD;
    switch (operation) {
    case 0:
        MPI_Bcast(in, bytes, MPI_BYTE, root, c);
        break;
    case 1:
        MPI_Gather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, c);
        break;
    case 2:
        MPI_Scatter(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, c);
        break;
    case 3:
        MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, c);
        break;
    case 4:
        MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, c);
        break;
    case 5:
        MPI_Reduce(in, out, bytes, MPI_BYTE, MPI_BOR, root, c);
        break;
    default:
        MPI_Allreduce(in, out, bytes, MPI_BYTE, MPI_BOR, c);
    }
}

/* Reads a text performance variable of this rank, allocated; NULL if the library has none of that name. */
static char *read_text(const char *name)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int provided, index, count = 0;
    char *text = NULL;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return NULL;
    MPI_T_pvar_session_create(&session);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, &index) == MPI_SUCCESS &&
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS) {
        text = calloc((size_t)count + 1, 1);
        if (text)
            MPI_T_pvar_read(session, handle, text);
        MPI_T_pvar_handle_free(session, &handle);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return text;
}

void info_tried_prepare(void)
{
    setenv("FISHPLATE_COLL_TRY", "100", 0);
}

void info_tried_gather(void)
{
    static const int sizes[SIZES] = {1024, 64 * 1024};
    int size, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *in = calloc((size_t)size, 64 * 1024), *out = calloc((size_t)size, 64 * 1024);
    if (!in || !out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int operation = 0; operation < 7; operation++)
        for (int s = 0; s < SIZES; s++)
            for (int i = 0; i < CALLS; i++)
                trial_call_operation(operation, in, out, sizes[s], i % size);
    free(in);
    free(out);
    if (rank == 0)
        choices = read_text("coll_choices");
}

static void text_for_each_line(const char *text, void (*each)(const char *line, size_t length, void *arg),
                               void *arg)
{
    while (text && *text) {
        const size_t length = strcspn(text, "\n");
        each(text, length, arg);
        text += length + (text[length] == '\n');
    }
}

static void print_line(const char *line, size_t length, void *arg)
{
    (void)arg;
    char *copy = strndup(line, length);
    if (copy)
        cli_print_text(copy, 0, 2, stdout);
    free(copy);
}

static void json_line(const char *line, size_t length, void *arg)
{
    char *copy = strndup(line, length);
    json_string(arg, NULL, copy ? copy : "");
    free(copy);
}

void info_tried_text(void)
{
    if (!choices)
        return;
    printf("\nWhat this job has measured to be the fastest between nodes\n");
    text_for_each_line(choices, print_line, NULL);
}

void info_tried_json(struct json *j)
{
    if (!choices)
        return;
    json_array(j, "chosen");
    text_for_each_line(choices, json_line, j);
    json_end(j);
}

/* ---- messages ---- */

enum { LARGEST = 4 << 20, FEWEST = 200, BURST = 16 };

/* Exchanges ping-pongs, then bursts in both directions, between ranks 0 and 1. */
static void trial_exchange(char *data, int bytes, int rank)
{
    const int messages = FEWEST * (bytes < LARGEST / 16 ? 5 : 1);
    MPI_Request requests[BURST];
    MPI_Comm c = MPI_COMM_WORLD;
    for (int i = 0; i < messages; i++)
        if ((i + rank) % 2)
            MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 0, c, MPI_STATUS_IGNORE);
        else
            MPI_Send(data, bytes, MPI_BYTE, 1 - rank, 0, c);
    for (int i = 0; i < messages / BURST; i++) {
        for (int k = 0; k < BURST; k++)
            if ((i + rank) % 2)
                MPI_Irecv(data, bytes, MPI_BYTE, 1 - rank, 0, c, &requests[k]);
            else
                MPI_Isend(data, bytes, MPI_BYTE, 1 - rank, 0, c, &requests[k]);
        MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
    }
}

void info_tuned_gather(void)
{
    int size, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = calloc(1, LARGEST);
    if (!data)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int bytes = 32 * 1024; bytes <= LARGEST && rank < 2 && size > 1; bytes *= 2)
        trial_exchange(data, bytes, rank);
    free(data);
    if (rank == 0)
        protocols = read_text("p2p_choices");
}

void info_tuned_text(const struct fishplate_inside *in)
{
    (void)in;
    printf("Paths of large messages, the one in use first, and their last measured cost\n");
    if (!protocols || !*protocols)
        printf("  nothing was measured: start two ranks (mpiexec -n 2 fishplate info --tuned), without "
               "FISHPLATE_TUNE=off\n");
    text_for_each_line(protocols, print_line, NULL);
}

void info_tuned_json(const struct fishplate_inside *in, struct json *j)
{
    (void)in;
    json_array(j, "tuned");
    text_for_each_line(protocols, json_line, j);
    json_end(j);
}
