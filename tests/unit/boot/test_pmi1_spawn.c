/* test_pmi1_spawn.c: requests to spawn under a PMI-1 server other than Fishplate's mpiexec: the lines of a
 * request, words that no line can carry, and answers after the time limit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tunable.h"
#include "boot/boot.h"

#include "test.h"

static int server; /* the server's end of the connection */

static struct boot *open_job(void)
{
    static const char answers[] = "cmd=response_to_init rc=0\n"
                                  "cmd=my_kvsname kvsname=kvs\n"
                                  "cmd=appnum appnum=0\n"
                                  "cmd=universe_size size=4\n"
                                  "cmd=spawn_result rc=0 jobid=kvs_1\n";
    struct boot *b = NULL;
    char number[16];
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    server = ends[1];
    EXPECT_EQ(write(server, answers, sizeof(answers) - 1), sizeof(answers) - 1);
    snprintf(number, sizeof(number), "%d", ends[0]);
    setenv("PMI_FD", number, 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "1", 1);
    EXPECT_EQ(boot_open(&b), 0);
    return b;
}

/* Closes the job and returns the bytes that the server received. */
static const char *close_job(struct boot *b)
{
    static char received[4096];
    const ssize_t n = read(server, received, sizeof(received) - 1);
    received[n > 0 ? n : 0] = '\0';
    boot_close(b);
    close(server);
    return received;
}

static void test_request_lines(void)
{
    char id[BOOT_SPAWN_ID], *argv[] = {"-n", "5%", NULL};
    const struct boot_program program = {.command = "child", .argv = argv, .count = 2};
    struct boot *b = open_job();
    EXPECT_EQ(boot_spawn(b, &program, 1, "port", id), 0);
    EXPECT_STR(id, "kvs_1");
    EXPECT(strstr(close_job(b), "execname=child\nargcnt=2\narg1=-n\narg2=5%\n") != NULL);
}

static void test_line_breaks_are_refused(void)
{
    char id[BOOT_SPAWN_ID], *argv[] = {"a\nnprocs=1000", NULL}, *none[] = {NULL};
    const char *keys[] = {"wdir"}, *values[] = {"/tmp\nendcmd"};
    const struct boot_program programs[] = {
        {.command = "child", .argv = argv, .count = 1},
        {.command = "chi\nld", .argv = none, .count = 1},
        {.command = "child", .argv = none, .count = 1, .keys = keys, .values = values, .nkeys = 1}};
    for (int i = 0; i < 3; i++) {
        struct boot *b = open_job();
        EXPECT_EQ(boot_spawn(b, &programs[i], 1, "port", id), MPI_ERR_SPAWN);
        EXPECT(strstr(close_job(b), "mcmd=spawn") == NULL);
    }
}

/* An answer that arrives after the time limit is not taken for the answer to the next request. */
static void test_late_answer_is_discarded(void)
{
    static const char late[] = "cmd=spawn_result rc=0 jobid=kvs_2\ncmd=spawn_result rc=0 jobid=kvs_3\n";
    char id[BOOT_SPAWN_ID], *argv[] = {NULL};
    const struct boot_program program = {.command = "child", .argv = argv, .count = 1};
    struct boot *b = open_job();
    tunable_set(tunables_find("INIT_TIMEOUT"), "1", SOURCE_PROGRAM);
    EXPECT_EQ(boot_spawn(b, &program, 1, "port", id), 0);
    EXPECT_EQ(boot_spawn(b, &program, 1, "port", id), MPI_ERR_SPAWN);
    EXPECT_EQ(write(server, late, sizeof(late) - 1), sizeof(late) - 1);
    EXPECT_EQ(boot_spawn(b, &program, 1, "port", id), 0);
    EXPECT_STR(id, "kvs_3");
    close_job(b);
}

int main(void)
{
    TEST_RUN(test_request_lines);
    TEST_RUN(test_line_breaks_are_refused);
    TEST_RUN(test_late_answer_is_discarded);
    return test_result();
}
