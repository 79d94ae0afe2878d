/* spawn_multiple.c: several programs in one call, info keys, and programs that cannot be started: the call
 * returns an error class and a message, does not hang, and the parents continue.
 *
 * ranks: 2
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/utsname.h>
#include <unistd.h>

#include "mpitest.h"

static void run_child(MPI_Comm parents)
{
    int *appnum, flag, rank;
    char here[1024] = "", facts[1200];
    const char *set = getenv("SPAWN_TEST");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
    EXPECT(flag);
    EXPECT(getcwd(here, sizeof(here)) != NULL);
    snprintf(facts, sizeof(facts), "%d %s %s", *appnum, *appnum == 1 ? here : "-", set ? set : "-");
    MPI_Send(facts, (int)strlen(facts) + 1, MPI_CHAR, 0, rank, parents);
    MPI_Comm_disconnect(&parents);
}

/* Spawns the first program, which is found by the info key `path`, once, and the second program up to three
 * times; `soft` permits two processes of the second program. */
static void test_programs(char *self)
{
    char *name = strrchr(self, '/') ? strrchr(self, '/') + 1 : self, *commands[] = {name, self},
         folders[1200];
    int most[] = {1, 3}, codes[4] = {-1, -1, -1, -1}, size;
    static const char *const wanted[] = {"0 - -", "1 / two words", "1 / two words"};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm children;
    char file[] = "/tmp/fishplate-spawn-XXXXXX";
    FILE *keys = fdopen(mkstemp(file), "w");
    struct utsname machine;
    uname(&machine);
    fprintf(keys, "# more keys\n\n wdir = / \nsoft=1\n"); /* `soft` is overridden below */
    fclose(keys);
    snprintf(folders, sizeof(folders), "/nowhere:%.*s", name > self ? (int)(name - self - 1) : 1,
             name > self ? self : ".");
    MPI_Info_create(&infos[0]);
    MPI_Info_set(infos[0], "path", folders);
    /* Without this key the program would be found in the job's working directory. */
    MPI_Info_set(infos[0], "wdir", "/");
    MPI_Info_create(&infos[1]);
    MPI_Info_set(infos[1], "env", "SPAWN_TEST=two words\nSPAWN_OTHER=1");
    MPI_Info_set(infos[1], "soft", "0:2,9");
    MPI_Info_set(infos[1], "file", file);
    MPI_Info_set(infos[1], "arch", machine.machine);
    /* A rank may ignore the error codes although other ranks receive them. */
    MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, most, infos, 1, MPI_COMM_WORLD, &children,
                            mpitest_rank == 0 ? MPI_ERRCODES_IGNORE : codes);
    unlink(file);
    MPI_Info_free(&infos[0]);
    MPI_Info_free(&infos[1]);
    MPI_Comm_remote_size(children, &size);
    EXPECT_EQ(size, 3);
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(codes[i], mpitest_rank == 0 ? -1 : i < 3 ? MPI_SUCCESS : MPI_ERR_SPAWN);
    for (int i = 0; i < size && mpitest_rank == 0; i++) {
        char facts[1200];
        MPI_Recv(facts, sizeof(facts), MPI_CHAR, i, i, children, MPI_STATUS_IGNORE);
        EXPECT(strcmp(facts, wanted[i]) == 0);
    }
    MPI_Comm_disconnect(&children);
}

/* Expects MPI_Comm_spawn to fail with class `wanted` and a message that contains `sentence`. key: an info
 * key with `value`, or NULL. */
static void expect_refusal(const char *program, int wanted, const char *key, const char *value,
                           const char *sentence)
{
    MPI_Comm children;
    MPI_Info info = MPI_INFO_NULL;
    char text[MPI_MAX_ERROR_STRING];
    int codes[2] = {0, 0}, class, len;
    if (key) {
        MPI_Info_create(&info);
        MPI_Info_set(info, key, value);
    }
    int rc = MPI_Comm_spawn(program, MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &children, codes);
    if (key)
        MPI_Info_free(&info);
    MPI_Error_class(rc, &class);
    EXPECT_EQ(class, wanted);
    EXPECT(children == MPI_COMM_NULL && codes[0] != MPI_SUCCESS && codes[1] != MPI_SUCCESS);
    MPI_Error_string(rc, text, &len);
    if (!strstr(text, sentence))
        EXPECT(strcmp(text, sentence) == 0);
}

/* Wrong arguments of the root are an error at every rank. */
static void test_wrong_arguments(char *self)
{
    char *commands[] = {self};
    int most[] = {1};
    MPI_Info infos[] = {MPI_INFO_NULL}, wrong[] = {(MPI_Info)MPI_COMM_WORLD};
    MPI_Comm c;
    EXPECT_EQ(MPI_Comm_spawn_multiple(1, NULL, MPI_ARGVS_NULL, most, infos, 0, MPI_COMM_WORLD, &c, NULL),
              MPI_ERR_ARG);
    EXPECT_EQ(MPI_Comm_spawn_multiple(0, commands, MPI_ARGVS_NULL, most, infos, 0, MPI_COMM_WORLD, &c, NULL),
              MPI_ERR_ARG);
    EXPECT_EQ(MPI_Comm_spawn_multiple(1, commands, MPI_ARGVS_NULL, most, wrong, 0, MPI_COMM_WORLD, &c, NULL),
              MPI_ERR_INFO);
    EXPECT(c == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    MPI_Comm up;
    mpitest_begin(&argc, &argv);
    MPI_Comm_get_parent(&up);
    if (up != MPI_COMM_NULL) {
        run_child(up);
        return mpitest_end();
    }
    test_programs(argv[0]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    expect_refusal("/no/such/program", MPI_ERR_SPAWN, NULL, NULL, "/no/such/program");
    expect_refusal("true", MPI_ERR_SPAWN, NULL, NULL, "without calling MPI_Init");
    expect_refusal(argv[0], MPI_ERR_SPAWN, "arch", "pdp11", "pdp11");
    expect_refusal(argv[0], MPI_ERR_INFO_VALUE, "file", "/no/such/file", "/no/such/file");
    expect_refusal(argv[0], MPI_ERR_INFO_VALUE, "file", "/proc/self/comm", "is not \"key = value\"");
    test_wrong_arguments(argv[0]);
    return mpitest_end();
}
