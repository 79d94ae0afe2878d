/* views.c: random views, written in one way and read in another, beside a model of the file in memory. Every way is tried:
 * independent, collective by aggregators or without, with sieving, small windows, memory in one block or in pieces.
 * ranks: 1 2 5
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#define LIMIT 60000 /* bytes of the file that are compared */

static unsigned seed;

static unsigned views_roll(unsigned n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 10) % n;
}

static unsigned char byte_at(int round, int rank, long at)
{
    return (unsigned char)(round * 7 + rank * 31 + at * 3 + at / 251 + 1);
}

/* The ranks take turns in blocks of different lengths: no byte belongs to two. The same numbers at all ranks. */
struct pattern {
    int nblocks, length[8][6], start[8][6]; /* by rank and block, in etypes */
    int extent;
};

static void make_pattern(struct pattern *p)
{
    int at = 0;
    p->nblocks = 1 + (int)views_roll(6);
    for (int b = 0; b < p->nblocks; b++) {
        for (int r = 0; r < mpitest_size; r++) {
            at += views_roll(3) ? 0 : (int)views_roll(5); /* sometimes a hole */
            p->start[r][b] = at;
            p->length[r][b] = 1 + (int)views_roll(views_roll(4) ? 4 : 40);
            at += p->length[r][b];
        }
    }
    p->extent = at + (int)views_roll(3);
}

static MPI_Datatype file_type(const struct pattern *p, MPI_Datatype etype)
{
    MPI_Datatype blocks, type;
    MPI_Aint lb, extent;
    MPI_Type_get_extent(etype, &lb, &extent);
    MPI_Type_indexed(p->nblocks, p->length[mpitest_rank], p->start[mpitest_rank], etype, &blocks);
    MPI_Type_create_resized(blocks, 0, p->extent * extent, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&blocks);
    return type;
}

/* The file offset of a byte of a rank's stream. */
static long views_place(const struct pattern *p, int rank, long disp, int unit, long position)
{
    long tile_bytes = 0;
    for (int b = 0; b < p->nblocks; b++)
        tile_bytes += (long)p->length[rank][b] * unit;
    long in = position % tile_bytes, at = disp + position / tile_bytes * p->extent * unit;
    for (int b = 0; b < p->nblocks; b++) {
        const long n = (long)p->length[rank][b] * unit;
        if (in < n)
            return at + (long)p->start[rank][b] * unit + in;
        in -= n;
    }
    return -1;
}

/* Memory in one block, or every other element of a larger array. */
static MPI_Datatype memory_type(MPI_Datatype etype, int gaps)
{
    MPI_Datatype type = etype;
    int unit;
    MPI_Type_size(etype, &unit);
    if (gaps)
        MPI_Type_create_resized(etype, 0, 2 * unit, &type);
    else
        MPI_Type_dup(etype, &type);
    MPI_Type_commit(&type);
    return type;
}

static int views_move(MPI_File f, int write, int way, long offset, char *buf, int count, MPI_Datatype type,
                      MPI_Status *status)
{
    MPI_Request request;
    int rc;
    switch (way) {
    case 0:
        return write ? MPI_File_write_at(f, offset, buf, count, type, status)
                     : MPI_File_read_at(f, offset, buf, count, type, status);
    case 1:
        return write ? MPI_File_write_at_all(f, offset, buf, count, type, status)
                     : MPI_File_read_at_all(f, offset, buf, count, type, status);
    case 2:
        MPI_File_seek(f, offset, MPI_SEEK_SET);
        return write ? MPI_File_write_all(f, buf, count, type, status)
                     : MPI_File_read_all(f, buf, count, type, status);
    case 3:
        rc = write ? MPI_File_iwrite_at_all(f, offset, buf, count, type, &request)
                   : MPI_File_iread_at_all(f, offset, buf, count, type, &request);
        return rc ? rc : MPI_Wait(&request, status);
    default:
        rc = write ? MPI_File_write_at_all_begin(f, offset, buf, count, type)
                   : MPI_File_read_at_all_begin(f, offset, buf, count, type);
        if (rc)
            return rc;
        return write ? MPI_File_write_at_all_end(f, buf, status) : MPI_File_read_at_all_end(f, buf, status);
    }
}

static const char *const cb[] = {"automatic", "enable", "disable"};

