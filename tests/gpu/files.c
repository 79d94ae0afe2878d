/* files.c: reads and writes of files with buffers in all kinds of memory, compared with the same accesses
 * in host memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "area.h"

#define GUARD 64

static int rank, size, errors;
static unsigned seeds;

enum form { INDEPENDENT, COLLECTIVE, NONBLOCKING, NONBLOCKING_COLLECTIVE, SPLIT, FORMS };
static const char *const forms[FORMS] = {"independent", "collective", "nonblocking", "nonblocking collective",
                                         "split"};

static int access_file(enum form form, int write, MPI_File file, void *buffer, int count, MPI_Datatype type)
{
    MPI_Request q;
    MPI_Status s;
    int bytes;
    switch (form) {
    case INDEPENDENT:
        (write ? MPI_File_write_at(file, 0, buffer, count, type, &s)
               : MPI_File_read_at(file, 0, buffer, count, type, &s));
        break;
    case COLLECTIVE:
        (write ? MPI_File_write_at_all(file, 0, buffer, count, type, &s)
               : MPI_File_read_at_all(file, 0, buffer, count, type, &s));
        break;
    case NONBLOCKING:
        (write ? MPI_File_iwrite_at(file, 0, buffer, count, type, &q)
               : MPI_File_iread_at(file, 0, buffer, count, type, &q));
        MPI_Wait(&q, &s);
        break;
    case NONBLOCKING_COLLECTIVE:
        (write ? MPI_File_iwrite_at_all(file, 0, buffer, count, type, &q)
               : MPI_File_iread_at_all(file, 0, buffer, count, type, &q));
        MPI_Wait(&q, &s);
        break;
    default:
        if (write) {
            MPI_File_write_at_all_begin(file, 0, buffer, count, type);
            MPI_File_write_at_all_end(file, buffer, &s);
        } else {
            MPI_File_read_at_all_begin(file, 0, buffer, count, type);
            MPI_File_read_at_all_end(file, buffer, &s);
        }
    }
    MPI_Get_count(&s, MPI_BYTE, &bytes);
    return bytes;
}

/* Writes `count` elements and reads one more: the last element of the buffer must not change. */
static void test_access(const char *name, enum area_kind kind, enum form form, const char *representation,
                        int count, MPI_Datatype type)
{
    MPI_Aint lb, extent;
    MPI_File file;
    char what[160];
    int got[2], wrote[2], bytes;
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_size(type, &bytes);
    const size_t room = (size_t)(extent * (count + 2)) + 2 * GUARD;
    struct area out[2] = {area_alloc(kind, room), area_alloc(AREA_HOST, room)};
    struct area in[2] = {area_alloc(kind, room), area_alloc(AREA_HOST, room)};
    const unsigned seed = 100 * ++seeds + (unsigned)rank;
    char *found = malloc(room);
    for (int i = 0; i < 2; i++) {
        area_fill(&out[i], seed);
        area_fill(&in[i], seed + 50);
        if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) !=
            MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_File_set_size(file, 0);
        MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, representation, MPI_INFO_NULL);
        wrote[i] = access_file(form, 1, file, out[i].at + GUARD, count, type);
        got[i] = access_file(form, 0, file, in[i].at + GUARD, count + 1, type);
        MPI_File_close(&file);
    }
    snprintf(what, sizeof(what), "%s, %s memory, %s, %d elements of %d bytes", forms[form], area_names[kind],
             representation, count, bytes);
    if (got[0] != got[1] || wrote[0] != wrote[1] || got[0] != count * bytes) {
        printf("rank %d: %s: wrote %d bytes and read %d, in host memory %d and %d\n", rank, what, wrote[0],
               got[0], wrote[1], got[1]);
        errors++;
    }
    area_read(&in[0], 0, found, room);
    if (memcmp(found, in[1].at, room) != 0) {
        printf("rank %d: %s: the data differs from what was read into host memory\n", rank, what);
        errors++;
    }
    for (int i = 0; i < 2; i++) {
        area_free(&in[i]);
        area_free(&out[i]);
    }
    free(found);
}

/* All ranks write interleaved blocks of one file through aggregators. */
static void test_collective_blocks(const char *name, enum area_kind kind)
{
    enum { COUNT = 4096 };
    MPI_Datatype turns;
    MPI_File file;
    struct area out = area_alloc(kind, COUNT * 8), in = area_alloc(kind, COUNT * 8);
    char *wanted = malloc(COUNT * 8), *found = malloc(COUNT * 8);
    MPI_Type_vector(COUNT, 1, size, MPI_DOUBLE, &turns);
    MPI_Type_commit(&turns);
    area_fill(&out, (unsigned)rank);
    area_fill(&in, 77);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 8 * rank, MPI_DOUBLE, turns, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, out.at, COUNT, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, 0, in.at, COUNT, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    area_read(&out, 0, wanted, COUNT * 8);
    area_read(&in, 0, found, COUNT * 8);
    if (memcmp(wanted, found, COUNT * 8) != 0) {
        printf("rank %d: wrong data in a file that all ranks wrote from %s memory\n", rank, area_names[kind]);
        errors++;
    }
    MPI_Type_free(&turns);
    area_free(&out);
    area_free(&in);
    free(wanted);
    free(found);
}

int main(int argc, char **argv)
{
    MPI_Datatype columns;
    char name[64] = "/tmp/fishplate-gpu-files-XXXXXX", own[96];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    if (rank == 0) {
        const int fd = mkstemp(name);
        if (fd < 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
        close(fd);
    }
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(own, sizeof(own), "%s.%d", name, rank);
    MPI_Type_vector(3, 2, 4, MPI_INT, &columns);
    MPI_Type_commit(&columns);
    for (int kind = 0; kind < AREA_KINDS; kind++) {
        for (int form = 0; form < FORMS; form++) {
            test_access(own, (enum area_kind)kind, (enum form)form, "native", 50, columns);
            test_access(own, (enum area_kind)kind, (enum form)form, "external32", 300, MPI_DOUBLE);
            test_access(own, (enum area_kind)kind, (enum form)form, "native", 100000, MPI_DOUBLE);
        }
        test_collective_blocks(name, (enum area_kind)kind);
    }
    unlink(own);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(name);
    MPI_Type_free(&columns);
    MPI_Finalize();
    return errors ? 1 : 0;
}
