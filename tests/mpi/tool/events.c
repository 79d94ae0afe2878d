/* events.c: callbacks for arriving messages and chosen protocols, the data that callbacks can read,
 * dropped events, and freeing a registration, also in its own callback.
 * ranks: 2 4 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "mpitest.h"

#define TAG   1234
#define LARGE 300000

static int arrivals, choices, frees, drops, self_freed;
static long long last_length;
static MPI_Count last_time;

static void read_arrival(MPI_T_event_instance e)
{
    MPI_Datatype types[8];
    MPI_Aint at[8];
    int n = 8, index, tag, source = -1, event_source = -1;
    MPI_Count length, time;
    char copy[256];
    MPI_T_event_get_index("p2p_message_arrived", &index);
    MPI_T_event_get_info(index, NULL, NULL, NULL, types, at, &n, NULL, NULL, NULL, NULL, NULL);
    EXPECT_EQ(MPI_T_event_read(e, 3, &tag), MPI_SUCCESS);
    if (tag != TAG)
        return;
    MPI_T_event_read(e, 0, &length);
    MPI_T_event_read(e, 2, &source);
    EXPECT_EQ(MPI_T_event_copy(e, copy), MPI_SUCCESS);
    EXPECT_EQ(memcmp(copy + at[0], &length, sizeof(length)), 0);
    EXPECT_EQ(memcmp(copy + at[3], &tag, sizeof(tag)), 0);
    EXPECT_EQ(source, mpitest_rank ^ 1);
    EXPECT_EQ(MPI_T_event_read(e, n, &tag), MPI_T_ERR_INVALID_INDEX);
    MPI_T_event_get_timestamp(e, &time);
    EXPECT(time >= last_time);
    last_time = time;
    MPI_T_event_get_source(e, &event_source);
    EXPECT_EQ(event_source, 0);
    last_length = (long long)length;
    arrivals++;
}

static void on_arrival(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *user)
{
    EXPECT(user == &arrivals);
    EXPECT(safety >= MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    read_arrival(e);
}

static void on_choice(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *user)
{
    int protocol;
    MPI_T_event_read(e, 4, &protocol);
    /* Protocol 4: the message is announced, and its protocol is not chosen yet. */
    EXPECT(protocol >= 2 && protocol <= 8 && protocol != 4);
    choices++;
}

static void on_free(MPI_T_event_registration r, MPI_T_cb_safety safety, void *user)
{
    EXPECT(user == &frees);
    frees++;
}

static void on_drop(MPI_Count count, MPI_T_event_registration r, int source, MPI_T_cb_safety safety,
                    void *user)
{
    drops += (int)count;
}

static void free_in_callback(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety,
                             void *user)
{
    self_freed++;
    MPI_T_event_handle_free(r, &frees, on_free);
}

static void exchange_messages(int count)
{
    static char out[LARGE], in[LARGE];
    MPI_Sendrecv(out, count, MPI_BYTE, mpitest_rank ^ 1, TAG, in, count, MPI_BYTE, mpitest_rank ^ 1, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static MPI_T_event_registration register_event(const char *name)
{
    MPI_T_event_registration r;
    int index = -1;
    EXPECT_EQ(MPI_T_event_get_index(name, &index), MPI_SUCCESS);
    EXPECT_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r), MPI_SUCCESS);
    return r;
}

static void check_descriptions(void)
{
    int n, elements = 0, bind, verbosity, items, len;
    MPI_T_enum names;
    MPI_Info info;
    char word[32];
    MPI_Count ticks, most, now;
    MPI_T_source_order order;
    MPI_T_event_get_num(&n);
    EXPECT_EQ(n, 2);
    for (int i = 0; i < n; i++) {
        elements = 0;
        MPI_T_event_get_info(i, NULL, NULL, &verbosity, NULL, NULL, &elements, &names, &info, NULL, NULL,
                             &bind);
        MPI_T_enum_get_info(names, &items, NULL, NULL);
        EXPECT_EQ(items, elements);
        len = sizeof(word);
        MPI_T_enum_get_item(names, 0, NULL, word, &len);
        EXPECT_EQ(strcmp(word, "length"), 0);
        MPI_Info_free(&info);
    }
    EXPECT_EQ(MPI_T_event_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
              MPI_T_ERR_INVALID_INDEX);
    MPI_T_source_get_num(&n);
    EXPECT_EQ(n, 1);
    MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, &order, &ticks, &most, NULL);
    EXPECT(order == MPI_T_SOURCE_ORDERED && ticks > 0 && most > 0);
    EXPECT_EQ(MPI_T_source_get_timestamp(0, &now), MPI_SUCCESS);
    EXPECT_EQ(MPI_T_source_get_timestamp(1, &now), MPI_T_ERR_INVALID_INDEX);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Info info;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    check_descriptions();
    MPI_T_event_registration arrived = register_event("p2p_message_arrived");
    MPI_T_event_register_callback(arrived, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &arrivals,
                                  on_arrival);
    mpitest_begin(&argc, &argv);
    MPI_T_event_registration chosen = register_event("p2p_protocol_chosen");
    MPI_T_event_register_callback(chosen, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, NULL, on_choice);
    EXPECT_EQ(MPI_T_event_handle_get_info(chosen, &info), MPI_SUCCESS);
    MPI_Info_free(&info);
    EXPECT_EQ(MPI_T_event_callback_get_info(chosen, MPI_T_CB_REQUIRE_NONE, &info), MPI_SUCCESS);
    MPI_Info_free(&info);
    for (int i = 0; i < 5; i++)
        exchange_messages(100);
    EXPECT_EQ(arrivals, 5);
    EXPECT_EQ(last_length, 100);
    EXPECT_EQ(choices, 0);
    MPI_Barrier(MPI_COMM_WORLD); /* no message of the next test arrives before this barrier */
    exchange_messages(LARGE);
    EXPECT_EQ(arrivals, 6);
    EXPECT_EQ(last_length, LARGE);
    EXPECT_EQ(choices, 1);

    /* Events are dropped if no callback has the required safety level. */
    MPI_T_event_register_callback(arrived, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, NULL, NULL);
    MPI_T_event_register_callback(arrived, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &arrivals, on_arrival);
    MPI_T_event_set_dropped_handler(arrived, on_drop);
    MPI_Barrier(MPI_COMM_WORLD);
    exchange_messages(8);
    EXPECT_EQ(arrivals, 6);
    EXPECT(drops >= 1);
    EXPECT_EQ(MPI_T_event_handle_free(arrived, &frees, on_free), MPI_SUCCESS);
    EXPECT_EQ(frees, 1);
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_T_event_registration once = register_event("p2p_message_arrived");
    MPI_T_event_register_callback(once, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL,
                                  free_in_callback);
    MPI_Barrier(MPI_COMM_WORLD);
    exchange_messages(8);
    exchange_messages(8);
    EXPECT_EQ(self_freed, 1);
    EXPECT_EQ(frees, 2);
    MPI_T_event_handle_free(chosen, NULL, NULL);
    int rc = mpitest_end();
    MPI_T_finalize();
    return rc;
}
