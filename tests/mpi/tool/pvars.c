/* pvars.c: performance variables: sessions and handles, start, stop, read, write, reset; levels, a
 * watermark, and variables bound to a communicator.
 * ranks: 2 1 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static MPI_T_pvar_session session;

static int find_pvar(const char *name, int class)
{
    int index = -1;
    EXPECT_EQ(MPI_T_pvar_get_index(name, class, &index), MPI_SUCCESS);
    return index;
}

static MPI_T_pvar_handle open_pvar(const char *name, int class, void *object)
{
    MPI_T_pvar_handle h = MPI_T_PVAR_HANDLE_NULL;
    int count = 0;
    EXPECT_EQ(MPI_T_pvar_handle_alloc(session, find_pvar(name, class), object, &h, &count), MPI_SUCCESS);
    EXPECT_EQ(count, 1);
    return h;
}

static long long read_pvar(MPI_T_pvar_handle h)
{
    unsigned long long value = 12345;
    EXPECT_EQ(MPI_T_pvar_read(session, h, &value), MPI_SUCCESS);
    return (long long)value;
}

static void list_all_pvars(void)
{
    int n;
    MPI_T_pvar_get_num(&n);
    for (int i = 0; i < n; i++) {
        char name[128], desc[512];
        int name_len = sizeof(name), desc_len = sizeof(desc), verbosity, class, bind, readonly, continuous,
            atomic, index;
        MPI_Datatype type;
        MPI_T_enum e;
        EXPECT_EQ(MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &e, desc, &desc_len,
                                      &bind, &readonly, &continuous, &atomic),
                  MPI_SUCCESS);
        EXPECT(type == (class == MPI_T_PVAR_CLASS_GENERIC ? MPI_CHAR : MPI_UNSIGNED_LONG_LONG) &&
               e == MPI_T_ENUM_NULL);
        EXPECT(class >= MPI_T_PVAR_CLASS_STATE && class <= MPI_T_PVAR_CLASS_GENERIC);
        MPI_T_pvar_get_index(name, class, &index);
        EXPECT_EQ(index, i);
    }
    EXPECT_EQ(MPI_T_pvar_get_index("p2p_eager_sent", MPI_T_PVAR_CLASS_TIMER, &n), MPI_T_ERR_INVALID_NAME);
    /* The former name of a variable finds the same variable; the library prints a notice once. */
    EXPECT_EQ(find_pvar("mcast_asked", MPI_T_PVAR_CLASS_COUNTER),
              find_pvar("mcast_ack_requests", MPI_T_PVAR_CLASS_COUNTER));
    EXPECT_EQ(find_pvar("mcast_asked", MPI_T_PVAR_CLASS_COUNTER),
              find_pvar("mcast_ack_requests", MPI_T_PVAR_CLASS_COUNTER));
    EXPECT_EQ(
        MPI_T_pvar_get_info(n + 1000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        MPI_T_ERR_INVALID_INDEX);
}

static void test_adapter(void)
{
    MPI_T_pvar_handle h;
    int index, count = 0;
    char text[8192] = "";
    EXPECT_EQ(MPI_T_pvar_get_index("net_adapter", MPI_T_PVAR_CLASS_GENERIC, &index), MPI_SUCCESS);
    EXPECT_EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &count), MPI_SUCCESS);
    EXPECT(count > 0 && count < (int)sizeof(text));
    EXPECT_EQ(MPI_T_pvar_read(session, h, text), MPI_SUCCESS);
    EXPECT(strstr(text, getenv("FISHPLATE_VNODE") ? "ware" : "none (all ranks are on one node)") != NULL);
    EXPECT_EQ(MPI_T_pvar_write(session, h, text), MPI_T_ERR_PVAR_NO_WRITE);
    MPI_T_pvar_handle_free(session, &h);
}

