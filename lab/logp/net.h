/* net.h: connections between the hub and its peers, made with verbs; and posting and waiting on them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_LOGP_NET_H
#define FP_LAB_LOGP_NET_H

#include "logp.h"
#include "net/ib/device/verbs.h"
#include "net/port.h"

/* The address of one end, sent to the other. */
struct logp_address {
    uint32_t qpn[LOGP_TYPES];
    uint32_t rkey;
    uint64_t slot; /* where to write: LOGP_SLOT bytes for messages, then a word for `done` */
    uint8_t gid[16];
    uint64_t subnet;
    uint16_t lid;
    uint16_t mtu; /* bytes */
    uint8_t roce;
};

struct logp_link {
    int peer; /* index, from 0 */
    int rank; /* whose the other end is */
    struct ibv_qp *qp[LOGP_TYPES];
    struct ibv_ah *ah;
    struct logp_address far;
    char *slot;    /* the peer's messages arrive here */
    uint64_t seen; /* number of the last one */
};

struct logp_net {
    struct verbs verbs;
    struct net_port port;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *sent, *received;
    struct ibv_mr *mr;
    char *memory; /* slots, then what is sent, then where reads and datagrams go */
    char *out, *sink;
    struct logp_link link[LOGP_PEERS];
    int links, peers; /* of this rank; of the hub */
    uint64_t step;    /* of the benchmark, counted at both ends */
    bool hub;
};

/* Collective. Ends the job with a sentence on failure. */
void logp_net_open(struct logp_net *n, const struct ib_rank *r, int peers);
void logp_net_close(struct logp_net *n);

bool logp_can(const struct logp_net *n, const struct logp_verb *v); /* this adapter has it */

/* A request that carries `number` in its last eight bytes; the next in a list, or NULL. */
struct logp_request {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};
void logp_prepare(struct logp_net *n, struct logp_link *l, const struct logp_verb *v, size_t bytes,
                  struct logp_request *out);
void logp_number(struct logp_net *n, size_t bytes, uint64_t number);
void logp_post(struct logp_net *n, struct logp_link *l, const struct logp_verb *v, struct logp_request *r);

void logp_drain(struct logp_net *n, int completions);                         /* of requests that were sent */
void logp_receive(struct logp_net *n, struct logp_link *l, enum logp_type t); /* posts one receive */
/* Polls for messages of `verb`; returns the link on which one arrived, or NULL. */
struct logp_link *logp_poll(struct logp_net *n, const struct logp_verb *v, size_t bytes);
/* A word at the end of the slot, written by RC, that marks the end of a step of the benchmark. */
void logp_report_done(struct logp_net *n, struct logp_link *l, uint64_t number);
bool logp_is_done(const struct logp_link *l, uint64_t number);

void logp_die(const char *what);
/* Between two looks for something: lets others run after many of them, and ends the job after some seconds. */
struct logp_patience {
    int looks;
    double since;
};
void logp_wait(struct logp_patience *p);

#endif
