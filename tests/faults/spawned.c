/* spawned.c: the program of the kill point tests with spawned processes: parents and children exchange
 * messages with checked bytes through the inboxes of their processes (net/shm/inbox.c), or over the
 * network on virtual nodes. One process may die at any moment; every message between two living processes
 * must arrive. Each process that finishes prints one line.
 *   faults_spawned PLACE    the children get FISHPLATE_KILL_AT=PLACE; the parents have mpiexec's environment
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 8, CHILDREN = 3, PEERS = 8, MESSAGES = 5, BYTES = 20000, PIECES = 2 };

static const int sizes[MESSAGES] = {0, 24, 800, 3000, BYTES};
static int rank;
static bool is_child, lost[PEERS];

static unsigned char expected_byte(bool from_child, int from, int to, int k, int round, int i)
{
    return (unsigned char)((from_child ? 101 : 0) + from * 31 + to * 7 + k * 13 + round * 5 + i * 3 +
                           (i >> 8));
}

/* Returns true if the call succeeded; a failure is accepted only if `peer` has died. */
static bool succeeded(int rc, int peer, const char *what)
{
    int class = rc;
    if (rc)
        MPI_Error_class(rc, &class);
    if (class && class != MPIX_ERR_PROC_FAILED) {
        printf("WRONG BYTES: %s with process %d failed with error class %d\n", what, peer, class);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    lost[peer] = lost[peer] || class;
    return class == 0;
}

static void check_message(const unsigned char *in, int peer, int k, int round)
{
    for (int i = 0; i < sizes[k]; i++)
        if (in[i] != expected_byte(!is_child, peer, rank, k, round, i)) {
            printf("WRONG BYTES: round %d, message %d of process %d: byte %d\n", round, k, peer, i);
            fflush(stdout);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
}

static void exchange_messages(MPI_Comm others, int size, int round)
{
    static unsigned char in[PEERS][MESSAGES][BYTES], out[PEERS][MESSAGES][BYTES];
    MPI_Request receives[PEERS][MESSAGES], sends[PEERS][MESSAGES];
    MPI_Datatype pieces; /* the type of one message with gaps in memory */
    MPI_Type_vector(sizes[PIECES] / 100, 100, 200, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < MESSAGES; k++) {
            receives[peer][k] = sends[peer][k] = MPI_REQUEST_NULL;
            for (int i = 0; i < sizes[k]; i++)
                out[peer][k][k == PIECES ? i / 100 * 200 + i % 100 : i] =
                    expected_byte(is_child, rank, peer, k, round, i);
            if (!lost[peer])
                succeeded(MPI_Irecv(in[peer][k], sizes[k], MPI_BYTE, peer, k, others, &receives[peer][k]),
                          peer, "MPI_Irecv");
        }
    for (int k = 0; k < MESSAGES; k++)
        for (int peer = 0; peer < size; peer++)
            if (!lost[peer])
                succeeded(MPI_Isend(out[peer][k], k == PIECES ? 1 : sizes[k], k == PIECES ? pieces : MPI_BYTE,
                                    peer, k, others, &sends[peer][k]),
                          peer, "MPI_Isend");
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < MESSAGES; k++) {
            if (receives[peer][k] != MPI_REQUEST_NULL &&
                succeeded(MPI_Wait(&receives[peer][k], MPI_STATUS_IGNORE), peer, "MPI_Wait for a receive"))
                check_message(in[peer][k], peer, k, round);
            if (sends[peer][k] != MPI_REQUEST_NULL)
                succeeded(MPI_Wait(&sends[peer][k], MPI_STATUS_IGNORE), peer, "MPI_Wait for a send");
        }
    MPI_Type_free(&pieces);
}

/* Returns MPI_COMM_NULL if a process died before the two groups were connected. */
static MPI_Comm spawn_children(const char *program, const char *place)
{
    MPI_Comm children;
    MPI_Info info;
    char line[128];
    snprintf(line, sizeof(line), "FISHPLATE_KILL_AT=%s", place);
    MPI_Info_create(&info);
    MPI_Info_set(info, "env", line);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int rc = MPI_Comm_spawn(program, MPI_ARGV_NULL, CHILDREN, info, 0, MPI_COMM_WORLD, &children,
                                  MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    return rc ? MPI_COMM_NULL : children;
}

int main(int argc, char **argv)
{
    MPI_Comm others;
    int size, dead = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&others);
    is_child = others != MPI_COMM_NULL;
    if (!is_child)
        others = spawn_children(argv[0], argc > 1 ? argv[1] : "");
    if (others == MPI_COMM_NULL) {
        printf("parent %d finished without children\n", rank);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(others, MPI_ERRORS_RETURN);
    MPI_Comm_remote_size(others, &size);
    for (int round = 0; round < ROUNDS; round++)
        exchange_messages(others, size, round);
    for (int peer = 0; peer < size; peer++)
        dead += lost[peer];
    if (dead > 1)
        printf("%s %d: %d processes were reported as dead\n", is_child ? "child" : "parent", rank, dead);
    printf("%s %d finished\n", is_child ? "child" : "parent", rank);
    MPI_Finalize();
    return 0;
}
