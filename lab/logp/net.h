/* net.h: connections between the hub and its peers, made with verbs; posting requests and waiting for
 * messages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_LOGP_NET_H
#define FP_LAB_LOGP_NET_H

#include "logp.h"
#include "net/ib/device/verbs.h"
#include "net/adapter_port.h"

/* Address of one end of a connection, which is sent to the other end. */
struct logp_address {
    uint32_t qpn[LOGP_TYPES];
    uint32_t rkey;
    uint64_t slot; /* address for RDMA writes: LOGP_SLOT bytes for messages, then a word for `done` */
    uint8_t gid[16];
    uint64_t subnet;
    uint16_t lid;
    uint16_t mtu; /* bytes */
    uint8_t roce;
};

struct logp_link {
    int peer; /* index of the peer, from 0 */
    int rank; /* rank at the other end */
    struct ibv_qp *qp[LOGP_TYPES];
    struct ibv_ah *ah;
    struct logp_address far;
    char *slot;             /* memory where the peer's messages arrive */
    uint64_t last_received; /* number of the last message that was received */
};

struct logp_net {
    struct verbs verbs;
    struct net_port port;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *sent, *received;
    struct ibv_mr *mr;
    char *memory; /* receive slots, then send buffer, then target of reads and datagrams */
    char *out, *sink;
    struct logp_link link[LOGP_PEERS];
    int links, peers; /* links of this rank; peers of the hub */
    uint64_t step;    /* number of the benchmark's step, counted at both ends */
    bool hub;
};

/* Collective. Prints an error and ends the job on failure. */
void logp_net_open(struct logp_net *n, const struct ib_rank *r, int peers);
void logp_net_close(struct logp_net *n);

bool logp_adapter_supports(const struct logp_net *n, const struct logp_verb *v);

/* A send request, whose last eight bytes of data are a message number. */
struct logp_request {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};
void logp_prepare_request(struct logp_net *n, struct logp_link *l, const struct logp_verb *v, size_t bytes,
                          struct logp_request *out);
void logp_store_number(struct logp_net *n, size_t bytes, uint64_t number);
void logp_post_requests(struct logp_net *n, struct logp_link *l, const struct logp_verb *v,
                        struct logp_request *r);

void logp_await_completions(struct logp_net *n, int completions);
void logp_post_receive(struct logp_net *n, struct logp_link *l, enum logp_type t);
/* Polls for messages of `verb`; returns the link on which a message arrived, or NULL. */
struct logp_link *logp_poll_message(struct logp_net *n, const struct logp_verb *v, size_t bytes);
/* logp_report_done writes `number` over RC into the word after the peer's slot, to mark the end of a step
 * of the benchmark; logp_is_done polls this word. */
void logp_report_done(struct logp_net *n, struct logp_link *l, uint64_t number);
bool logp_is_done(const struct logp_link *l, uint64_t number);

void logp_abort_job(const char *what);
/* State of a polling loop. logp_pause_polling, called between two polls, yields the processor after many
 * polls, and ends the job after TIMEOUT_SECONDS. */
struct logp_polling {
    int polls;
    double since;
};
void logp_pause_polling(struct logp_polling *p);

#endif
