/* t_reuse.c: a program that repeatedly registers shared memory, as MPI windows do: its keys stay within a
 * small part of the table, no key is reused while a peer may still know it, and the writing process
 * retains few mappings of freed memory. Each such mapping retained the memory itself: 13 MB for each peer
 * with windows of 128 KiB.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include "fabric/shm.h"
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS      2000
#define LENGTH      65536
#define MAPPINGS    64
#define ENTRIES_MAX 1100
#define FILE_NAME   "reuse-test"

static int count_mappings(const char *name)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    CHECK(f);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, name) != NULL;
    fclose(f);
    return n;
}

static unsigned count_distinct_keys(const uint32_t *keys)
{
    static bool used[MR_MAX];
    unsigned entries = 0;
    for (int i = 0; i < ROUNDS; i++) {
        entries += !used[keys[i] >> MR_SHIFT];
        used[keys[i] >> MR_SHIFT] = true;
        for (int k = 0; k < i; k++)
            CHECK(keys[k] != keys[i], "key %#x of round %d was reused in round %d", keys[i], k, i);
    }
    return entries;
}

static void run_test(struct vt *t)
{
    static uint32_t keys[ROUNDS];
    struct vt_qp q;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    for (int i = 0; i < ROUNDS; i++) {
        const int fd = memfd_create(FILE_NAME, MFD_CLOEXEC);
        CHECK(fd >= 0 && !ftruncate(fd, LENGTH));
        char *at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK(at != MAP_FAILED);
        struct ibv_mr *mr = ibv_reg_mr(t->pd, at, LENGTH, ALL_ACCESS);
        CHECK(mr);
        keys[i] = mr->rkey;
        struct vt_addr mine = {.rkey = mr->rkey, .buf = (uintptr_t)at}, theirs;
        vt_exchange(t, &mine, &theirs, sizeof(mine));
        q.peer.rkey = theirs.rkey;
        q.peer.buf = theirs.buf;
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        vt_sync(t);
        CHECK(!ibv_dereg_mr(mr));
        munmap(at, LENGTH);
        close(fd);
    }
    const int left = count_mappings(FILE_NAME);
    CHECK(left <= MAPPINGS, "%d mappings of freed memory of the other side", left);
    const unsigned entries = count_distinct_keys(keys);
    CHECK(entries <= ENTRIES_MAX, "the keys use %u table entries, although one region exists at a time",
          entries);
    vt_sync(t);
    vt_qp_close(&q);
}

int main(void)
{
    return vt_run(run_test);
}
