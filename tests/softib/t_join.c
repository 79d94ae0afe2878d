/* t_join.c: a process of another user who knows all names of a fabric holds the names of the lock and
 * offers a registry of its own under a member's name. The processes of this user still find each other,
 * and write nothing into the foreign registry. Nor do they join the registry of another fabric of this user, which
 * a member's name of this fabric designates.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/registry.h"
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOINERS 6
#define NOBODY  65534

static int fail_test(const char *what)
{
    fprintf(stderr, "FAILED: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int bind_foreign_name(int kind, uint64_t key, const char *rest)
{
    struct sockaddr_un a;
    socklen_t len = abstract_name(&a, "softib/%016llx/%s", (unsigned long long)key, rest);
    int fd = socket(AF_UNIX, kind, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || (kind == SOCK_STREAM && listen(fd, 1)))
        fail_test(rest);
    return fd;
}

/* Creates and maps a registry of the fabric with this key. */
static struct registry *create_registry(uint64_t key, int *file)
{
    const int fd = *file = shared_create("softib-registry", sizeof(struct registry));
    struct registry *r = fd < 0 ? NULL : registry_map(fd);
    if (!r)
        fail_test("cannot create a registry");
    r->bytes = sizeof(*r);
    r->key = key;
    r->magic = SHM_MAGIC;
    return r;
}

/* A registry of this user is named as that of another fabric: every process can bind the name. */
static void test_other_fabric(uint64_t key)
{
    char name[64];
    int fd;
    munmap(create_registry(key, &fd), sizeof(struct registry));
    for (uint64_t named = key; named <= key + 1; named++) {
        snprintf(name, sizeof(name), "%d.%d.0000000000000001", getpid(), fd);
        int s = bind_foreign_name(SOCK_DGRAM, named, name), found = registry_find(named);
        if ((found >= 0) != (named == key)) {
            fprintf(stderr, "FAILED: the registry of a fabric was %s\n",
                    found >= 0 ? "found under the name of another fabric" : "not found");
            exit(1);
        }
        close(s);
        close(found);
    }
    close(fd);
}

/* The foreign process: its registry is valid except for the owner. */
static void run_foreign_process(uint64_t key, int ready, int go)
{
    char name[64], c = 1;
    if (setgid(NOBODY) || setuid(NOBODY))
        fail_test("setuid");
    prctl(PR_SET_DUMPABLE, 1);
    int fd;
    const struct registry *r = create_registry(key, &fd);
    snprintf(name, sizeof(name), "%d.%d.0000000000000001", getpid(), fd);
    bind_foreign_name(SOCK_DGRAM, key, name);
    bind_foreign_name(SOCK_STREAM, key, "lock.0"); /* accepts connections and never answers */
    bind_foreign_name(SOCK_DGRAM, key, "lock.1");  /* bound, but does not listen */
    if (write(ready, &c, 1) != 1 || read(go, &c, 1) != 1)
        fail_test("cannot synchronise with the test");
    for (uint32_t m = 0; m < MEMBERS; m++)
        if (atomic_load(&r->member[m].gen)) {
            fprintf(stderr, "FAILED: a process joined the registry of another user\n");
            exit(1);
        }
    exit(0);
}

static void run_joiner(int ready, int go)
{
    char c = 1;
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (!list || !list[0] || !ibv_open_device(list[0]))
        fail_test("cannot join the fabric");
    if (write(ready, &c, 1) != 1 || read(go, &c, 1) != 1)
        fail_test("cannot synchronise with the test");
    _exit(0);
}

static void wait_for_processes(int fd, int n)
{
    for (char c; n; n--)
        if (read(fd, &c, 1) != 1)
            fail_test("a process ended early");
}

int main(void)
{
    struct fabric f;
    char err[256];
    int ready[2], go[2], status, bad = 0;
    if (getuid()) {
        fprintf(stderr, "SKIPPED: only root can become another user\n");
        return 77;
    }
    alarm(100);
    if (!fabric_parse(getenv("SOFTIB_FABRIC"), &f, err, sizeof(err)) || pipe(ready) || pipe(go))
        fail_test("cannot set up the test");
    uint64_t key = registry_key(&f);
    test_other_fabric(key);
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run_foreign_process(key, ready[1], go[0]);
    }
    wait_for_processes(ready[0], 1);
    for (int i = 0; i < JOINERS; i++)
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(ready[0]);
            run_joiner(ready[1], go[0]);
        }
    close(ready[1]);
    wait_for_processes(ready[0], JOINERS);
    int fd = registry_find(key);
    struct registry *r = fd < 0 ? NULL : registry_map(fd);
    uint32_t live = 0;
    for (uint32_t m = 1; r && m < MEMBERS; m++)
        live += atomic_load(&r->member[m].live);
    if (live != JOINERS) {
        fprintf(stderr, "FAILED: %u of %d processes are in one registry\n", live, JOINERS);
        bad = 1;
    }
    for (int i = 0; i <= JOINERS; i++)
        if (write(go[1], "", 1) != 1)
            fail_test("cannot synchronise with the test");
    while (wait(&status) > 0)
        bad |= status != 0;
    fabric_free(&f);
    return bad;
}
