/* categories.c: every variable and event is in exactly one category, and the counts of the categories are
 * correct.
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static int seen[3][1024];

static void record_members(int kind, int n, const int *indices)
{
    for (int i = 0; i < n; i++)
        seen[kind][indices[i]]++;
}

int main(void)
{
    int provided, n, stamp, later, children = 0, total[3], index;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_category_changed(&stamp);
    MPI_T_category_get_num(&n);
    EXPECT(n > 3);
    for (int i = 0; i < n; i++) {
        char name[64], desc[256];
        int name_len = sizeof(name), desc_len = sizeof(desc), cvars, pvars, cats, events, list[1024];
        EXPECT_EQ(MPI_T_category_get_info(i, name, &name_len, desc, &desc_len, &cvars, &pvars, &cats),
                  MPI_SUCCESS);
        EXPECT_EQ(MPI_T_category_get_index(name, &index), MPI_SUCCESS);
        EXPECT_EQ(index, i);
        MPI_T_category_get_num_events(i, &events);
        EXPECT(cvars + pvars + cats + events > 0);
        MPI_T_category_get_cvars(i, cvars, list);
        record_members(0, cvars, list);
        MPI_T_category_get_pvars(i, pvars, list);
        record_members(1, pvars, list);
        MPI_T_category_get_events(i, events, list);
        record_members(2, events, list);
        MPI_T_category_get_categories(i, cats, list);
        for (int k = 0; k < cats; k++)
            EXPECT(list[k] >= 0 && list[k] < n && list[k] != i);
        children += cats;
    }
    EXPECT(children >= 1);
    MPI_T_cvar_get_num(&total[0]);
    MPI_T_pvar_get_num(&total[1]);
    MPI_T_event_get_num(&total[2]);
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < total[kind]; i++)
            EXPECT_EQ(seen[kind][i], 1);
    MPI_T_category_changed(&later);
    EXPECT_EQ(stamp, later);
    EXPECT_EQ(MPI_T_category_get_index("nonsense", &index), MPI_T_ERR_INVALID_NAME);
    EXPECT_EQ(MPI_T_category_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    MPI_T_finalize();
    return mpitest_failures != 0;
}
