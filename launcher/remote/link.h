/* link.h: the connection between mpiexec and an agent, or between two agents: frames with a type, a host, a
 * rank and bytes, over TCP. Both ends use the same code; the enum lists the types of frames. The host is the
 * destination or the source of the frame; agents in between forward it without looking inside. After both
 * ends have proved themselves (proof.h), each frame ends with an authentication code of SEAL_SIZE bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_LINK_H
#define FP_LAUNCHER_LINK_H

#include "core/loop.h"
#include "remote/proof.h"
#include "core/util.h"

#define FRAME_HEADER 16  /* length, type, host, rank: four bytes each, in network order */
#define GREETING_MAX 256 /* bytes of one message before the other end has proved itself */

enum frame {
    /* up the tree: agent to mpiexec */
    FRAME_HELLO = 1, /* first message of the proof (proof.h) */
    FRAME_PROOF,
    FRAME_OUTPUT,      /* bytes of standard output; none: the stream has ended */
    FRAME_ERROR,       /* bytes of standard error; none: the stream has ended */
    FRAME_STARTED,     /* process id, 4 bytes */
    FRAME_FAILED,      /* exit status, 4 bytes, and a sentence */
    FRAME_EXITED,      /* waitpid's status, 4 bytes */
    FRAME_INPUT_TAKEN, /* no data: the rank has taken the last FRAME_INPUT */
    FRAME_DONE,        /* no data: all ranks of that host have ended */
    FRAME_LOST,        /* a sentence: why that host is unreachable */
    FRAME_PAGES,       /* reply to FRAME_QUERY: status pages of its ranks; rank: the query's number */
    /* down the tree: mpiexec to agent */
    FRAME_CHALLENGE, /* reply to FRAME_HELLO (proof.h) */
    FRAME_TREE,      /* tree.h: further hosts below this agent */
    FRAME_PLAN,      /* the encoded plan of that host (plan.h) */
    FRAME_INPUT,     /* bytes; none: end of file */
    FRAME_SIGNAL,    /* signal number, 4 bytes */
    FRAME_PAUSE,     /* 4 bytes, 1: stop reading the output of ranks, 0: continue */
    FRAME_QUERY,     /* no data: requests the status pages of that host; rank: the query's number */
    FRAME_KILL,      /* no data: kill that rank */
    FRAME_DIED,      /* 8 bytes, hash of a job's name: that rank of the job died */
    /* both directions */
    FRAME_PMI,  /* bytes of PMI-1 commands or replies */
    FRAME_BEAT, /* heartbeat; 4 bytes: its interval in ms (link_start_heartbeat) */
    FRAME_LAST = FRAME_BEAT,
};

struct frame_head {
    enum frame type;
    uint32_t host, rank;
    size_t len;
};

enum link_parsed { LINK_MORE, LINK_FRAME, LINK_BAD };

/* Parses the frame at the start of these bytes, at most `max` bytes; complete once its head and `len` bytes
 * have arrived. */
enum link_parsed link_parse(const char *data, size_t size, size_t max, struct frame_head *out);

struct link {
    struct loop *loop;
    struct watch w;
    struct buf in, out;
    bool sealed; /* both ends have proved themselves; before, only short frames are accepted */
    struct seal seal_in, seal_out;
    struct timer beat;
    uint32_t beat_ms;  /* interval of heartbeats; 0: none are sent or expected */
    unsigned silent;   /* consecutive beat intervals without received data */
    bool has_received; /* data arrived since the last beat */
    void (*frame)(void *ctx, const struct frame_head *head, const char *data);
    void (*closed)(void *ctx, const char *why);
    void (*drained)(void *ctx); /* all queued frames are sent; may be NULL */
    void *ctx;
};

/* Takes ownership of the socket. */
void link_open(struct link *k, struct loop *l, int fd);
void link_close(struct link *k);

/* Ends sending; the peer closes when it has read everything, which closed() reports. Closing a link with
 * unread frames would make TCP send a reset, and data that the peer has not read would be lost. */
void link_shutdown_send(struct link *k);

/* Starts authentication: from now on every frame carries a code. Called when the peer has proved itself. */
void link_start_authentication(struct link *k, const uint8_t key_in[SHA256_SIZE],
                               const uint8_t key_out[SHA256_SIZE]);

/* Starts heartbeats in both directions; a peer that is silent for `seconds` to 1.25 * `seconds` counts as
 * lost. Heartbeats also detect a stopped process and a host that is cut off while data are in flight,
 * which TCP alone reports only after many minutes. Only on a sealed link; 0: no heartbeats. */
void link_start_heartbeat(struct link *k, uint32_t seconds);

void link_send(struct link *k, const struct frame_head *head, const void *data);
void link_send_u32(struct link *k, enum frame type, uint32_t host, uint32_t rank, uint32_t value);

/* Appends a frame to a buffer, for a link that is not open yet. */
void link_append_frame(struct buf *out, const struct frame_head *head, const void *data);
void link_send_frames(struct link *k, struct buf *frames);

/* Reads the first four bytes of a frame as a number; false if there are fewer. */
bool link_read_u32(const char *data, size_t len, uint32_t *out);

/* Sends queued frames; blocks at most `ms` milliseconds. */
void link_flush(struct link *k, uint64_t ms);

#endif
