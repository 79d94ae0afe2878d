/* memlock.c: reads and raises RLIMIT_MEMLOCK; processes with CAP_IPC_LOCK are exempt.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memlock.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

/* True in the initial user namespace, for which the kernel checks CAP_IPC_LOCK: root in a container with its
 * own user namespace does not have it. The initial namespace has the identity mapping of user ids. */
static bool is_initial_user_namespace(void)
{
    unsigned inside = 1, outside = 1, count = 0;
    FILE *f = fopen("/proc/self/uid_map", "re");
    if (!f)
        return true; /* a kernel without user namespaces */
    int n = fscanf(f, "%u %u %u", &inside, &outside, &count);
    fclose(f);
    return n == 3 && inside == 0 && outside == 0 && count == UINT32_MAX;
}

static bool memlock_is_exempt(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    return (data[CAP_IPC_LOCK / 32].effective >> CAP_IPC_LOCK % 32 & 1) && is_initial_user_namespace();
}

uint64_t memlock_limit(void)
{
    struct rlimit r;
    if (memlock_is_exempt() || getrlimit(RLIMIT_MEMLOCK, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return r.rlim_cur;
}

static void raise_limit(uint64_t bytes)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_MEMLOCK, &r) != 0 || r.rlim_cur >= bytes || r.rlim_cur >= r.rlim_max)
        return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &r);
}

static const char *format_bytes(uint64_t bytes, char *out, size_t size)
{
    if (bytes >= (1 << 20))
        snprintf(out, size, "%" PRIu64 " MiB", (bytes + (1 << 19)) >> 20);
    else
        snprintf(out, size, "%" PRIu64 " KiB", (bytes + 1023) >> 10);
    return out;
}

int memlock_set_error(uint64_t bytes, uint64_t limit, const char *who)
{
    char wanted[32], allowed[32];
    return err_set(
        MPI_ERR_NO_MEM,
        "%s needs to pin %s of memory, but this process may pin %s (RLIMIT_MEMLOCK); raise the limit with "
        "`ulimit -l unlimited` in the shell that starts the job, and on every node in what starts the ranks: "
        "LimitMEMLOCK=infinity in the unit of slurmd or sshd, or a memlock line in /etc/security/limits.conf",
        who, format_bytes(bytes, wanted, sizeof(wanted)), format_bytes(limit, allowed, sizeof(allowed)));
}

int memlock_check(uint64_t bytes, const char *who)
{
    if (memlock_limit() < bytes)
        raise_limit(bytes);
    uint64_t limit = memlock_limit();
    return limit >= bytes ? 0 : memlock_set_error(bytes, limit, who);
}
