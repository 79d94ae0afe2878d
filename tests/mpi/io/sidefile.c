/* sidefile.c: the side file that holds a shared pointer between nodes, in a folder that others can write:
 * a foreign file under its name is neither changed nor truncated, and a file left by a killed job is
 * removed by the next job.
 * ranks: 4
 * nodes: only 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <sys/stat.h>

#include "iotest.h"

#define PRECIOUS "precious, and longer than any pointer that could be stored here"

/* Stores the name of the n-th side file of the test's file in `out`; returns the number of side files. */
static int find_side_file(int n, char *out, size_t size)
{
    char prefix[600];
    int found = 0;
    DIR *d = opendir(".");
    snprintf(prefix, sizeof(prefix), ".%s.shared-", iotest_name);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && found++ == n)
            snprintf(out, size, "%s", e->d_name);
    if (d)
        closedir(d);
    return found;
}

static void copy_file(const char *from, const char *to)
{
    char bytes[256];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    EXPECT(in && out);
    if (in && out)
        fwrite(bytes, 1, fread(bytes, 1, sizeof(bytes), in), out);
    if (in)
        fclose(in);
    if (out)
        fclose(out);
    chmod(to, 0600);
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    EXPECT(f && fputs(text, f) >= 0 && fclose(f) == 0);
    chmod(name, 0600);
}

static void expect_foreign_file_unchanged(const char *name)
{
    char text[256] = "";
    FILE *f = fopen(name, "r");
    EXPECT(f && fgets(text, sizeof(text), f));
    EXPECT(strcmp(text, PRECIOUS) == 0);
    if (f)
        fclose(f);
}

static MPI_File open_file(void)
{
    MPI_File f;
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, iotest_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f),
              0);
    return f;
}

/* Replaces the side file by another file of this user after rank 0 has used the pointer and before any
 * other rank has. */
static void check_replaced_side_file(int with_link)
{
    char side[600] = "", kept[620];
    struct stat st;
    char byte = 'x';
    MPI_File f = open_file();
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), 0);
    if (mpitest_rank == 0) {
        EXPECT_EQ(MPI_File_write_shared(f, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), 0);
        EXPECT_EQ(find_side_file(0, side, sizeof(side)), 1);
        EXPECT(stat(side, &st) == 0 && (st.st_mode & 0777) == 0600);
        snprintf(kept, sizeof(kept), "%s.kept", side);
        EXPECT_EQ(unlink(side), 0);
        write_text(with_link ? kept : side, PRECIOUS);
        if (with_link)
            EXPECT_EQ(symlink(kept, side), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank != 0)
        EXPECT_CLASS(MPI_File_write_shared(f, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO);
    MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    if (mpitest_rank != 0)
        EXPECT_CLASS(MPI_File_write_shared(f, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        expect_foreign_file_unchanged(with_link ? kept : side);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&f);
    if (mpitest_rank == 0 && with_link)
        unlink(kept);
}

/* Tests side files of killed jobs (here a copy): the first use of another shared pointer removes an unused
 * side file and retains one that is in use. */
static void check_side_files_of_killed_jobs(void)
{
    char side[600] = "", left[600];
    MPI_Offset at = -1;
    MPI_File f = open_file(), g = open_file();
    EXPECT_EQ(MPI_File_seek_shared(f, 7, MPI_SEEK_SET), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0) {
        EXPECT_EQ(find_side_file(0, side, sizeof(side)), 1);
        snprintf(left, sizeof(left), ".%s.shared-left", iotest_name);
        copy_file(side, left);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_seek_shared(g, 9, MPI_SEEK_SET), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0) {
        EXPECT_EQ(find_side_file(0, side, sizeof(side)), 2);
        EXPECT(access(left, F_OK) != 0);
    }
    EXPECT_EQ(MPI_File_get_position_shared(f, &at), 0);
    EXPECT_EQ(at, 7);
    EXPECT_EQ(MPI_File_get_position_shared(g, &at), 0);
    EXPECT_EQ(at, 9);
    /* A new view resets the shared pointer, at the same position for all ranks. */
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_get_position_shared(f, &at), 0);
    EXPECT_EQ(at, 0);
    EXPECT_EQ(MPI_File_close(&f), 0);
    EXPECT_EQ(MPI_File_close(&g), 0);
    if (mpitest_rank == 0)
        EXPECT_EQ(find_side_file(0, side, sizeof(side)), 0);
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    check_replaced_side_file(0);
    check_replaced_side_file(1);
    check_side_files_of_killed_jobs();
    return iotest_end();
}