static MPI_File open_some(int round)
{
    MPI_Info info;
    char number[16];
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", cb[views_roll(3)]);
    MPI_Info_set(info, "romio_cb_read", cb[views_roll(3)]);
    MPI_Info_set(info, "romio_ds_read", cb[views_roll(3)]);
    MPI_Info_set(info, "romio_ds_write", round % 4 == 3 ? "enable" : "disable");
    snprintf(number, sizeof(number), "%d", views_roll(2) ? 4096 : 1 << 20);
    MPI_Info_set(info, "cb_buffer_size", number);
    MPI_Info_set(info, "ind_rd_buffer_size", number);
    snprintf(number, sizeof(number), "%u", 1 + views_roll((unsigned)mpitest_size));
    MPI_Info_set(info, "cb_nodes", number);
    MPI_File f = iotest_open(MPI_COMM_WORLD, info);
    MPI_Info_free(&info);
    return f;
}

/* Checks the file for the data of all ranks. Bytes that no rank wrote are 0. */
static void check_file(MPI_File f, int round, const struct pattern *p, long disp, int unit, long offset,
                       const int *counts)
{
    static unsigned char want[LIMIT], got[LIMIT];
    long size = 0;
    memset(want, 0, sizeof(want));
    for (int r = 0; r < mpitest_size; r++) {
        for (long i = 0; i < (long)counts[r] * unit; i++) {
            const long at = views_place(p, r, disp, unit, offset * unit + i);
            if (at < LIMIT)
                want[at] = byte_at(round, r, i);
            size = at + 1 > size ? at + 1 : size;
        }
    }
    MPI_Offset reported;
    MPI_Status status;
    MPI_File_get_size(f, &reported);
    EXPECT_EQ(reported, size);
    MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    memset(got, 0, sizeof(got));
    EXPECT_EQ(MPI_File_read_at(f, 0, got, LIMIT, MPI_BYTE, &status), 0);
    EXPECT_EQ(count_of(&status, MPI_BYTE), size < LIMIT ? size : LIMIT);
    EXPECT(memcmp(want, got, LIMIT) == 0);
}

static void views_fill(unsigned char *buf, int round, int count, int unit, int gaps)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < unit; k++)
            buf[i * unit * (gaps ? 2 : 1) + k] = byte_at(round, mpitest_rank, (long)i * unit + k);
}

static void try_one(int round)
{
    static unsigned char out[65536], in[65536];
    struct pattern p;
    int counts[8], gaps_out, gaps_in, mine_gaps;
    MPI_Status status;
    MPI_File f = open_some(round);
    MPI_Datatype etype = views_roll(2) ? MPI_INT : MPI_BYTE;
    const int unit = etype == MPI_INT ? 4 : 1;
    make_pattern(&p);
    const long disp = views_roll(50), offset = views_roll(30);
    for (int r = 0; r < mpitest_size; r++)
        counts[r] = views_roll(5) ? (int)views_roll(2000) : 0;
    const int way_out = (int)views_roll(5), way_in = (int)views_roll(5);
    gaps_out = (int)views_roll(2);
    gaps_in = (int)views_roll(2);
    mine_gaps = (gaps_out + mpitest_rank) % 2; /* ranks may differ in how their memory looks */
    const int count = counts[mpitest_rank];
    MPI_Datatype filetype = file_type(&p, etype), memory = memory_type(etype, mine_gaps);
    MPI_Datatype memory_in = memory_type(etype, gaps_in);
    EXPECT_EQ(MPI_File_set_view(f, disp, etype, filetype, "native", MPI_INFO_NULL), 0);
    views_fill(out, round, count, unit, mine_gaps);
    EXPECT_EQ(views_move(f, 1, way_out, offset, (char *)out, count, memory, &status), 0);
    EXPECT_EQ(count_of(&status, etype), count);
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(in, 0, sizeof(in));
    memset(out, 0, sizeof(out));
    views_fill(out, round, count, unit, gaps_in);
    EXPECT_EQ(views_move(f, 0, way_in, offset, (char *)in, count, memory_in, &status), 0);
    EXPECT_EQ(count_of(&status, etype), count);
    EXPECT(memcmp(in, out, sizeof(in)) == 0);
    check_file(f, round, &p, disp, unit, offset, counts);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    MPI_File_close(&f);
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory);
    MPI_Type_free(&memory_in);
    if (mpitest_failures)
        fprintf(stderr, "rank %d: round %d, methods %d and %d\n", mpitest_rank, round, way_out, way_in);
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    for (int round = 0; round < 60 && !mpitest_failures; round++) {
        seed = 12345u + 977u * (unsigned)round;
        try_one(round);
        MPI_Allreduce(MPI_IN_PLACE, &mpitest_failures, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    return iotest_end();
}
