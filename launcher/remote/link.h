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
    FRAME_HELLO = 1, /* proof.h: the three messages before anything else */
    FRAME_PROOF,
    FRAME_OUTPUT,      /* bytes; none: ended */
    FRAME_ERROR,       /* bytes of standard error; none: ended */
    FRAME_STARTED,     /* process id, 4 bytes */
    FRAME_FAILED,      /* exit status, 4 bytes, and a sentence */
    FRAME_EXITED,      /* waitpid's status, 4 bytes */
    FRAME_INPUT_TAKEN, /* nothing */
    FRAME_DONE,        /* nothing: all of that host's ranks have ended */
    FRAME_LOST,        /* a sentence: that host cannot be reached, or no longer */
    FRAME_PAGES,       /* reply to FRAME_QUERY: status pages of its ranks; rank: the query's number */
    /* down the tree: mpiexec to agent */
    FRAME_CHALLENGE, /* proof.h */
    FRAME_TREE,      /* tree.h: further hosts below this agent */
    FRAME_PLAN,      /* plan.h */
    FRAME_INPUT,     /* bytes; none: end of file */
    FRAME_SIGNAL,    /* number, 4 bytes */
    FRAME_PAUSE,     /* 0 or 1, 4 bytes */
    FRAME_QUERY,     /* no data: requests the status pages of that host; rank: the query's number */
    FRAME_KILL,      /* nothing: end that rank */
    FRAME_DIED,      /* the job's name: that rank of it died */
    /* both */
    FRAME_PMI,  /* bytes */
    FRAME_BEAT, /* milliseconds from one to the next, 4 bytes: this end is there (link_start_heartbeat) */
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
    bool sealed; /* until then only short frames are accepted, and nothing but a greeting is sent */
    struct seal seal_in, seal_out;
    struct timer beat;
    uint32_t beat_ms;  /* 0: none are sent, nor expected */
    unsigned silent;   /* consecutive beat intervals without received data */
    bool has_received; /* data arrived since the last beat */
    void (*frame)(void *ctx, const struct frame_head *head, const char *data);
    void (*closed)(void *ctx, const char *why);
    void (*drained)(void *ctx); /* nothing waits to be sent any more; may be NULL */
    void *ctx;
};

/* The socket now belongs to the link. */
void link_open(struct link *k, struct loop *l, int fd);
void link_close(struct link *k);

/* Sends no more frames; the peer closes when it has read everything, which closed() reports. Closing a link
 * with unread frames would make TCP send a reset, and data that the peer has not read would be lost. */
void link_shutdown_send(struct link *k);

/* The other end has proved itself: from now on every frame has its code. */
void link_seal(struct link *k, const uint8_t key_in[SHA256_SIZE], const uint8_t key_out[SHA256_SIZE]);

/* From now on both ends send beats; a peer that is silent for `seconds` to 1.25 times `seconds` is given up.
 * This also detects a stopped process and a host that is cut off while data are in flight, which TCP alone
 * reports only after many minutes. Only on a sealed link; 0: no beats. */
void link_start_heartbeat(struct link *k, uint32_t seconds);

void link_send(struct link *k, const struct frame_head *head, const void *data);
void link_send_u32(struct link *k, enum frame type, uint32_t host, uint32_t rank, uint32_t value);

/* Appends a frame to a buffer, for a link that is not open yet. */
void link_frame(struct buf *out, const struct frame_head *head, const void *data);
void link_send_frames(struct link *k, struct buf *frames);

/* The first four bytes of a frame as a number; false when there are fewer. */
bool link_u32(const char *data, size_t len, uint32_t *out);

/* Sends queued frames; blocks at most `ms` milliseconds. */
void link_flush(struct link *k, uint64_t ms);

#endif
