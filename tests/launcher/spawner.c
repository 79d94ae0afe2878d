/* spawner.c: spawns two processes of itself, or connects to another job, as its argument selects.
 * tests/launcher/spawn.sh checks the behaviour of the launcher.
 *   hello          the children print a line and end normally
 *   hello HOST     the children run on that host and print its name
 *   fail           child 1 ends with status 7 after MPI_Init, while all others wait for it
 *   stay FIFO      all processes write "up" to the fifo and wait forever
 *   die            all parents are killed, and then the launcher kills their children
 *   leave          all parents are killed; the children end normally
 *   leave HOST     as `leave`, with children on that host
 *   lose HOST      all children, which run on that host, are killed; the parents end normally
 *   serve NAME     publishes a port, prints "published", accepts one client, adds the numbers that it sends
 *   ask NAME       looks the name up, connects, sends
 *   guess NAME     knows the address of the port but not its key: prints the result of MPI_Comm_connect
 *   secret         the children get a variable, SPAWNER_SECRET, and print which of the processes that started them, up
 *                  to the first, has it or the name of a port among its arguments, which every user can read
 *   universe       prints MPI_UNIVERSE_SIZE and MPI_APPNUM
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHILDREN = 2 };

static int rank, size;

static void wait_forever(void)
{
    int nothing;
    MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void report_start(const char *path)
{
    FILE *fifo = fopen(path, "w");
    if (!fifo)
        MPI_Abort(MPI_COMM_WORLD, 9);
    fprintf(fifo, "up\n");
    fclose(fifo);
}

static int is_spawned_child(char **argv)
{
    return strcmp(argv[0], "die") == 0 || strcmp(argv[0], "leave") == 0;
}

/* Under -enable-recovery: receives until every process of the other group has died and its receive has failed. */
static void expect_all_deaths(MPI_Comm comm)
{
    int nothing, others;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);
    MPI_Comm_remote_size(comm, &others);
    for (int i = 0; i < others; i++)
        MPI_Recv(&nothing, 1, MPI_INT, i, 1, comm, MPI_STATUS_IGNORE);
}

static void run_child_action(char **argv, MPI_Comm parent)
{
    expect_all_deaths(parent);
    if (strcmp(argv[0], "die") == 0)
        raise(SIGKILL);
    printf("child %d of %d goes on\n", rank, size);
}

static MPI_Info spawn_info(char **argv)
{
    MPI_Info info = MPI_INFO_NULL;
    if (strcmp(argv[0], "secret") == 0) {
        char line[64];
        snprintf(line, sizeof(line), "SPAWNER_SECRET=not-for-others-%d", (int)getpid());
        MPI_Info_create(&info);
        MPI_Info_set(info, "env", line);
    } else if (argv[1] && strcmp(argv[0], "stay") != 0) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "host", argv[1]);
    }
    return info;
}

static void spawn_and_wait(char **argv, const char *program)
{
    MPI_Comm children;
    MPI_Info info = spawn_info(argv);
    MPI_Comm_spawn(program, argv, CHILDREN, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    if (strcmp(argv[0], "stay") == 0)
        report_start(argv[1]);
    if (is_spawned_child(argv)) {
        MPI_Barrier(children);
        raise(SIGKILL);
    }
    if (strcmp(argv[0], "lose") == 0) {
        expect_all_deaths(children);
        printf("parent %d of %d goes on\n", rank, size);
        MPI_Comm_free(&children);
        return;
    }
    if (strcmp(argv[0], "hello") != 0 && strcmp(argv[0], "secret") != 0)
        wait_forever();
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
}

/* Reads the arguments of a process as one text; returns false if they cannot be read. */
static int read_arguments(int pid, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, size - 1, f) : 0;
    if (f)
        fclose(f);
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : ' ';
    text[n] = '\0';
    return f != NULL;
}

static int find_parent(int pid)
{
    char path[64], line[256];
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "PPid: %d", &parent) == 1)
            break;
    if (f)
        fclose(f);
    return parent;
}

static void check_ancestors(void)
{
    char text[65536];
    const char *secret = getenv("SPAWNER_SECRET");
    int leaks = 0, launchers = 0;
    for (int pid = (int)getpid(); pid > 1; pid = find_parent(pid)) {
        if (!read_arguments(pid, text, sizeof(text)))
            continue;
        launchers += strstr(text, "mpiexec") != NULL;
        if (!secret || strstr(text, secret) || strstr(text, "fishplate:2:")) {
            printf("child %d: process %d: %s\n", rank, pid, text);
            leaks++;
        }
    }
    printf("child %d: %d leaks%s\n", rank, leaks, launchers ? "" : ", and no mpiexec was found");
}

static void run_child(char **argv, MPI_Comm parent)
{
    if (is_spawned_child(argv)) {
        run_child_action(argv, parent);
        return;
    }
    if (strcmp(argv[0], "lose") == 0) {
        MPI_Barrier(parent);
        raise(SIGKILL);
    }
    if (strcmp(argv[0], "stay") == 0)
        report_start(argv[1]);
    if (strcmp(argv[0], "fail") == 0 && rank == 1)
        exit(7);
    if (strcmp(argv[0], "secret") == 0)
        check_ancestors();
    else if (strcmp(argv[0], "hello") != 0)
        wait_forever();
    else if (argv[1])
        printf("child %d of %d on %s\n", rank, size, getenv("FISHPLATE_HOST"));
    else
        printf("child %d of %d\n", rank, size);
    fflush(stdout);
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
}

static void serve_client(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm client;
    int clients, sum = 0, one;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(name, MPI_INFO_NULL, port);
        printf("published\n");
        fflush(stdout);
    }
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &client);
    MPI_Comm_remote_size(client, &clients);
    for (int i = 0; rank == 0 && i < clients; i++, sum += one)
        MPI_Recv(&one, 1, MPI_INT, i, 0, client, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&client);
    if (rank == 0) {
        MPI_Unpublish_name(name, MPI_INFO_NULL, port);
        MPI_Close_port(port);
        printf("sum %d\n", sum);
    }
}

static void connect_to_service(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm server;
    int value = rank + 1;
    if (rank == 0)
        MPI_Lookup_name(name, MPI_INFO_NULL, port);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
    MPI_Send(&value, 1, MPI_INT, 0, 0, server);
    MPI_Comm_disconnect(&server);
}

static void connect_without_key(const char *name)
{
    char port[MPI_MAX_PORT_NAME], *key;
    MPI_Comm server;
    int class;
    MPI_Lookup_name(name, MPI_INFO_NULL, port);
    key = strchr(strchr(port, ':') + 1, ':') + 1; /* the name of a port is fishplate:2:<key>:... */
    key[5] = key[5] == '0' ? '1' : '0';
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &server), &class);
    printf("%s\n", class == MPI_ERR_PORT ? "refused" : "let in");
}

static void print_universe(void)
{
    int *value, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    printf("universe %d", flag ? *value : -1);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
    printf(" program %d\n", flag ? *value : -1);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 9);
    if (parent != MPI_COMM_NULL)
        run_child(argv + 1, parent);
    else if (strcmp(argv[1], "serve") == 0)
        serve_client(argv[2]);
    else if (strcmp(argv[1], "ask") == 0)
        connect_to_service(argv[2]);
    else if (strcmp(argv[1], "guess") == 0)
        connect_without_key(argv[2]);
    else if (strcmp(argv[1], "universe") == 0)
        print_universe();
    else
        spawn_and_wait(argv + 1, argv[0]);
    MPI_Finalize();
    return 0;
}
