/* dt.c: data traffic: arrays flow through a graph of tasks, from sources through comparators to sinks
 * [NPB33]. Three graphs: black hole (many sources, a tree, one sink), white hole (the reverse), shuffle (a
 * butterfly). The suite needs a rank for each task; here the tasks are assigned to any number of ranks in
 * turn. The arithmetic reproduces the suite bit by bit because the published checksums are integers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

enum { FIELDS = 4, DEGREE_MAX = 4, LAYERS_MAX = 6, TASKS_MAX = 32 * LAYERS_MAX };
enum graph { BLACK_HOLE, WHITE_HOLE, SHUFFLE, GRAPHS };

static const struct {
    int samples, deviation, sources;
    double checksum[GRAPHS];
} classes[CLASS_COUNT] = {
    [CLASS_S] = {1728, 128, 4, {30892725.0, 67349758.0, 58875767.0}},
    [CLASS_W] = {1728 * 8, 128 * 2, 8, {4102461.0, 204280762.0, 186944764.0}},
    [CLASS_A] = {1728 * 64, 128 * 4, 16, {17809491.0, 1289925229.0, 610856482.0}},
    [CLASS_B] = {1728 * 512, 128 * 8, 32, {4317114.0, 7877279917.0, 1836863082.0}},
};

struct task {
    int inputs, outputs;
    int from[DEGREE_MAX], to[DEGREE_MAX];
};

/* Every arc leads from a lower task number to a higher one, so processing the tasks in order cannot
 * deadlock. */
struct traffic_graph {
    struct task tasks[TASKS_MAX];
    int count, arcs;
};

struct features {
    int length; /* count of numbers; a multiple of FIELDS if a source produced them */
    double *values;
};

/* The sends of one rank and their buffers, which stay allocated until the end of the run. */
struct sent {
    MPI_Request requests[2 * TASKS_MAX * DEGREE_MAX];
    struct features features[TASKS_MAX];
    int request_count, feature_count;
};

static void graph_add_arc(struct traffic_graph *g, int from, int to)
{
    struct task *tail = &g->tasks[from], *head = &g->tasks[to];
    tail->to[tail->outputs++] = to;
    head->from[head->inputs++] = from;
    g->arcs++;
}

/* Layers of a tree of degree four, the largest layer first. */
static void graph_build_black_hole(struct traffic_graph *g, int sources)
{
    int first = 0, width = sources;
    g->count = sources;
    while (width > 1) {
        const int next = g->count, next_width = (width + DEGREE_MAX - 1) / DEGREE_MAX;
        for (int i = 0; i < width; i++)
            graph_add_arc(g, first + i, next + i / DEGREE_MAX);
        g->count += next_width;
        first = next;
        width = next_width;
    }
}

/* Builds the graph of graph_build_black_hole with every arc and the order of the tasks reversed. */
static void graph_build_white_hole(struct traffic_graph *g, int sinks)
{
    struct traffic_graph tree = {.count = 0};
    graph_build_black_hole(&tree, sinks);
    g->count = tree.count;
    for (int t = 0; t < tree.count; t++)
        for (int i = 0; i < tree.tasks[t].inputs; i++)
            graph_add_arc(g, tree.count - 1 - t, tree.count - 1 - tree.tasks[t].from[i]);
}

/* A butterfly: in layer j every task receives the results of two tasks whose numbers differ in bit j. */
static void graph_build_shuffle(struct traffic_graph *g, int sources)
{
    g->count = sources;
    for (int bit = 1; bit < sources; bit <<= 1) {
        const int before = g->count - sources;
        for (int i = 0; i < sources; i++) {
            graph_add_arc(g, before + (i & ~bit), g->count + i);
            graph_add_arc(g, before + (i | bit), g->count + i);
        }
        g->count += sources;
    }
}

/* base^exponent mod modulus as the suite computes it: products wrap at 32 bits and remainders keep the sign
 * of the product. */
static int32_t dt_power_mod(int32_t base, int64_t exponent, int32_t modulus)
{
    uint32_t square = (uint32_t)base, result = 1;
    if (exponent == 0)
        return 1;
    while (exponent > 1) {
        if (exponent % 2 == 0) {
            square = (uint32_t)((int32_t)(square * square) % modulus);
            exponent /= 2;
        } else {
            result = (uint32_t)((int32_t)(result * square) % modulus);
            exponent--;
        }
    }
    return (int32_t)(result * square) % modulus;
}

