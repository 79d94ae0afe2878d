/* is.c: integer sort: ranks of keys by counting, ten times with two keys changed each time [NPB94]. Every
 * iteration sends nearly all keys in one alltoallv: the large-message test among the kernels. The random
 * numbers put most keys in the middle of the range, so ranks get ranges of keys that hold about the same
 * number of keys.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "random.h"

enum { ITERATIONS = 10, PROBES = 5, LOG2_BUCKETS = 10, BUCKETS = 1 << LOG2_BUCKETS };

/* Five keys with published ranks: index of the key, its rank, and the sign of the rank's change with each
 * iteration. */
static const struct {
    int log2_keys, log2_range;
    int64_t at[PROBES], rank[PROBES];
    int sign[PROBES];
    int late;       /* expected rank: rank + sign * (iteration - late) */
    bool late_down; /* `late` applies also if the sign is negative */
} classes[CLASS_COUNT] = {
    [CLASS_S] =
        {16, 11, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, {1, 1, 1, -1, -1}, 0, false},
    [CLASS_W] = {20,
                 16,
                 {357773, 934767, 875723, 898999, 404505},
                 {1249, 11698, 1039987, 1043896, 1048018},
                 {1, 1, -1, -1, -1},
                 2,
                 false},
    [CLASS_A] = {23,
                 19,
                 {2112377, 662041, 5336171, 3642833, 4250760},
                 {104, 17523, 123928, 8288932, 8388264},
                 {1, 1, 1, -1, -1},
                 1,
                 true},
    [CLASS_B] = {25,
                 21,
                 {41869, 812306, 5102857, 18232239, 26860214},
                 {33422937, 10244, 59149, 33135281, 99},
                 {-1, 1, 1, -1, 1},
                 0,
                 false},
};

struct sort {
    struct kernel_run *run;
    int64_t total, first, count; /* number of all keys, index of this rank's first key, number of its keys */
    int range, shift;            /* keys are less than `range`; key >> shift is the bucket of a key */
    int32_t *keys, *sorted, *received;
    int64_t capacity;       /* capacity of `received` in keys */
    int64_t received_count; /* number of keys in `received` */
    /* for each value from low to high - 1, this process's range after the exchange: number of keys,
     * finally their running sum */
    int32_t *counts;
    int low, high;
    int64_t below;          /* number of keys on lower ranks after the exchange */
    int64_t probes[PROBES]; /* values of the probed keys in this iteration */
};

static int64_t isort_first_key(int64_t total, int rank, int size)
{
    return total / size * rank + (total % size < rank ? total % size : rank);
}

static void isort_make_keys(struct sort *s)
{
    uint64_t x = random_skip(314159265, 4 * (uint64_t)s->first);
    for (int64_t i = 0; i < s->count; i++) {
        double sum = random_next(&x);
        sum += random_next(&x);
        sum += random_next(&x);
        sum += random_next(&x);
        s->keys[i] = (int32_t)(s->range / 4 * sum);
    }
}

static void isort_set_key(struct sort *s, int64_t at, int32_t key)
{
    if (at >= s->first && at < s->first + s->count)
        s->keys[at - s->first] = key;
}

/* First bucket of each rank's range, chosen so that all ranks get about total / size keys; the last entry is
 * BUCKETS. */
static void isort_assign_buckets(const struct sort *s, const int64_t *filled, int *begins)
{
    int64_t seen = 0;
    int rank = 0;
    begins[0] = 0;
    for (int b = 0; b < BUCKETS; b++) {
        while (rank + 1 < s->run->size && seen >= isort_first_key(s->total, rank + 1, s->run->size))
            begins[++rank] = b;
        seen += filled[b];
    }
    while (rank < s->run->size)
        begins[++rank] = BUCKETS;
}

/* Sorts the keys into the order of their buckets; mine[b] receives the number of keys in bucket b. */
static void isort_sort_into_buckets(struct sort *s, int64_t *mine)
{
    int64_t next[BUCKETS], at = 0;
    memset(mine, 0, BUCKETS * sizeof(*mine));
    for (int64_t i = 0; i < s->count; i++)
        mine[s->keys[i] >> s->shift]++;
    for (int b = 0; b < BUCKETS; b++) {
        next[b] = at;
        at += mine[b];
    }
    for (int64_t i = 0; i < s->count; i++)
        s->sorted[next[s->keys[i] >> s->shift]++] = s->keys[i];
}

static void isort_exchange_keys(struct sort *s, const int64_t *mine, const int *begins, int *lists)
{
    int size = s->run->size, at = 0;
    int *send = lists, *send_at = send + size, *receive = send_at + size, *receive_at = receive + size;
    for (int r = 0; r < size; r++) {
        send_at[r] = at;
        for (int b = begins[r]; b < begins[r + 1]; b++)
            at += (int)mine[b];
        send[r] = at - send_at[r];
    }
    MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, s->run->comm);
    at = 0;
    for (int r = 0; r < size; r++) {
        receive_at[r] = at;
        at += receive[r];
    }
    if (at > s->capacity) {
        free(s->received);
        s->capacity = at + at / 8;
        s->received = kernel_alloc(s->run, (size_t)s->capacity * sizeof(*s->received));
    }
    s->received_count = at;
    MPI_Alltoallv(s->sorted, send, send_at, MPI_INT32_T, s->received, receive, receive_at, MPI_INT32_T,
                  s->run->comm);
}