/* Sends messages to itself, so that no other traffic is counted. */
static void send_to_self(int times)
{
    for (int i = 0; i < times; i++) {
        int x = i, y;
        MPI_Sendrecv(&x, 1, MPI_INT, mpitest_rank, 0, &y, 1, MPI_INT, mpitest_rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static void test_counting(void)
{
    MPI_T_pvar_handle h = open_pvar("p2p_eager_sent", MPI_T_PVAR_CLASS_COUNTER, NULL);
    unsigned long long value = 100;
    send_to_self(3);
    EXPECT_EQ(read_pvar(h), 0);
    MPI_T_pvar_start(session, h);
    send_to_self(5);
    EXPECT_EQ(read_pvar(h), 5);
    EXPECT_EQ(MPI_T_pvar_readreset(session, h, &value), MPI_SUCCESS);
    EXPECT_EQ(value, 5);
    EXPECT_EQ(read_pvar(h), 0);
    send_to_self(2);
    MPI_T_pvar_stop(session, h);
    send_to_self(4);
    EXPECT_EQ(read_pvar(h), 2);
    MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES);
    send_to_self(1);
    EXPECT_EQ(read_pvar(h), 3);
    value = 50;
    MPI_T_pvar_write(session, h, &value);
    send_to_self(1);
    EXPECT_EQ(read_pvar(h), 51);
    MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES);
    EXPECT_EQ(read_pvar(h), 0);
    EXPECT_EQ(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
    EXPECT_EQ(MPI_T_pvar_handle_free(session, &h), MPI_SUCCESS);
    EXPECT(h == MPI_T_PVAR_HANDLE_NULL);
}

static void test_queue(void)
{
    MPI_T_pvar_handle level = open_pvar("p2p_unexpected_length", MPI_T_PVAR_CLASS_LEVEL, NULL);
    MPI_T_pvar_handle peak = open_pvar("p2p_unexpected_peak", MPI_T_PVAR_CLASS_HIGHWATERMARK, NULL);
    unsigned long long value;
    int x = 0, flag = 0;
    EXPECT_EQ(MPI_T_pvar_start(session, level), MPI_T_ERR_PVAR_NO_STARTSTOP);
    EXPECT_EQ(MPI_T_pvar_reset(session, level), MPI_T_ERR_PVAR_NO_WRITE);
    EXPECT_EQ(MPI_T_pvar_write(session, level, &value), MPI_T_ERR_PVAR_NO_WRITE);
    EXPECT_EQ(MPI_T_pvar_readreset(session, level, &value), MPI_T_ERR_PVAR_NO_ATOMIC);
    MPI_T_pvar_start(session, peak);
    for (int i = 0; i < 4; i++)
        MPI_Send(&x, 1, MPI_INT, mpitest_rank, 70 + i, MPI_COMM_WORLD);
    while (!flag)
        MPI_Iprobe(mpitest_rank, 73, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    EXPECT_EQ(read_pvar(level), 4);
    EXPECT_EQ(read_pvar(peak), 4);
    for (int i = 0; i < 4; i++)
        MPI_Recv(&x, 1, MPI_INT, mpitest_rank, 70 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(read_pvar(level), 0);
    EXPECT_EQ(read_pvar(peak), 4);
    MPI_T_pvar_reset(session, peak);
    EXPECT_EQ(read_pvar(peak), 0);
    MPI_T_pvar_handle_free(session, &level);
    MPI_T_pvar_handle_free(session, &peak);
}

/* Tests the queue variables on one rank after the other; no rank continues before all have finished, so
 * that a testing rank gets no other messages. */
static void test_queue_in_turn(void)
{
    const int last = mpitest_size - 1;
    int x = 0;
    if (mpitest_rank > 0)
        MPI_Recv(&x, 1, MPI_INT, mpitest_rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    test_queue();
    if (mpitest_rank < last) {
        MPI_Send(&x, 1, MPI_INT, mpitest_rank + 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_INT, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; mpitest_rank == last && i < last; i++)
        MPI_Send(&x, 1, MPI_INT, i, 2, MPI_COMM_WORLD);
}

static void test_bound_to_communicator(void)
{
    MPI_Comm comm, other;
    double x[10] = {0};
    const int right = (mpitest_rank + 1) % mpitest_size,
              left = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    MPI_T_pvar_handle none = MPI_T_PVAR_HANDLE_NULL;
    int count;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_T_pvar_handle n = open_pvar("p2p_comm_received", MPI_T_PVAR_CLASS_COUNTER, &comm);
    MPI_T_pvar_handle bytes = open_pvar("p2p_comm_received_bytes", MPI_T_PVAR_CLASS_AGGREGATE, &comm);
    EXPECT_EQ(MPI_T_pvar_handle_alloc(session, find_pvar("p2p_comm_received", MPI_T_PVAR_CLASS_COUNTER), NULL,
                                      &none, &count),
              MPI_T_ERR_INVALID_HANDLE);
    MPI_T_pvar_start(session, n);
    MPI_T_pvar_start(session, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 6; i++)
        MPI_Sendrecv_replace(x, 10, MPI_DOUBLE, right, 0, left, 0, i % 2 ? other : comm, MPI_STATUS_IGNORE);
    EXPECT_EQ(read_pvar(n), 3);
    EXPECT_EQ(read_pvar(bytes), 240);
    MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Sendrecv_replace(x, 10, MPI_DOUBLE, right, 0, left, 0, comm, MPI_STATUS_IGNORE);
    EXPECT_EQ(read_pvar(n), 3);
    MPI_T_pvar_handle_free(session, &n);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&other);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    EXPECT_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    list_all_pvars();
    mpitest_begin(&argc, &argv);
    test_adapter();
    test_counting();
    test_queue_in_turn();
    test_bound_to_communicator();
    MPI_T_pvar_session second;
    MPI_T_pvar_handle h = open_pvar("net_sleeps", MPI_T_PVAR_CLASS_COUNTER, NULL);
    unsigned long long value;
    MPI_T_pvar_session_create(&second);
    EXPECT_EQ(MPI_T_pvar_read(second, h, &value), MPI_T_ERR_INVALID_HANDLE);
    EXPECT_EQ(MPI_T_pvar_session_free(&second), MPI_SUCCESS);
    EXPECT(second == MPI_T_PVAR_SESSION_NULL);
    EXPECT_EQ(MPI_T_pvar_read(second, h, &value), MPI_T_ERR_INVALID_SESSION);
    EXPECT_EQ(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
    int rc = mpitest_end();
    MPI_T_finalize();
    return rc;
}
