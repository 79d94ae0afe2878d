/* prof.h: declarations shared by the generated interception (prof_calls.c, written by api/gen/prof.py) and
 * the files of this folder. A process has one record; it is locked only if several threads may call MPI, and
 * never during a PMPI function, because a callback inside that function may call the profiler again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_PROF_H
#define FP_PROF_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "prof_calls.h"

#define PROF_API __attribute__((visibility("default")))

/* Kinds of MPI functions, by which the report divides the time in MPI. */
enum prof_kind { PROF_P2P, PROF_WAIT, PROF_COLL, PROF_RMA, PROF_IO, PROF_OTHER };

struct prof_function {
    const char *name;
    enum prof_kind kind;
    bool nonblocking;
};
extern const struct prof_function prof_functions[CALLS];

struct prof_stat {
    uint64_t calls, ticks, ticks_max;
    uint64_t sized, bytes; /* operations whose size is known, and the sum of their sizes */
};

/* Histogram of sizes: bin 0 counts 0 bytes, bin b counts 2^(b-1) to 2^b - 1 bytes. */
enum { PROF_BINS = 64 };
struct prof_bin {
    uint64_t count, bytes;
};

struct prof_traffic {
    uint64_t messages, bytes;
};

#define PROF_MEMORY_KINDS 3 /* enum gpu_memory_kind of gpu/gpu.h */

struct prof_reuse {
    uint64_t accesses, reused, bytes, reused_bytes, dropped;
};

struct prof_record {
    struct prof_stat calls[CALLS];
    /* p2p: messages sent; received: their receives */
    struct prof_bin p2p[PROF_BINS], received[PROF_BINS], coll[PROF_BINS];
    /* messages sent, by world rank; outside: to ranks outside MPI_COMM_WORLD */
    struct prof_traffic *peers, outside;
    struct prof_reuse reuse;
    uint64_t memory[PROF_MEMORY_KINDS]; /* bytes of buffers by enum gpu_memory_kind */
    /* ticks inside MPI; calls from inside callbacks are not counted twice */
    uint64_t mpi_ticks;
    uint64_t on_ns; /* ns during which recording was on, up to on_since */
    /* clock_ns() when recording was switched on; 0: off, or outside MPI_Init .. MPI_Finalize */
    uint64_t on_since;
    bool on;            /* recording is on (MPI_Pcontrol) */
    bool running;       /* MPI or a session is initialised */
    bool used, shipped; /* used: a record exists; shipped: it was written */
    bool threaded;
    bool timeline;       /* every call is recorded (timeline.c) */
    int rank, size, pid; /* rank and size of MPI_COMM_WORLD */
    char host[MPI_MAX_PROCESSOR_NAME];
    char *sent_text; /* messages that the library sent to each rank, as lines of the record */
    size_t sent_size;
    bool sent_known;
};
extern struct prof_record prof;

/* Access to switches that are read without the lock. */
#define PROF_GET(field)        __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define PROF_SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

/* State of one intercepted call while it is timed. */
struct prof_span {
    uint64_t start, spent; /* ticks; `spent` is set by prof_end */
    const void *caller;
    int call;
    bool on, outermost;
};
struct prof_span prof_begin_at(int call, const void *caller);
/* Called in the body of an intercepted function, so that the return address is the call site in the
 * program. */
#define prof_begin(call) prof_begin_at((call), __builtin_return_address(0))
void prof_end(struct prof_span *span);
void prof_set_enabled(int level);
/* Returns the index of the call in which this thread is, or -1; *start: ticks at its start. */
int prof_current_call(uint64_t *start);

/* A buffer and the bytes of data in it. */
struct prof_block {
    const void *at;
    uint64_t bytes;
    bool given;
};
#define PROF_NOTHING ((struct prof_block){0})
enum { PROF_OUTSIDE = -1, PROF_NOBODY = -2 };

struct prof_op {
    int call;
    bool collective;
    bool replaces; /* sends from and receives into one buffer */
    int to, from;  /* world rank, or one of the above */
    struct prof_block send, receive;
};

struct prof_block prof_make_block(const void *at, MPI_Count count, MPI_Datatype type);
struct prof_block prof_make_blocks(const void *at, MPI_Count count, MPI_Datatype type, MPI_Count times);
struct prof_block prof_sum_blocks(const void *at, const int *counts, MPI_Datatype type, int n);
struct prof_block prof_sum_blocks_c(const void *at, const MPI_Count *counts, MPI_Datatype type, int n);
struct prof_block prof_typed_blocks(const void *at, const int *counts, const MPI_Datatype *types, int n);
struct prof_block prof_typed_blocks_c(const void *at, const MPI_Count *counts, const MPI_Datatype *types,
                                      int n);

void prof_record_transfer(const struct prof_op *op);
/* Persistent operations: stored until freed, and counted at every start. */
void prof_store_request(MPI_Request request, const struct prof_op *op);
void prof_requests_started(int call, bool on, int count, const MPI_Request *requests);
void prof_drop_request(const MPI_Request *request);

/* True if this buffer was used before; remembers it. Called with the lock held. */
bool prof_buffer_check_seen(const void *at);

/* Roles of a rank in a rooted collective. */
enum { PROF_ROOT = 1, PROF_LEAF = 2 };
bool prof_has_role(MPI_Comm comm, int root, int role);
int prof_peers(MPI_Comm comm);
int prof_comm_size(MPI_Comm comm);
int prof_in_degree(MPI_Comm comm);
int prof_out_degree(MPI_Comm comm);
int prof_world_rank(MPI_Comm comm, int rank);
void prof_comm_freed(MPI_Comm comm);
/* Sets the group of MPI_COMM_WORLD, whose ranks the record uses; obtained from the world model or from a
 * session. */
void prof_comm_world(MPI_Group group);

/* Records a blocking collective call that has returned (collwait.c). */
void prof_collective(const struct prof_span *span, MPI_Comm comm);
bool prof_is_world(MPI_Comm comm);

/* Records the call site of an outermost call that has returned; called with the lock held (sites.c). */
void prof_site(const struct prof_span *span);
void prof_sites_put(FILE *out);

/* Records an outermost call that has returned; called with the lock held, if prof.timeline (timeline.c). */
void prof_event(const struct prof_span *span);
/* Adds the moved data to the thread's last event, if that event is this call. */
void prof_event_add_transfer(const struct prof_op *op);
void prof_timeline_put(FILE *out);

/* Locking, and the start and end of MPI (time.c, life.c). */
bool prof_lock(void); /* true if it locked: a second thread may start before prof_unlock */
void prof_unlock(bool locked);
void prof_threads(int level);
void prof_world_begins(void);
void prof_world_ends(void);
void prof_session_begins(MPI_Session session);
void prof_session_ends(const MPI_Session *session);
void prof_on_abort(void);

/* Writes the record of a process before a signal ends it (cut.c). */
void prof_start_catching_signals(void);
void prof_stop_catching_signals(void);
void prof_write_interrupted_record(FILE *out, int signal_number);

/* prof_about_begin reads the facts of the run in MPI_Init; prof_about_put_sent writes the message counts
 * before MPI_Finalize. */
void prof_about_begin(void);
void prof_about_put(FILE *out);
void prof_about_put_sent(FILE *out);
void prof_collectives_put(FILE *out);

/* Creates a file in a folder to which only this user has access; NULL: in the working directory. On another machine
 * than that of `fishplate prof` another user could have made the folder, with links to files of this user. */
FILE *prof_create_file(const char *folder, const char *name);
void prof_ship_gathered(void);
void prof_ship_own_record(void);

#endif
