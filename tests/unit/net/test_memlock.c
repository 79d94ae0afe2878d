/* test_memlock.c: the limit of locked memory is read, raised as far as permitted, and explained in error
 * messages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memlock.h"

#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "test.h"

static void test_error_text(void)
{
    EXPECT_EQ(memlock_set_error(300u << 20, 64u << 10, "mlx5_0"), MPI_ERR_NO_MEM);
    const char *text = err_detail(MPI_ERR_NO_MEM);
    static const char *const parts[] = {
        "mlx5_0", "300 MiB", "64 KiB", "ulimit -l unlimited", "LimitMEMLOCK=infinity", "slurmd"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!strstr(text, parts[i])) {
            printf("expected \"%s\" in: %s\n", parts[i], text);
            test_failures++;
        }
}

/* Runs in a child: lowered limits cannot be raised again, and root is exempt from them. */
static int check_as_ordinary_user(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
        return 77;
    struct rlimit r;
    getrlimit(RLIMIT_MEMLOCK, &r);
    if (r.rlim_max != RLIM_INFINITY && r.rlim_max < (1u << 20))
        return 77;
    r.rlim_max = 1u << 20;
    r.rlim_cur = 64u << 10;
    if (setrlimit(RLIMIT_MEMLOCK, &r) != 0)
        return 77;
    EXPECT_EQ(memlock_limit(), 64u << 10);
    EXPECT_EQ(memlock_check(64u << 10, "test"), 0);
    EXPECT_EQ(memlock_limit(), 64u << 10); /* the limit is sufficient and not raised */
    EXPECT_EQ(memlock_check(512u << 10, "test"), 0);
    EXPECT_EQ(memlock_limit(), 1u << 20); /* raised to the hard limit */
    EXPECT_EQ(memlock_check(2u << 20, "test"), MPI_ERR_NO_MEM);
    EXPECT(strstr(err_detail(MPI_ERR_NO_MEM), "may pin 1 MiB") != NULL);
    return test_result();
}

static void test_limits(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int rc = check_as_ordinary_user();
        fflush(stdout);
        _exit(rc);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        printf("     skipped: this process cannot change its limits\n");
    else
        EXPECT_EQ(WEXITSTATUS(status), 0);
}

static void test_unlimited(void)
{
    EXPECT_EQ(memlock_check(0, "test"), 0);
    if (memlock_limit() == UINT64_MAX)
        EXPECT_EQ(memlock_check(UINT64_MAX, "test"), 0);
}

int main(void)
{
    TEST_RUN(test_error_text);
    TEST_RUN(test_limits);
    TEST_RUN(test_unlimited);
    return test_result();
}
