/* stream.c: the byte stream of an rsocket, with credits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BUFFERS   (STREAM_SLOTS + STREAM_RESERVED)
#define ALL_BYTES ((size_t)(STREAM_SLOTS + BUFFERS) * STREAM_SLOT_BYTES)

/* The immediate data of a message: kind << 24 | returned credits. */
enum message_kind { KIND_DATA = 1, KIND_CREDITS, KIND_MAP, KIND_END };

/* Identifiers of requests. Those of receives are the number of the buffer. */
enum { REQUEST_SLOT = BUFFERS, REQUEST_CONTROL };

static char *receive_buffer(const struct stream *s, unsigned i)
{
    return s->memory + (size_t)(STREAM_SLOTS + i) * STREAM_SLOT_BYTES;
}

static void post_receive(struct stream *s, unsigned i)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)receive_buffer(s, i), .length = STREAM_SLOT_BYTES, .lkey = s->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(s->id->qp, &wr, &bad))
        s->broken = true;
}

static int create_queues(struct stream *s)
{
    s->events = ibv_create_comp_channel(s->id->verbs);
    if (!s->events || fcntl(s->events->fd, F_SETFL, O_NONBLOCK))
        return errno;
    s->cq = ibv_create_cq(s->id->verbs, (int)(2 * BUFFERS), NULL, s->events, 0);
    if (!s->cq)
        return errno;
    struct ibv_qp_init_attr a = {
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .cap = {.max_send_wr = BUFFERS, .max_recv_wr = BUFFERS, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    return rdma_create_qp(s->id, NULL, &a) ? errno : 0;
}

int stream_open(struct stream *s, struct rdma_cm_id *id)
{
    *s = (struct stream){.id = id, .credits = STREAM_SLOTS, .memory = MAP_FAILED};
    int error = create_queues(s);
    if (!error) {
        s->memory =
            mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        error = s->memory == MAP_FAILED ? errno : 0;
    }
    if (!error) {
        s->mr = ibv_reg_mr(id->pd, s->memory, ALL_BYTES, IBV_ACCESS_LOCAL_WRITE);
        error = s->mr ? 0 : errno;
    }
    for (unsigned i = 0; !error && i < BUFFERS; i++)
        post_receive(s, i);
    if (error)
        stream_close(s);
    return error;
}

void stream_close(struct stream *s)
{
    if (!s->id)
        return;
    if (s->id->qp)
        rdma_destroy_qp(s->id);
    if (s->mr)
        ibv_dereg_mr(s->mr);
    for (unsigned i = 0; i < STREAM_MAPS; i++)
        if (s->near_mr[i])
            ibv_dereg_mr(s->near_mr[i]);
    if (s->memory != MAP_FAILED)
        munmap(s->memory, ALL_BYTES);
    stream_drain_events(s);
    if (s->cq)
        ibv_destroy_cq(s->cq);
    if (s->events)
        ibv_destroy_comp_channel(s->events);
    s->id = NULL;
}

/* ---- sending ---- */

static void post_send(struct stream *s, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    if (ibv_post_send(s->id->qp, wr, &bad)) {
        s->broken = true;
        return;
    }
    if (wr->wr_id == REQUEST_CONTROL)
        s->control_used++;
    else
        s->slots_used++;
}

static void send_message(struct stream *s, enum message_kind kind, struct ibv_sge *sge)
{
    struct ibv_send_wr wr = {.wr_id = sge ? REQUEST_SLOT : REQUEST_CONTROL,
                             .sg_list = sge,
                             .num_sge = sge ? 1 : 0,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .imm_data = htonl((uint32_t)kind << 24 | s->owed)};
    s->owed = 0;
    if (sge)
        s->credits--;
    post_send(s, &wr);
}

/* Copies at most a slot of bytes into the next send buffer, which must be free. */
static struct ibv_sge fill_slot(struct stream *s, const void *bytes, size_t n)
{
    char *slot = s->memory + (size_t)(s->next_slot++ % STREAM_SLOTS) * STREAM_SLOT_BYTES;
    struct ibv_sge sge = {.addr = (uintptr_t)slot,
                          .length = n < STREAM_SLOT_BYTES ? (uint32_t)n : STREAM_SLOT_BYTES,
                          .lkey = s->mr->lkey};
    memcpy(slot, bytes, sge.length);
    return sge;
}

size_t stream_write(struct stream *s, const void *bytes, size_t n)
{
    size_t done = 0;
    while (done < n && stream_can_write(s) && !s->broken) {
        struct ibv_sge sge = fill_slot(s, (const char *)bytes + done, n - done);
        done += sge.length;
        send_message(s, KIND_DATA, &sge);
    }
    return done;
}

static const struct stream_map *find_map(const struct stream *s, uint64_t offset)
{
    for (unsigned i = 0; i < STREAM_MAPS; i++)
        if (offset >= s->far[i].offset && offset - s->far[i].offset < s->far[i].length)
            return &s->far[i];
    return NULL;
}

ssize_t stream_write_map(struct stream *s, const void *bytes, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (done < n && s->slots_used < STREAM_SLOTS && !s->broken) {
        const struct stream_map *m = find_map(s, offset + done);
        if (!m)
            return done ? (ssize_t)done : -1;
        const uint64_t at = offset + done - m->offset, space = m->length - at;
        struct ibv_sge sge = fill_slot(s, (const char *)bytes + done, n - done < space ? n - done : space);
        struct ibv_send_wr wr = {
            .wr_id = REQUEST_SLOT, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
        wr.wr.rdma.remote_addr = m->addr + at;
        wr.wr.rdma.rkey = m->rkey;
        done += sge.length;
        post_send(s, &wr);
    }
    return (ssize_t)done;
}

/* ---- maps ---- */

static void send_map(struct stream *s, const struct stream_map *m)
{
    struct ibv_sge sge = fill_slot(s, m, sizeof(*m));
    send_message(s, KIND_MAP, &sge);
}

static void handle_map(struct stream *s, const void *bytes, unsigned length)
{
    struct stream_map m;
    unsigned at = STREAM_MAPS;
    if (length != sizeof(m)) {
        s->broken = true;
        return;
    }
    memcpy(&m, bytes, sizeof(m));
    for (unsigned i = 0; i < STREAM_MAPS; i++) {
        const bool same = s->far[i].length && s->far[i].offset == m.offset;
        if (same || (at == STREAM_MAPS && !s->far[i].length))
            at = i;
        if (same)
            break;
    }
    if (at < STREAM_MAPS)
        s->far[at] = m;
}

int stream_map(struct stream *s, void *buf, size_t n, bool writable, uint64_t offset)
{
    unsigned at = STREAM_MAPS;
    for (unsigned i = 0; i < STREAM_MAPS; i++) {
        const struct stream_map *m = &s->near[i];
        if (!m->length)
            at = i;
        else if (offset < m->offset + m->length && m->offset < offset + n)
            return EEXIST;
    }
    if (at == STREAM_MAPS)
        return ENOMEM;
    s->near_mr[at] =
        ibv_reg_mr(s->id->pd, buf, n, writable ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0);
    if (!s->near_mr[at])
        return errno;
    s->near[at] = (struct stream_map){
        .offset = offset, .length = n, .addr = (uintptr_t)buf, .rkey = s->near_mr[at]->rkey};
    send_map(s, &s->near[at]);
    return 0;
}

int stream_unmap(struct stream *s, void *buf, size_t n)
{
    for (unsigned i = 0; i < STREAM_MAPS; i++)
        if (s->near_mr[i] && s->near[i].addr == (uintptr_t)buf && s->near[i].length == n) {
            s->near[i].length = 0;
            send_map(s, &s->near[i]);
            ibv_dereg_mr(s->near_mr[i]);
            s->near_mr[i] = NULL;
            return 0;
        }
    return EINVAL;
}

/* ---- receiving ---- */

static void return_buffer(struct stream *s, unsigned buffer)
{
    post_receive(s, buffer);
    s->owed++;
}

size_t stream_read(struct stream *s, void *bytes, size_t n, bool peek)
{
    size_t done = 0;
    unsigned i = s->inbox_first, count = s->inbox_count, consumed = s->consumed;
    while (done < n && count) {
        const unsigned buffer = s->inbox[i].buffer, left = s->inbox[i].length - consumed;
        const unsigned part = n - done < left ? (unsigned)(n - done) : left;
        memcpy((char *)bytes + done, receive_buffer(s, buffer) + consumed, part);
        done += part;
        consumed += part;
        if (part < left)
            break;
        if (!peek)
            return_buffer(s, buffer);
        i = (i + 1) % STREAM_SLOTS;
        count--;
        consumed = 0;
    }
    if (!peek) {
        s->inbox_first = i;
        s->inbox_count = count;
        s->consumed = consumed;
    }
    return done;
}

static void handle_receive(struct stream *s, const struct ibv_wc *wc)
{
    const uint32_t imm = ntohl(wc->imm_data), kind = imm >> 24;
    const unsigned buffer = (unsigned)wc->wr_id;
    s->credits += imm & 0xffffffu;
    if (kind == KIND_DATA && wc->byte_len && s->inbox_count < STREAM_SLOTS) {
        const unsigned i = (s->inbox_first + s->inbox_count++) % STREAM_SLOTS;
        s->inbox[i].buffer = buffer;
        s->inbox[i].length = wc->byte_len;
        return;
    }
    if (kind == KIND_MAP) {
        handle_map(s, receive_buffer(s, buffer), wc->byte_len);
        return_buffer(s, buffer);
        return;
    }
    s->broken |= kind != KIND_CREDITS && kind != KIND_END;
    s->ended |= kind == KIND_END;
    post_receive(s, buffer);
}

static void handle_completion(struct stream *s, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS)
        s->broken = true;
    else if (wc->wr_id == REQUEST_SLOT)
        s->slots_used--;
    else if (wc->wr_id == REQUEST_CONTROL)
        s->control_used--;
    else
        handle_receive(s, wc);
}

void stream_progress(struct stream *s)
{
    struct ibv_wc wc[16];
    int n;
    do {
        n = ibv_poll_cq(s->cq, 16, wc);
        for (int i = 0; i < n; i++)
            handle_completion(s, &wc[i]);
    } while (n == 16);
    s->broken |= n < 0;
    if (s->broken)
        return;
    if (s->owed >= STREAM_SLOTS / 2 && s->control_used < STREAM_RESERVED)
        send_message(s, KIND_CREDITS, NULL);
    if (s->end_requested && !s->end_sent && s->control_used < STREAM_RESERVED) {
        s->end_sent = true;
        send_message(s, KIND_END, NULL);
    }
}

void stream_arm(struct stream *s)
{
    if (ibv_req_notify_cq(s->cq, 0))
        s->broken = true;
}

void stream_drain_events(struct stream *s)
{
    struct ibv_cq *cq;
    void *context;
    while (s->cq && !ibv_get_cq_event(s->events, &cq, &context))
        ibv_ack_cq_events(cq, 1);
}