/* Sets mine[p] to the value of probed key p, or to 0 if another rank has the key. */
static void isort_read_probes(const struct sort *s, int64_t *mine)
{
    for (int p = 0; p < PROBES; p++) {
        const int64_t at = classes[s->run->class].at[p];
        mine[p] = at >= s->first && at < s->first + s->count ? s->keys[at - s->first] : 0;
    }
}

/* One iteration: afterwards each process knows the ranks of the keys in its range. The values of the probed
 * keys are distributed with the numbers of keys in the buckets, as in the original. */
static void isort_rank_keys(struct sort *s, int *lists)
{
    int64_t mine[BUCKETS + PROBES], filled[BUCKETS + PROBES];
    int *begins = lists + 4 * s->run->size;
    isort_read_probes(s, mine + BUCKETS);
    isort_sort_into_buckets(s, mine);
    MPI_Allreduce(mine, filled, BUCKETS + PROBES, MPI_INT64_T, MPI_SUM, s->run->comm);
    memcpy(s->probes, filled + BUCKETS, sizeof(s->probes));
    isort_assign_buckets(s, filled, begins);
    isort_exchange_keys(s, mine, begins, lists);
    s->low = begins[s->run->rank] << s->shift;
    s->high = begins[s->run->rank + 1] << s->shift;
    s->below = 0;
    for (int b = 0; b < begins[s->run->rank]; b++)
        s->below += filled[b];
    memset(s->counts, 0, (size_t)(s->high - s->low) * sizeof(*s->counts));
    for (int64_t i = 0; i < s->received_count; i++)
        s->counts[s->received[i] - s->low]++;
    for (int k = 1; k < s->high - s->low; k++)
        s->counts[k] += s->counts[k - 1];
}

/* Number of correct ranks among the probed keys that lie in this process's range. */
static int isort_count_correct_probes(const struct sort *s, int iteration)
{
    int right = 0;
    for (int p = 0; p < PROBES; p++) {
        const int64_t key = s->probes[p];
        int sign = classes[s->run->class].sign[p], late = classes[s->run->class].late;
        if (key < s->low || key >= s->high)
            continue;
        int64_t rank = s->below + (key > s->low ? s->counts[key - 1 - s->low] : 0);
        int offset = sign > 0 || classes[s->run->class].late_down ? iteration - late : iteration;
        right += rank == classes[s->run->class].rank[p] + sign * offset;
    }
    return right;
}

/* Verifies after the last iteration that all probed keys had the published ranks (`right` on this rank), and
 * that the ranges hold all keys and no key of another range; the counts are then the sorted order. */
static bool isort_result_is_correct(const struct sort *s, int right)
{
    int64_t mine[2] = {right, s->received_count}, all[2];
    for (int64_t i = 0; i < s->received_count; i++)
        if (s->received[i] < s->low || s->received[i] >= s->high)
            mine[1] = -s->total;
    MPI_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, s->run->comm);
    return all[0] == ITERATIONS * PROBES && all[1] == s->total;
}

static void isort_run(struct kernel_run *run, struct kernel_result *out)
{
    struct sort s = {.run = run, .total = INT64_C(1) << classes[run->class].log2_keys};
    int right = 0;
    s.range = 1 << classes[run->class].log2_range;
    s.shift = classes[run->class].log2_range - LOG2_BUCKETS;
    s.first = isort_first_key(s.total, run->rank, run->size);
    s.count = isort_first_key(s.total, run->rank + 1, run->size) - s.first;
    s.keys = kernel_alloc(run, (size_t)s.count * sizeof(*s.keys));
    s.sorted = kernel_alloc(run, (size_t)s.count * sizeof(*s.sorted));
    s.counts = kernel_alloc(run, (size_t)s.range * sizeof(*s.counts));
    int *lists = kernel_alloc(run, (size_t)(5 * run->size + 1) * sizeof(*lists));
    isort_make_keys(&s);
    isort_rank_keys(&s, lists); /* one untimed iteration, as the specification requires */
    double started = kernel_start(run);
    for (int i = 1; i <= ITERATIONS; i++) {
        isort_set_key(&s, i, i);
        isort_set_key(&s, i + ITERATIONS, s.range - i);
        isort_rank_keys(&s, lists);
        right += isort_count_correct_probes(&s, i);
        kernel_progress(run, i, ITERATIONS);
    }
    kernel_stop(run, started, out);
    out->verified = isort_result_is_correct(&s, right);
    out->amount = (double)s.total * ITERATIONS * 1e-6;
    free(s.keys);
    free(s.sorted);
    free(s.received);
    free(s.counts);
    free(lists);
}

const struct kernel kernel_is = {
    .name = "is",
    .doc = "sort of integer keys; all keys in one MPI_Alltoallv, ten times",
    .unit = "Mkey/s",
    .ranks = "any number",
    .run = isort_run,
};
