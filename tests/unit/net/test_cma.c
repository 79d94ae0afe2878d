/* test_cma.c: who may read this process where Yama restricts it: the launcher's process and its descendants, and everybody
 * only where the launcher is not known. The machine need not have Yama: prctl of this program takes the place of libc's
 * and notes which requests the kernel would get.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "net/shm/cma.h"
#include "test.h"

static unsigned long requested[4], unknown;
static int times;

int prctl(int option, ...)
{
    va_list args;
    va_start(args, option);
    unsigned long who = va_arg(args, unsigned long);
    va_end(args);
    EXPECT_EQ(option, PR_SET_PTRACER);
    requested[times++ & 3] = who;
    errno = EINVAL;
    return who == unknown ? -1 : 0;
}

static void cma_permit_recorded(const char *launcher, unsigned long no_such)
{
    times = 0;
    unknown = no_such;
    cma_permit_access(launcher);
}

static void the_launcher_alone(void)
{
    cma_permit_recorded("4321", 0);
    EXPECT_EQ(times, 1);
    EXPECT_EQ(requested[0], 4321);
}

static void everybody_without_a_launcher(void)
{
    const char *const none[] = {NULL, "", "0", "12x"};
    for (int i = 0; i < 4; i++) {
        cma_permit_recorded(none[i], 0);
        EXPECT_EQ(times, 1);
        EXPECT(requested[0] == (unsigned long)PR_SET_PTRACER_ANY);
    }
}

/* In a container process numbers are others. */
static void everybody_where_it_is_not_found(void)
{
    cma_permit_recorded("4321", 4321);
    EXPECT_EQ(times, 2);
    EXPECT_EQ(requested[0], 4321);
    EXPECT(requested[1] == (unsigned long)PR_SET_PTRACER_ANY);
}

int main(void)
{
    TEST_RUN(the_launcher_alone);
    TEST_RUN(everybody_without_a_launcher);
    TEST_RUN(everybody_where_it_is_not_found);
    return test_result();
}
