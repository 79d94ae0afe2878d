/* t_limits.c: if the system prevents access to a peer (too little address space, pidfd_open or
 * process_vm_writev forbidden), the queue pair fails soon and with the reason instead of waiting forever.
 * Little address space is sufficient, since a peer's arena is mapped in parts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *limit_to_test; /* from the command line */

static void forbid_system_call(int number)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
        vt_skip("no seccomp filter can be installed");
}

static size_t used_address_space(void)
{
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%zu", &pages) == 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_space(size_t more)
{
    struct rlimit l = {used_address_space() + more, RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &l);
    l.rlim_cur = used_address_space() + more;
    CHECK(!setrlimit(RLIMIT_AS, &l));
}

/* Reads the pipe with the output of side 1, which must contain the message. */
static void expect_message(int fd, const char *words)
{
    char text[4096] = "";
    ssize_t n = read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    if (!strstr(text, words)) {
        printf("FAILED: the message \"%s\" does not contain \"%s\"\n", text, words);
        exit(1);
    }
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    int keep = dup(2), pipes[2];
    o.timeout = 0; /* no time limit: the failure must be reported without a timeout */
    CHECK(!pipe(pipes));
    vt_qp_open(t, o, &q);
    enum ibv_wc_status want = IBV_WC_LOC_QP_OP_ERR;
    const char *words = NULL;
    if (t->side == 1) {
        if (!strcmp(limit_to_test, "pidfd")) {
            forbid_system_call(SYS_pidfd_open);
            words = "pidfd_open: Operation not permitted";
        } else if (!strcmp(limit_to_test, "cma")) {
            forbid_system_call(SYS_process_vm_writev);
            words = "cannot copy to or from the memory of process";
        } else if (!strcmp(limit_to_test, "space")) {
            limit_space(8u << 20);
            words = "map its memory: Cannot allocate memory";
        } else {
            limit_space(200u << 20); /* less than a tenth of an arena */
            want = IBV_WC_SUCCESS;
        }
        dup2(pipes[1], 2);
        vt_fill(t->buf, 100, 5);
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 1, 0, 100, 4096, IBV_SEND_SIGNALED));
        dup2(keep, 2);
        vt_expect_completion(t->cq, want);
        if (words)
            expect_message(pipes[0], words);
    }
    vt_sync(t);
    if (t->side == 0 && !strcmp(limit_to_test, "parts"))
        vt_expect_bytes(t->buf + 4096, 100, 5, "with little address space");
    vt_qp_close(&q);
}

/* Hides /proc, or only the file with the start time of this process. */
static bool hide_proc(bool all)
{
    char stat[64];
    snprintf(stat, sizeof(stat), "/proc/%d/stat", getpid());
    return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
           !(all ? mount("none", "/proc", "tmpfs", 0, NULL) : mount("/dev/null", stat, NULL, MS_BIND, NULL));
}

/* Without /proc, members cannot find each other, and without its start time a process may be confused with a
 * later one: opening the device fails with errno and a message. */
static int test_without_proc(bool all)
{
    int pipes[2];
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (!hide_proc(all))
        vt_skip("/proc cannot be hidden here");
    CHECK(list && list[0] && !pipe(pipes));
    fflush(stderr);
    int keep = dup(2);
    dup2(pipes[1], 2);
    errno = 0;
    struct ibv_context *c = ibv_open_device(list[0]);
    int e = errno;
    dup2(keep, 2);
    CHECK(!c && e == (all ? ENOENT : ESRCH), "the device was opened, or errno is %d", e);
    expect_message(pipes[0], all ? "/proc: mount it" : "cannot join the fabric");
    return 0;
}

int main(int argc, char **argv)
{
    limit_to_test = argc > 1 ? argv[1] : "";
    if (!strcmp(limit_to_test, "proc") || !strcmp(limit_to_test, "stat"))
        return test_without_proc(!strcmp(limit_to_test, "proc"));
    return vt_run(run_test);
}
