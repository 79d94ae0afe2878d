/* info_tried.c: what the library chooses between the nodes of this job, and the times behind it: `mpiexec -n 8 -hosts a,b fishplate info
 * --coll` calls each operation until its trial is over (FISHPLATE_COLL_TRY=100, unless it is set) and prints what MPI_T has of it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

enum { CALLS = 40, SIZES = 2 };

static char *barriers, *others; /* on rank 0; NULL: not in a job, or on one node */

static void call(int operation, char *in, char *out, int bytes, int root)
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

static char *read_text(MPI_T_pvar_session session, const char *name)
{
    MPI_T_pvar_handle handle;
    int index, count = 0;
    char *text = NULL;
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, &index) == MPI_SUCCESS &&
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS) {
        text = calloc((size_t)count + 1, 1);
        if (text)
            MPI_T_pvar_read(session, handle, text);
        MPI_T_pvar_handle_free(session, &handle);
    }
    return text;
}

void info_tried_before(void)
{
    setenv("FISHPLATE_COLL_TRY", "100", 0);
}

/* A share of the time that the user has set may be too small for a trial to end: the text says so then. */
void info_tried_gather(void)
{
    static const int sizes[SIZES] = {1024, 64 * 1024};
    MPI_T_pvar_session session;
    int provided, size, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *in = calloc((size_t)size, 64 * 1024), *out = calloc((size_t)size, 64 * 1024);
    if (!in || !out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < CALLS; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    for (int operation = 0; operation < 7; operation++)
        for (int s = 0; s < SIZES; s++)
            for (int i = 0; i < CALLS; i++)
                call(operation, in, out, sizes[s], i % size);
    free(in);
    free(out);
    if (rank != 0 || MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return;
    MPI_T_pvar_session_create(&session);
    barriers = read_text(session, "coll_barriers");
    others = read_text(session, "coll_choices");
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

static void lines(const char *text, void (*each)(const char *line, size_t length, void *arg), void *arg)
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
        info_wrap(copy, 2);
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
    if (!barriers && !others)
        return;
    printf("\nWhat this job chooses between nodes, by trial: barriers, then the other operations\n");
    lines(barriers, print_line, NULL);
    lines(others, print_line, NULL);
}

void info_tried_json(struct json *j)
{
    if (!barriers && !others)
        return;
    json_array(j, "chosen");
    lines(barriers, json_line, j);
    lines(others, json_line, j);
    json_end(j);
}
