/* test_progress.c: progress is reported only after a time of silence, with the remaining time once it can
 * be estimated.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "cli/progress.h"
#include "test.h"

/* Returns the line printed about a command that has run for 60 s and was silent for the last `silent`
 * seconds; "": no line. */
static const char *get_progress_line(double silent, double done, double all)
{
    static char line[128];
    struct progress p;
    FILE *file = tmpfile();
    fflush(stderr);
    const int old = dup(STDERR_FILENO);
    if (!file || old < 0 || dup2(fileno(file), STDERR_FILENO) < 0)
        return "no file";
    progress_start(&p, "tool");
    p.started -= 60;
    p.reported -= silent;
    progress_report(&p, done, all, "%d figures", 3);
    progress_report(&p, done, all, "%s", "the second report comes too early");
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(file);
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    EXPECT(!fgets(line + 100, 28, file));
    fclose(file);
    return line;
}

static void test_waits_for_silence(void)
{
    EXPECT_STR(get_progress_line(0, 30, 100), "");
    EXPECT_STR(get_progress_line(60, 0, 0), "tool: 60 s: 3 figures\n");
}

static void test_estimates_time_left(void)
{
    EXPECT_STR(get_progress_line(60, 75, 100), "tool: 60 s: 3 figures; about 20 s remain\n");
    EXPECT_STR(get_progress_line(60, 1, 100), "tool: 60 s: 3 figures\n");
    EXPECT_STR(get_progress_line(60, 100, 100), "tool: 60 s: 3 figures\n");
}

int main(void)
{
    TEST_RUN(test_waits_for_silence);
    TEST_RUN(test_estimates_time_left);
    return test_result();
}
