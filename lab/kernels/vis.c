/* vis.c: a task-parallel visualisation with traffic like the program of [Liu04 8.3.2]: rank 0 holds a volume
 * and sends blocks of it to the next free rank; the other ranks extract the surface on which the volume has a
 * given value and send its triangles back. Blocks are large messages of one size, answers large messages of
 * varying size from any rank. No suite publishes values for this kernel. The surface is that of a ball: its
 * triangles must form a closed surface (the sum of their normals is zero, so none is missing or doubled) and
 * enclose the ball's volume.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "vis.h"

enum { TAG_BLOCK = 1, TAG_ANSWER = 2, TAG_END = 3 };

static const struct problem {
    int n, block, frames;
} problems[CLASS_COUNT] = {
    [CLASS_S] = {32, 8, 4}, [CLASS_W] = {64, 16, 8}, [CLASS_A] = {128, 32, 12}, [CLASS_B] = {256, 32, 12}};

/* The scene at rank 0, in units of cells of the volume. */
struct scene {
    int n, block, frames; /* cells in each direction of the volume and of a block; number of surface values */
    int across;           /* blocks in each direction */
    float *volume;        /* distance of each of the (n + 1)^3 points from the centre */
    double normal[3], area, inside;
    double worst; /* largest relative error of all frames */
};

static double scene_radius(const struct scene *s, int frame)
{
    return s->n * (0.2 + 0.25 * (frame + 1) / s->frames);
}

static void scene_open(struct scene *s, struct kernel_run *run, const struct problem *p)
{
    *s = (struct scene){.n = p->n, .block = p->block, .frames = p->frames, .across = p->n / p->block};
    if (run->rank != 0)
        return;
    size_t points = (size_t)(p->n + 1);
    s->volume = kernel_alloc(run, points * points * points * sizeof(float));
    float *v = s->volume;
    /* The centre differs from all points, since many points would otherwise have equal values. */
    const double middle = p->n * 0.5 + 0.01;
    for (int z = 0; z <= p->n; z++)
        for (int y = 0; y <= p->n; y++)
            for (int x = 0; x <= p->n; x++)
                *v++ = (float)sqrt((x - middle) * (x - middle) + (y - middle) * (y - middle) +
                                   (z - middle) * (z - middle));
}

/* ---- Blocks ---- */

static void scene_copy_block(const struct scene *s, int task, struct vis_block *b)
{
    const int points = s->block + 1, row = s->n + 1;
    int in_frame = task % (s->across * s->across * s->across);
    b->value = (float)scene_radius(s, task / (s->across * s->across * s->across));
    for (int d = 0; d < 3; d++, in_frame /= s->across)
        b->first[d] = in_frame % s->across * s->block;
    for (int z = 0; z < points; z++)
        for (int y = 0; y < points; y++)
            memcpy(b->points + (z * points + y) * points,
                   s->volume +
                       ((size_t)(b->first[2] + z) * (size_t)row + (size_t)(b->first[1] + y)) * (size_t)row +
                       b->first[0],
                   (size_t)points * sizeof(float));
}

/* Adds the triangles, in cells relative to the centre of the volume, to the sums of the frame. */
static void scene_add_triangles(struct scene *s, const float *triangle, int count)
{
    const double middle = s->n * 0.5 + 0.01;
    for (int t = 0; t < count; t++, triangle += VIS_TRIANGLE) {
        double a[3], b[3], cross[3];
        for (int d = 0; d < 3; d++) {
            a[d] = (double)triangle[3 + d] - triangle[d];
            b[d] = (double)triangle[6 + d] - triangle[d];
        }
        for (int d = 0; d < 3; d++) {
            int e = (d + 1) % 3, f = (d + 2) % 3;
            cross[d] = (a[e] * b[f] - a[f] * b[e]) / 2;
            s->normal[d] += cross[d];
            s->inside += cross[d] * (triangle[d] - middle) / 3;
        }
        s->area += sqrt(cross[0] * cross[0] + cross[1] * cross[1] + cross[2] * cross[2]);
    }
}

/* Verifies a complete frame: the sum of the normals, and the enclosed volume against the ball's. Flat
 * triangles lie inside the ball by an eighth of their squared length (the diagonal of a cell) divided by the
 * radius. */
static void scene_verify_frame(struct scene *s, int frame, struct kernel_result *out)
{
    const double r = scene_radius(s, frame), ball = 4.0 / 3 * acos(-1.0) * r * r * r;
    const double open = (fabs(s->normal[0]) + fabs(s->normal[1]) + fabs(s->normal[2])) / s->area;
    const double lost = fabs(s->inside / ball - 1), bound = 3 * 3.0 / 8 / (r * r);
    if (!(open <= 1e-5) || !(lost <= bound))
        out->verified = false;
    if (!(open <= s->worst))
        s->worst = open;
    memset(s->normal, 0, sizeof(s->normal));
    s->area = s->inside = 0;
}

/* ---- Distribution of the blocks ---- */

