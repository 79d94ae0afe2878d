/* test_cma.c: which processes may read this process under the Yama security module: the launcher and its
 * descendants, or every process if the launcher is unknown. The machine need not have Yama: the prctl of
 * this program replaces libc's and records the requests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "net/shm/cma.h"
#include "test.h"

static unsigned long requested[4], unknown_process;
static int requests;

int prctl(int option, ...)
{
    va_list args;
    va_start(args, option);
    unsigned long who = va_arg(args, unsigned long);
    va_end(args);
    EXPECT_EQ(option, PR_SET_PTRACER);
    requested[requests++ & 3] = who;
    errno = EINVAL;
    return who == unknown_process ? -1 : 0;
}

static void record_permitted_process(const char *launcher, unsigned long no_such)
{
    requests = 0;
    unknown_process = no_such;
    cma_permit_access(launcher);
}

static void test_permits_launcher(void)
{
    record_permitted_process("4321", 0);
    EXPECT_EQ(requests, 1);
    EXPECT_EQ(requested[0], 4321);
}

static void test_permits_all_without_launcher(void)
{
    const char *const none[] = {NULL, "", "0", "12x"};
    for (int i = 0; i < 4; i++) {
        record_permitted_process(none[i], 0);
        EXPECT_EQ(requests, 1);
        EXPECT(requested[0] == (unsigned long)PR_SET_PTRACER_ANY);
    }
}

/* In a container the launcher's process id may be unknown to the kernel. */
static void test_permits_all_if_launcher_is_unknown(void)
{
    record_permitted_process("4321", 4321);
    EXPECT_EQ(requests, 2);
    EXPECT_EQ(requested[0], 4321);
    EXPECT(requested[1] == (unsigned long)PR_SET_PTRACER_ANY);
}

int main(void)
{
    TEST_RUN(test_permits_launcher);
    TEST_RUN(test_permits_all_without_launcher);
    TEST_RUN(test_permits_all_if_launcher_is_unknown);
    return test_result();
}
