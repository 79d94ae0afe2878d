/* names_folder.c: the folder of published names is repeatedly exchanged for a folder that others can
 * write, while names are looked up and published: entries of that folder are never returned, and nothing
 * is written there.
 *
 * ranks: 1
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpitest.h"

#define LOOKUPS 5000 /* default of the first argument */

static atomic_int done;
static char top[] = "/tmp/fishplate-names-test-XXXXXX", own[PATH_MAX], open_to_all[PATH_MAX];

static void *exchange_folders(void *unused)
{
    (void)unused;
    while (!done)
        renameat2(AT_FDCWD, own, AT_FDCWD, open_to_all, RENAME_EXCHANGE);
    return NULL;
}

/* Copies the only file of the first folder to the second one, with another port. */
static void plant_false_port(const char *from, const char *to)
{
    char path[2 * PATH_MAX], line[512] = "";
    DIR *d = opendir(from);
    struct dirent *e = NULL;
    while (d && (e = readdir(d)) && e->d_name[0] == '.')
        ;
    EXPECT(e != NULL);
    if (!e)
        return;
    snprintf(path, sizeof(path), "%s/%s", from, e->d_name);
    FILE *f = fopen(path, "r");
    EXPECT(f && fgets(line, sizeof(line), f));
    fclose(f);
    snprintf(path, sizeof(path), "%s/%s", to, e->d_name);
    f = fopen(path, "w");
    EXPECT(f && fprintf(f, "%sfalse port\n", line) > 0 && fclose(f) == 0);
    closedir(d);
}

static int count_files(const char *folder, int remove)
{
    char path[2 * PATH_MAX];
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            n++;
            snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
            if (remove)
                unlink(path);
        }
    if (d)
        closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    EXPECT(mkdtemp(top) != NULL);
    snprintf(own, sizeof(own), "%s/own", top);
    snprintf(open_to_all, sizeof(open_to_all), "%s/open", top);
    EXPECT(mkdir(open_to_all, 0700) == 0 && chmod(open_to_all, 0777) == 0);
    setenv("FISHPLATE_NAME_DIR", own, 1);
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    char found[MPI_MAX_PORT_NAME];
    EXPECT_EQ(MPI_Publish_name("service", MPI_INFO_NULL, "true port"), MPI_SUCCESS);
    plant_false_port(own, open_to_all);

    /* The file that a process with the same pid on another host writes before it links the name. */
    static const char hash[] =
        "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4"; /* SHA-256 of the name "second" */
    char other[2 * PATH_MAX];
    snprintf(other, sizeof(other), "%s/%s.%d", own, hash, (int)getpid());
    EXPECT(mknod(other, S_IFREG | 0600, 0) == 0);
    EXPECT_EQ(MPI_Publish_name("second", MPI_INFO_NULL, "second port"), MPI_SUCCESS);
    EXPECT_EQ(MPI_Unpublish_name("second", MPI_INFO_NULL, "second port"), MPI_SUCCESS);
    EXPECT(unlink(other) == 0);

    pthread_t thread;
    int right = 0, wrong = 0, published = 0;
    pthread_create(&thread, NULL, exchange_folders, NULL);
    const int lookups = argc > 1 ? atoi(argv[1]) : LOOKUPS;
    for (int i = 0; i < lookups; i++) {
        if (MPI_Lookup_name("service", MPI_INFO_NULL, found) != MPI_SUCCESS)
            continue;
        right += strcmp(found, "true port") == 0;
        wrong += strcmp(found, "true port") != 0;
    }
    for (int i = 0; i < LOOKUPS / 10; i++) {
        char service[32];
        snprintf(service, sizeof(service), "other %d", i);
        published += MPI_Publish_name(service, MPI_INFO_NULL, "other port") == MPI_SUCCESS;
    }
    done = 1;
    pthread_join(thread, NULL);
    printf("%d lookups and %d publications of names succeeded, %d lookups returned the other folder's port\n",
           right, published, wrong);
    EXPECT_EQ(wrong, 0);

    struct stat s;
    EXPECT(stat(own, &s) == 0);
    const int exchanged = (s.st_mode & 0777) == 0777;
    EXPECT_EQ(count_files(exchanged ? own : open_to_all, 1), 1);
    EXPECT_EQ(count_files(exchanged ? open_to_all : own, 1), 1 + published);
    rmdir(own);
    rmdir(open_to_all);
    EXPECT(rmdir(top) == 0);
    return mpitest_end();
}
