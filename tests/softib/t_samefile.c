/* t_samefile.c: two open files with the same inode number on two file systems: data written to the region
 * of one file arrives in that file and not in the other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES 65536u

static char dirs[2][32];

static void write_text_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        vt_skip("no user namespace can be created");
    close(fd);
}

/* Mounts two new tmpfs in a private namespace, which end with the process. */
static void mount_file_systems(void)
{
    char map[64];
    uid_t uid = getuid();
    gid_t gid = getgid();
    if (unshare(CLONE_NEWNS)) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
            vt_skip("no mount namespace can be created");
        write_text_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof(map), "%u %u 1", uid, uid);
        write_text_file("/proc/self/uid_map", map);
        snprintf(map, sizeof(map), "%u %u 1", gid, gid);
        write_text_file("/proc/self/gid_map", map);
    }
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    for (int i = 0; i < 2; i++) {
        snprintf(dirs[i], sizeof(dirs[i]), "/tmp/softib-same-XXXXXX");
        if (!mkdtemp(dirs[i]) || mount("none", dirs[i], "tmpfs", 0, "size=1m"))
            vt_skip("no tmpfs can be mounted");
    }
}

static int create_file_with_inode(const char *dir, ino_t want, ino_t *ino)
{
    char path[64];
    struct stat st = {0};
    int fd = -1;
    for (unsigned i = 0; i < 4096 && (fd < 0 || (want && st.st_ino < want)); i++) {
        if (fd >= 0)
            close(fd);
        snprintf(path, sizeof(path), "%s/f%u", dir, i);
        CHECK((fd = open(path, O_RDWR | O_CREAT, 0600)) >= 0 && !fstat(fd, &st));
    }
    CHECK(!ftruncate(fd, BYTES));
    *ino = st.st_ino;
    return fd;
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    struct ibv_mr *mr = NULL;
    unsigned char *p = NULL, *decoy = NULL;
    struct vt_addr me = {0}, other;
    if (t->side == 0) {
        ino_t a, b;
        int wrong = create_file_with_inode(dirs[0], 0, &a),
            right = create_file_with_inode(dirs[1], a, &b); /* the same inode number as the first file */
        if (a != b)
            vt_skip("the two file systems assign different inode numbers");
        CHECK(dup(wrong) > right); /* a search for the file, up or down, finds the wrong one first */
        decoy = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, wrong, 0);
        p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, right, 0);
        CHECK(p != MAP_FAILED && decoy != MAP_FAILED && (mr = ibv_reg_mr(t->pd, p, BYTES, ALL_ACCESS)));
        me.buf = (uintptr_t)p;
        me.rkey = mr->rkey;
    }
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    vt_exchange(t, &me, &other, sizeof(me));
    if (t->side == 1) {
        q.peer.buf = other.buf;
        q.peer.rkey = other.rkey;
        vt_fill(t->buf, BYTES, 8);
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 1, 0, BYTES, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    }
    vt_sync(t);
    if (t->side == 0) {
        for (unsigned i = 0; i < BYTES; i++)
            CHECK(!decoy[i], "byte %u of another file was overwritten", i);
        vt_expect_bytes(p, BYTES, 8, "the region's own file");
        CHECK(!ibv_dereg_mr(mr));
    }
    vt_qp_close(&q);
}

int main(void)
{
    mount_file_systems();
    int r = vt_run(run_test);
    for (int i = 0; i < 2; i++) {
        umount2(dirs[i], MNT_DETACH);
        rmdir(dirs[i]);
    }
    return r;
}
