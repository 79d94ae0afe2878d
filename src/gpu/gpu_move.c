/* gpu_move.c: copies in pieces of GPU_STAGING_SIZE bytes, two of them at a time; piece i uses buffer i % 2.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu_move.h"

#include <mpi.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"

/* Returns the size of the next piece; a direct copy by the GPU is a single piece. */
static size_t piece_bytes(const struct gpu_move *m, size_t at)
{
    return m->path == GPU_MOVE_DIRECT ? m->size - at : MIN(m->size - at, GPU_STAGING_SIZE);
}

static size_t buffer_index(size_t at)
{
    return at / GPU_STAGING_SIZE % 2;
}

static void put_staging_buffers(struct gpu_move *m)
{
    for (int i = 0; i < 2; i++)
        if (m->stage[i])
            gpu_put_staging(m->stage[i]);
    m->stage[0] = m->stage[1] = NULL;
}

/* Starts pieces until two are in progress. */
static int start_pieces(struct gpu_move *m)
{
    while (m->started < m->size && m->started - m->finished < 2 * GPU_STAGING_SIZE) {
        const size_t at = m->started, n = piece_bytes(m, at), i = buffer_index(at);
        char *to = m->path == GPU_MOVE_TO_HOST ? m->stage[i] : m->to + at;
        const char *from = m->from + at;
        if (m->path == GPU_MOVE_FROM_HOST)
            from = memcpy(m->stage[i], from, n);
        const int rc = gpu_start_copy(to, from, n, &m->transfer[i]);
        if (rc)
            return rc;
        m->started += n;
    }
    return 0;
}

/* Ends the move with an error; waits for its copies first, because the buffers are used again. */
static int fail_move(struct gpu_move *m, int error)
{
    while (m->finished < m->started) {
        if (gpu_poll_copy(&m->transfer[buffer_index(m->finished)]) == ERR_AGAIN)
            continue;
        m->finished += piece_bytes(m, m->finished);
    }
    put_staging_buffers(m);
    return error;
}

int gpu_move_start(struct gpu_move *m, void *to, const void *from, size_t size)
{
    *m = (struct gpu_move){.to = to, .from = from, .size = size};
    if (!gpu_is_accessible(to))
        m->path = GPU_MOVE_TO_HOST;
    else if (!gpu_is_accessible(from))
        m->path = GPU_MOVE_FROM_HOST;
    for (int i = 0; i < 2 && m->path != GPU_MOVE_DIRECT; i++)
        if ((i == 0 || size > GPU_STAGING_SIZE) && !(m->stage[i] = gpu_get_staging()))
            return fail_move(m,
                             err_set(MPI_ERR_NO_MEM, "out of memory for staging a copy of %zu bytes", size));
    const int rc = start_pieces(m);
    return rc ? fail_move(m, rc) : 0;
}

int gpu_move_poll(struct gpu_move *m)
{
    const size_t at = m->finished, n = piece_bytes(m, at), i = buffer_index(at);
    int rc = gpu_poll_copy(&m->transfer[i]);
    if (rc == ERR_AGAIN)
        return rc;
    m->finished += n;
    if (rc == 0 && m->path == GPU_MOVE_TO_HOST)
        memcpy(m->to + at, m->stage[i], n);
    if (rc == 0)
        rc = start_pieces(m);
    if (rc)
        return fail_move(m, rc);
    if (m->finished < m->size)
        return ERR_AGAIN;
    put_staging_buffers(m);
    return 0;
}