/* Number of samples of a source: the mean of its class, plus or minus a random deviation. */
static int dt_count_source_samples(enum kernel_class class, int task)
{
    const uint64_t product = (uint64_t)(2 * task + 1) * 314159265u; /* less than 2^46 for every task */
    const double fraction = (double)product * 0x1p-46;
    const int32_t base = (int)(1 / fraction) * 'S'; /* the suite uses 'S' for every class */
    const int32_t spread = dt_power_mod(base, 2 * task + 1, 2 * classes[class].deviation);
    return classes[class].samples - classes[class].deviation + abs(spread);
}

static struct features features_generate(struct kernel_run *run, int task)
{
    static const int32_t modulus[FIELDS] = {421, 419, 1427, 3527}, factor[FIELDS] = {2, 2, 2, 5};
    struct features f = {.length = dt_count_source_samples(run->class, task) * FIELDS};
    const int64_t skip = (int64_t)f.length * (task + 1) % 3141592;
    int32_t seed[FIELDS];
    f.values = kernel_alloc(run, (size_t)f.length * sizeof(*f.values));
    for (int k = 0; k < FIELDS; k++)
        seed[k] = dt_power_mod(factor[k], skip, modulus[k]);
    for (int i = 0; i < f.length; i += FIELDS)
        for (int k = 0; k < FIELDS; k++) {
            seed[k] = seed[k] * factor[k] % modulus[k];
            f.values[i + k] = seed[k];
        }
    return f;
}

/* Stretches f to `length` samples: each inner value is divided among the samples that replace it. */
static void features_resample(struct kernel_run *run, struct features *f, int length)
{
    double *values = kernel_alloc(run, (size_t)length * sizeof(*values));
    const int ratio = length / f->length;
    for (int i = 1; i < f->length - 1; i++) {
        const int low = (int)(0.5 * (2 * i - 1) * ratio), high = (int)(0.5 * (2 * i + 1) * ratio);
        for (int j = low; j <= high; j++)
            values[j] += f->values[i] / (high - low + 1);
    }
    values[0] = f->values[0];
    values[length - 1] = f->values[f->length - 1];
    free(f->values);
    *f = (struct features){length, values};
}

static double features_sample_distance(const struct features *a, const struct features *b, int at)
{
    double sum = 0;
    for (int k = 0; k < FIELDS; k++) {
        const double d = a->values[at + k] - b->values[at + k];
        sum += d * d;
    }
    return sum;
}

/* Replaces every inner sample of a by a weighted sample of b: the nearest of those at the same place,
 * before it and after it. */
static void features_filter(struct kernel_run *run, struct features *a, struct features *b, int task)
{
    const double weight = (double)(task + 1) / (task + 2);
    if (a->length < b->length)
        features_resample(run, a, b->length);
    if (a->length > b->length)
        features_resample(run, b, a->length);
    for (int i = FIELDS; i < a->length - FIELDS; i += FIELDS) {
        double nearest = features_sample_distance(a, b, i);
        int from = i;
        if (features_sample_distance(a, b, i + FIELDS) < nearest) {
            from = i + FIELDS;
            nearest = features_sample_distance(a, b, from);
        }
        if (features_sample_distance(a, b, i - FIELDS) < nearest)
            from = i - FIELDS;
        for (int k = 0; k < FIELDS; k++)
            a->values[i + k] = weight * b->values[from + k];
    }
}

static double features_checksum(const struct features *f, int task)
{
    double sum = 0;
    for (int i = 0; i < f->length; i++)
        sum += f->values[i] * f->values[i] / f->length;
    return (int)((task + 1) * sum);
}

/* Each arc carries two messages, as in the suite: the length, then the numbers. The tag is the number of the
 * receiving task. */
static void task_send(struct kernel_run *run, struct sent *sent, const struct task *task, struct features f)
{
    struct features *saved = &sent->features[sent->feature_count++];
    *saved = f;
    for (int i = 0; i < task->outputs; i++) {
        const int to = task->to[i] % run->size, tag = task->to[i];
        MPI_Isend(&saved->length, 1, MPI_INT, to, tag, run->comm, &sent->requests[sent->request_count++]);
        MPI_Isend(saved->values, saved->length, MPI_DOUBLE, to, tag, run->comm,
                  &sent->requests[sent->request_count++]);
    }
}

