/* test_output_files.c: the files of -outfile-pattern: output that arrives after output_sync() is written, and the
 * files are closed once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../launcher/job/output.h"
#include "test.h"

enum { WAIT_MS = 60000 };

static int failures;

static const char *on_host_name(void *ctx, uint32_t rank)
{
    (void)ctx;
    (void)rank;
    return "host";
}

static void on_pause(void *ctx, bool pause)
{
    (void)ctx;
    (void)pause;
}

static void on_event(void *ctx)
{
    (void)ctx;
}

static void on_failed(void *ctx, const char *name, int error)
{
    (void)ctx;
    failures++;
    printf("%s: %s\n", name, strerror(error));
}

static void test_output_after_sync(void)
{
    char name[64], text[64] = "";
    struct loop loop;
    const int file = memfd_create("output", MFD_CLOEXEC);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
    loop_init(&loop);
    const int next = dup(file); /* the number that output_new() gives to the file */
    close(next);
    struct output *o = output_new(&loop, &(struct output_options){.out_pattern = name,
                                                                  .size = 1,
                                                                  .host_of = on_host_name,
                                                                  .pause = on_pause,
                                                                  .drained = on_event,
                                                                  .no_reader = on_event,
                                                                  .failed = on_failed});
    output_write(o, 0, 1, "before\n", 7);
    output_sync(o, WAIT_MS);
    output_write(o, 0, 1, "after\n", 6);
    output_close(o, WAIT_MS);
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(pread(file, text, sizeof(text) - 1, 0), 13);
    EXPECT_EQ(strcmp(text, "before\nafter\n"), 0);
    EXPECT_EQ(dup(file), next); /* the file was closed; another one gets its number */
    output_sync(o, WAIT_MS);
    EXPECT(fcntl(next, F_GETFD) >= 0);
    close(next);
    close(file);
}

int main(void)
{
    TEST_RUN(test_output_after_sync);
    return test_result();
}
