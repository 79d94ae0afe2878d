/* pmi1_conn.h: the client's end of a PMI-1 connection: sends and receives whole lines. Every receive has a
 * deadline.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PMI1_CONN_H
#define FP_BOOT_PMI1_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "boot/pmi_line.h"

struct pmi1_conn {
    int fd;
    char *in; /* received bytes, of which the first in_used were returned by pmi1_conn_recv */
    size_t in_len, in_cap, in_used;
    int late;             /* answers that did not arrive before their deadline */
    struct pmi_line line; /* the last line, pointing into `in` */
};

/* Result of pmi1_conn_recv: the deadline has passed. Distinct from every MPI error class. */
#define PMI1_LATE (-2)

/* Connects to host:port, the format of PMI_PORT. */
int pmi1_conn_connect(struct pmi1_conn *c, const char *address);
void pmi1_conn_close(struct pmi1_conn *c);

/* Sends one formatted line and a newline. */
int pmi1_conn_send(struct pmi1_conn *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Sends `len` bytes as they are. */
int pmi1_conn_write(struct pmi1_conn *c, const char *data, size_t len);

/* Receives the answer to the last request into c->line: discards late answers to earlier requests. Returns 0,
 * an error class, or PMI1_LATE, without a description, when clock_ns() reaches deadline_ns. */
int pmi1_conn_recv(struct pmi1_conn *c, uint64_t deadline_ns);

#endif