static void vis_run_serial(struct scene *s, struct vis_block *b, float *triangles, struct kernel_result *out)
{
    const int tasks = s->across * s->across * s->across;
    for (int frame = 0; frame < s->frames; frame++) {
        for (int task = 0; task < tasks; task++) {
            scene_copy_block(s, frame * tasks + task, b);
            scene_add_triangles(s, triangles, vis_extract(b, s->block, triangles));
        }
        scene_verify_frame(s, frame, out);
    }
}

/* Sends each rank two blocks, so that the second has arrived when the first is processed, and then one
 * block for each answer. */
static void vis_distribute_frame(struct scene *s, struct kernel_run *run, struct vis_block *b,
                                 float *triangles, int frame)
{
    const int tasks = s->across * s->across * s->across, workers = run->size - 1;
    const int bytes = (int)vis_block_bytes(s->block), most = (int)vis_triangles_max(s->block) * VIS_TRIANGLE;
    int given = 0, done = 0;
    for (; given < tasks && given < 2 * workers; given++) {
        scene_copy_block(s, frame * tasks + given, b);
        MPI_Send(b, bytes, MPI_BYTE, 1 + given % workers, TAG_BLOCK, run->comm);
    }
    for (; done < tasks; done++) {
        MPI_Status status;
        int count;
        MPI_Recv(triangles, most, MPI_FLOAT, MPI_ANY_SOURCE, TAG_ANSWER, run->comm, &status);
        MPI_Get_count(&status, MPI_FLOAT, &count);
        if (given < tasks) {
            scene_copy_block(s, frame * tasks + given++, b);
            MPI_Send(b, bytes, MPI_BYTE, status.MPI_SOURCE, TAG_BLOCK, run->comm);
        }
        scene_add_triangles(s, triangles, count / VIS_TRIANGLE);
    }
}

/* Uses two blocks and two lists of triangles alternately: while a block is processed, the next block
 * arrives and the last answer is sent. */
static void vis_run_worker(const struct scene *s, struct kernel_run *run)
{
    const size_t bytes = vis_block_bytes(s->block),
                 most = vis_triangles_max(s->block) * VIS_TRIANGLE * sizeof(float);
    struct vis_block *block[2] = {kernel_alloc(run, bytes), kernel_alloc(run, bytes)};
    float *triangles[2] = {kernel_alloc(run, most), kernel_alloc(run, most)};
    MPI_Request came, sent[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    MPI_Irecv(block[0], (int)bytes, MPI_BYTE, 0, MPI_ANY_TAG, run->comm, &came);
    for (int i = 0;; i = !i) {
        MPI_Wait(&came, &status);
        if (status.MPI_TAG == TAG_END)
            break;
        MPI_Irecv(block[!i], (int)bytes, MPI_BYTE, 0, MPI_ANY_TAG, run->comm, &came);
        MPI_Wait(&sent[i], MPI_STATUS_IGNORE);
        int count = vis_extract(block[i], s->block, triangles[i]);
        MPI_Isend(triangles[i], count * VIS_TRIANGLE, MPI_FLOAT, 0, TAG_ANSWER, run->comm, &sent[i]);
    }
    MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
        free(block[i]);
        free(triangles[i]);
    }
}

static void vis_run_leader(struct scene *s, struct kernel_run *run, struct kernel_result *out)
{
    struct vis_block *b = kernel_alloc(run, vis_block_bytes(s->block));
    float *triangles = kernel_alloc(run, vis_triangles_max(s->block) * VIS_TRIANGLE * sizeof(float));
    if (run->size == 1)
        vis_run_serial(s, b, triangles, out);
    else {
        for (int frame = 0; frame < s->frames; frame++) {
            vis_distribute_frame(s, run, b, triangles, frame);
            scene_verify_frame(s, frame, out);
            kernel_progress(run, frame + 1, s->frames);
        }
        for (int worker = 1; worker < run->size; worker++)
            MPI_Send(NULL, 0, MPI_BYTE, worker, TAG_END, run->comm);
    }
    free(triangles);
    free(b);
}

static void vis_run(struct kernel_run *run, struct kernel_result *out)
{
    const struct problem *p = &problems[run->class];
    struct scene s;
    int verified;
    scene_open(&s, run, p);
    double started = kernel_start(run);
    if (run->rank == 0)
        vis_run_leader(&s, run, out);
    else
        vis_run_worker(&s, run);
    kernel_stop(run, started, out);
    out->amount = p->frames * pow(p->n, 3) * 1e-6;
    verified = out->verified;
    MPI_Bcast(&verified, 1, MPI_INT, 0, run->comm);
    out->verified = verified;
    out->error = s.worst;
    free(s.volume);
}

const struct kernel kernel_vis = {
    .name = "vis",
    .doc = "surfaces of a volume, extracted by the next free rank; large messages of unknown order and size",
    .unit = "Mcell/s",
    .ranks = "any number",
    .run = vis_run,
};
