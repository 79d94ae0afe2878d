/* views.c: random views, written by one method and read by another, compared with a model of the file in
 * memory, for all methods: independent, collective with and without aggregators, with sieving, small
 * windows, contiguous memory and memory with gaps.
 * ranks: 1 2 5
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#define LIMIT 60000 /* bytes of the file that are compared */

static unsigned seed;

static unsigned random_below(unsigned n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 10) % n;
}

static unsigned char data_byte(int round, int rank, long at)
{
    return (unsigned char)(round * 7 + rank * 31 + at * 3 + at / 251 + 1);
}

/* A pattern of blocks of different lengths that alternate between ranks: no byte belongs to two ranks. All
 * ranks compute the same pattern. */
struct pattern {
    int nblocks, length[8][6], start[8][6]; /* by rank and block, in etypes */
    int extent;
};

static void make_pattern(struct pattern *p)
{
    int at = 0;
    p->nblocks = 1 + (int)random_below(6);
    for (int b = 0; b < p->nblocks; b++) {
        for (int r = 0; r < mpitest_size; r++) {
            at += random_below(3) ? 0 : (int)random_below(5); /* some blocks are preceded by a hole */
            p->start[r][b] = at;
            p->length[r][b] = 1 + (int)random_below(random_below(4) ? 4 : 40);
            at += p->length[r][b];
        }
    }
    p->extent = at + (int)random_below(3);
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
static long file_offset(const struct pattern *p, int rank, long disp, int unit, long position)
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

/* Contiguous memory, or every other element of a larger array. */
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

static int access_file(MPI_File f, int write, int method, long offset, char *buf, int count,
                       MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request;
    int rc;
    switch (method) {
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

static MPI_File open_with_random_hints(int round)
{
    MPI_Info info;
    char number[16];
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", cb[random_below(3)]);
    MPI_Info_set(info, "romio_cb_read", cb[random_below(3)]);
    MPI_Info_set(info, "romio_ds_read", cb[random_below(3)]);
    MPI_Info_set(info, "romio_ds_write", round % 4 == 3 ? "enable" : "disable");
    snprintf(number, sizeof(number), "%d", random_below(2) ? 4096 : 1 << 20);
    MPI_Info_set(info, "cb_buffer_size", number);
    MPI_Info_set(info, "ind_rd_buffer_size", number);
    snprintf(number, sizeof(number), "%u", 1 + random_below((unsigned)mpitest_size));
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
            const long at = file_offset(p, r, disp, unit, offset * unit + i);
            if (at < LIMIT)
                want[at] = data_byte(round, r, i);
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
    EXPECT_EQ(get_count(&status, MPI_BYTE), size < LIMIT ? size : LIMIT);
    EXPECT(memcmp(want, got, LIMIT) == 0);
}

static void fill_data(unsigned char *buf, int round, int count, int unit, int gaps)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < unit; k++)
            buf[i * unit * (gaps ? 2 : 1) + k] = data_byte(round, mpitest_rank, (long)i * unit + k);
}

static void test_random_view(int round)
{
    static unsigned char out[65536], in[65536];
    struct pattern p;
    int counts[8], gaps_out, gaps_in, mine_gaps;
    MPI_Status status;
    MPI_File f = open_with_random_hints(round);
    MPI_Datatype etype = random_below(2) ? MPI_INT : MPI_BYTE;
    const int unit = etype == MPI_INT ? 4 : 1;
    make_pattern(&p);
    const long disp = random_below(50), offset = random_below(30);
    for (int r = 0; r < mpitest_size; r++)
        counts[r] = random_below(5) ? (int)random_below(2000) : 0;
    const int way_out = (int)random_below(5), way_in = (int)random_below(5);
    gaps_out = (int)random_below(2);
    gaps_in = (int)random_below(2);
    mine_gaps = (gaps_out + mpitest_rank) % 2; /* ranks may use different memory types */
    const int count = counts[mpitest_rank];
    MPI_Datatype filetype = file_type(&p, etype), memory = memory_type(etype, mine_gaps);
    MPI_Datatype memory_in = memory_type(etype, gaps_in);
    EXPECT_EQ(MPI_File_set_view(f, disp, etype, filetype, "native", MPI_INFO_NULL), 0);
    fill_data(out, round, count, unit, mine_gaps);
    EXPECT_EQ(access_file(f, 1, way_out, offset, (char *)out, count, memory, &status), 0);
    EXPECT_EQ(get_count(&status, etype), count);
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(in, 0, sizeof(in));
    memset(out, 0, sizeof(out));
    fill_data(out, round, count, unit, gaps_in);
    EXPECT_EQ(access_file(f, 0, way_in, offset, (char *)in, count, memory_in, &status), 0);
    EXPECT_EQ(get_count(&status, etype), count);
    EXPECT(memcmp(in, out, sizeof(in)) == 0);
    check_file(f, round, &p, disp, unit, offset, counts);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    MPI_File_close(&f);
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory);
    MPI_Type_free(&memory_in);
    if (mpitest_failures)
        fprintf(stderr, "rank %d: failed in round %d, written by method %d, read by method %d\n",
                mpitest_rank, round, way_out, way_in);
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    for (int round = 0; round < 60 && !mpitest_failures; round++) {
        seed = 12345u + 977u * (unsigned)round;
        test_random_view(round);
        MPI_Allreduce(MPI_IN_PLACE, &mpitest_failures, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    return iotest_end();
}