static struct features task_receive(struct kernel_run *run, int from, int task)
{
    struct features f = {0};
    MPI_Recv(&f.length, 1, MPI_INT, from % run->size, task, run->comm, MPI_STATUS_IGNORE);
    f.values = kernel_alloc(run, (size_t)f.length * sizeof(*f.values));
    MPI_Recv(f.values, f.length, MPI_DOUBLE, from % run->size, task, run->comm, MPI_STATUS_IGNORE);
    return f;
}

static struct features task_compare(struct kernel_run *run, const struct task *task, int number)
{
    struct features result = {.length = classes[run->class].samples * FIELDS};
    result.values = kernel_alloc(run, (size_t)result.length * sizeof(*result.values));
    for (int i = 0; i < task->inputs; i++) {
        struct features input = task_receive(run, task->from[i], number);
        features_filter(run, &result, &input, number);
        free(input.values);
    }
    for (int i = 0; i < result.length; i++)
        result.values[i] = (int)result.values[i] / task->inputs;
    return result;
}

static double task_compute_checksum(struct kernel_run *run, const struct task *task, int number)
{
    double sum = 0;
    for (int i = 0; i < task->inputs; i++) {
        struct features input = task_receive(run, task->from[i], number);
        sum += features_checksum(&input, number);
        free(input.values);
    }
    return (double)((number + 1) * ((int64_t)sum / task->inputs));
}

static void dt_run_graph(struct kernel_run *run, struct kernel_result *out, enum graph graph)
{
    static void (*const build[GRAPHS])(struct traffic_graph *, int) = {
        graph_build_black_hole, graph_build_white_hole, graph_build_shuffle};
    struct traffic_graph *g = kernel_alloc(run, sizeof(*g));
    struct sent *sent = kernel_alloc(run, sizeof(*sent));
    double sum = 0, checksum = 0;
    build[graph](g, classes[run->class].sources);
    const double started = kernel_start(run);
    for (int number = run->rank; number < g->count; number += run->size) {
        const struct task *task = &g->tasks[number];
        if (task->outputs == 0)
            sum += task_compute_checksum(run, task, number);
        else
            task_send(run, sent, task,
                      task->inputs == 0 ? features_generate(run, number) : task_compare(run, task, number));
        kernel_progress(run, number + 1, g->count);
    }
    MPI_Waitall(sent->request_count, sent->requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&sum, &checksum, 1, MPI_DOUBLE, MPI_SUM, run->comm);
    kernel_stop(run, started, out);
    kernel_verify_value(out, checksum, classes[run->class].checksum[graph], 0);
    out->amount = (double)classes[run->class].samples * FIELDS * sizeof(double) * g->arcs * 1e-6;
    for (int i = 0; i < sent->feature_count; i++)
        free(sent->features[i].values);
    free(sent);
    free(g);
}

static void dt_run_black_hole(struct kernel_run *run, struct kernel_result *out)
{
    dt_run_graph(run, out, BLACK_HOLE);
}

static void dt_run_white_hole(struct kernel_run *run, struct kernel_result *out)
{
    dt_run_graph(run, out, WHITE_HOLE);
}

static void dt_run_shuffle(struct kernel_run *run, struct kernel_result *out)
{
    dt_run_graph(run, out, SHUFFLE);
}

const struct kernel kernel_dt_bh = {
    .name = "dt-bh",
    .doc = "data traffic, black hole: large messages of many sources, combined in a tree",
    .unit = "MB/s",
    .ranks = "any number",
    .run = dt_run_black_hole,
};

const struct kernel kernel_dt_wh = {
    .name = "dt-wh",
    .doc = "data traffic, white hole: large messages of one source, passed down a tree",
    .unit = "MB/s",
    .ranks = "any number",
    .run = dt_run_white_hole,
};

const struct kernel kernel_dt_sh = {
    .name = "dt-sh",
    .doc = "data traffic, shuffle: large messages through a butterfly",
    .unit = "MB/s",
    .ranks = "any number",
    .run = dt_run_shuffle,
};
