/* transport.h: the interface of a transport, which moves bytes between processes. A transport offers frames
 * (small, ordered per peer, flow-controlled), put and get, memory registration, poll and arm. It never sees a
 * tag, a communicator or a protocol. Layers above src/net never test the name of a transport, only its
 * capabilities.
 *
 * When resources are exhausted an operation returns ERR_AGAIN; a transport has no queue of its own.
 * net/peer.h queues the work of each peer in order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_TRANSPORT_H
#define FP_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot;
struct doorbell;
struct net;
struct net_card;
struct net_port;
struct peer;

/* The 24-byte header of every frame, defined by the layer above. With the transport's own 8 bytes and 32
 * bytes of payload it fills one cache line, so a message of 8 bytes costs one line. */
struct frame_header {
    uint8_t kind; /* protocol step: selects the handler of the layer above */
    uint8_t flags;
    uint16_t aux;
    uint32_t context;
    int32_t source;
    int32_t tag;
    uint64_t word; /* length of the message, or a cookie */
};
_Static_assert(sizeof(struct frame_header) == 24, "a header and 32 bytes of payload fill one cache line");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "frame_head and frame_from build the header in registers");

/* The frame header is built in three 8-byte registers. If a sender wrote the header field by field into
 * memory, reading it back as 8-byte words would fail store forwarding and slow down every small message. */
static inline uint64_t frame_head(uint8_t kind, uint8_t flags, uint16_t aux, uint32_t context)
{
    return kind | (uint64_t)flags << 8 | (uint64_t)aux << 16 | (uint64_t)context << 32;
}
static inline uint64_t frame_from(int32_t source, int32_t tag)
{
    return (uint32_t)source | (uint64_t)(uint32_t)tag << 32;
}
static inline void frame_write(struct frame_header *h, uint64_t head, uint64_t from, uint64_t word)
{
    __builtin_memcpy(h, &head, 8);
    __builtin_memcpy((char *)h + 8, &from, 8);
    h->word = word;
}

/* One put or get in flight, embedded in the caller's own object. `done` runs exactly once, possibly before
 * the call that started the transfer returns. */
struct net_op {
    void (*done)(struct net_op *op, int status);
    bool once; /* a put that must not be repeated after a failure: the word may have changed since */
};

/* Whether a put or get may be repeated after its connection failed. A receiver that polls bytes in memory
 * (caps.last_byte_last) may have seen the last byte and returned the memory to the program. */
enum net_delivery_status {
    NET_DELIVERY_REPEAT, /* can be repeated: its memory is not used before its completion is reported */
    NET_DELIVERY_DONE,   /* this process has seen the end of the transfer */
    NET_DELIVERY_QUERY   /* query the peer, which may have seen the end (net.has_arrived) */
};

/* Registered memory as the owner sees it, and the bytes a peer needs to reach it. */
struct net_mem {
    uint64_t address;
    uint64_t length;
    void *handle; /* private to the transport */
};
struct net_key {
    uint64_t word[2];
};

/* Recent cost of registering memory: ns for a registration, and ns for each 64 KiB. 0: unknown, or no
 * cost. */
struct net_pin {
    uint32_t base_ns, unit_ns;
};

/* One contiguous piece of a put or get: local address, address at the peer, length in bytes. */
struct net_piece {
    void *local;
    uint64_t remote;
    size_t length;
};
#define NET_PIECES_MAX 64

/* An atomic operation of an adapter on an 8-byte word: compare and swap, or fetch and add. */
struct net_atomic {
    bool swap; /* true: set the word to `value` if it equals `operand`; false: add `operand` */
    uint64_t operand, value;
};

struct transport;

/* A barrier that the network itself performs among the processes that have joined a group. One process
 * allocates a group and sends its number to the others; all join; no process may enter before all have
 * joined. The group is free again when the last process has left it. */
struct transport_barrier {
    int (*get)(const struct transport_barrier *b, uint32_t *group); /* ERR_AGAIN: all groups are in use */
    void (*give_back)(const struct transport_barrier *b, uint32_t group); /* frees a group without members */
    void *(*join)(const struct transport_barrier *b, uint32_t group);     /* NULL: no memory */
    void (*enter)(const struct transport_barrier *b, void *member);
    bool (*over)(const struct transport_barrier *b,
                 void *member); /* true once per enter, when all have entered; rings no doorbell */
    void (*leave)(const struct transport_barrier *b, void *member);
};

/* Multicast packets, which the network copies to all members of a group. Packets may be lost, duplicated and
 * reordered (mcast_group.h adds reliability). A member has receive buffers, and slots in which packets are built.
 * Closing a member leaves the group. */
struct net_packet {
    void *data;
    uint32_t length;
    uint32_t handle; /* private to the transport */
};
struct transport_multicast {
    size_t (*packet_max)(struct transport *t);
    /* Opens a multicast group; all members pass the same number. An error leaves its reason in err_detail(). */
    int (*open)(struct transport *t, uint64_t group, uint32_t receives, uint32_t slots, void **member);
    /* After begin(), packets are polled and wake a sleeping process. Packets that arrived earlier have stayed
     * in the receive queue. */
    void (*begin)(void *member);
    void *(*slot)(void *member, uint32_t i);
    bool (*busy)(void *member, uint32_t i); /* the slot must not be written: its packet is being sent */
    int (*send)(void *member, uint32_t i, size_t len); /* ERR_AGAIN: the send queue is full */
    int (*poll)(void *member, struct net_packet *out, int most);
    void (*give_back)(void *member, uint32_t handle); /* reposts the buffer of a packet that has been read */
    void (*close)(void *member);
};

struct transport_caps {
    size_t frame_max;  /* largest payload of one frame */
    size_t inline_max; /* payload that costs no more than an empty frame */
    size_t eager_best; /* up to which size a message is best sent at once; 0: FISHPLATE_EAGER_MAX */
    bool gpu_memory;   /* puts and gets may reach GPU memory: mem_register accepts or refuses it */
    bool put, get;     /* one-sided transfers to and from the peer's private memory */
    size_t put_silent; /* bytes: longest put without op and mem; 0: every put needs both */
    bool cpu_moves; /* this processor executes puts and gets before the call returns; else an adapter does */
    bool software;  /* the adapter is a program: a processor moves the bytes */
    bool frames_spread;  /* frames take several rails in turns */
    bool put_ordered;    /* a frame sent after a put was started arrives after its data */
    bool last_byte_last; /* who sees the last byte of a put or get change sees all of its data */
    size_t striped_from; /* bytes: puts and gets of this length use several rails; 0: there is one rail */
    bool starves;        /* frames may be refused for long: the peer grants credits, which run out */
    uint32_t latency_ns; /* one-way latency of a small frame: for choosing protocols and schedules */
    uint32_t bandwidth_mbs;
};

struct transport {
    const struct transport_ops *ops;
    struct net *net;
    bool idle;            /* nothing can arrive until this process sends something: poll may be left out */
    bool inner;           /* reaches this process itself and no other */
    bool adds;            /* transport_ops.atomic works on memory that a peer has registered */
    bool adds_beside_cpu; /* as `adds`, and atomic also towards atomic instructions of processors */
    const struct transport_barrier *barrier;     /* NULL: the network has no barriers */
    const struct transport_barrier *wires;       /* a separate barrier network, with one group; NULL: none */
    const struct transport_multicast *multicast; /* NULL: the network has no multicast */
    struct net_pin pin;
    const struct net_port *port; /* port of the adapter; NULL: no adapter (shared memory) */
};

struct transport_ops {
    const char *name;
    const char *doc;

    /* Opens the transport for this process; *out stays NULL when it has nothing to offer here (not an error).
     * May publish with boot_put; what peers published may be read only in connect(). */
    int (*open)(struct net *net, struct boot *boot, struct transport **out);
    void (*close)(struct transport *t);

    /* True if this transport can reach the rank. A peer is connected, on first use, through the first
     * transport that can. */
    bool (*reaches)(struct transport *t, uint32_t rank);

    /* May be NULL. For processes of other jobs (net/guest.h): `card` writes the addresses of this process
     * into its card; `reaches_card` is true if this process can reach the process with that card. */
    void (*card)(struct transport *t, struct net_card *card);
    bool (*reaches_card)(struct transport *t, const struct net_card *card);

    /* Fills peer->endpoint and peer->caps. May start a handshake: frames then return ERR_AGAIN until it is
     * over. */
    int (*connect)(struct transport *t, struct peer *peer);
    void (*disconnect)(struct transport *t, struct peer *peer);

    /* May be NULL. Disconnects from a process of another job; both ends call `part` at about the same time.
     * begin: starts the close; else: makes progress until the connection is closed. */
    void (*part)(struct transport *t, struct peer *peer, bool begin);

    /* May be NULL. The peer has died: transfers that are under way end now with an error, and none of them touches memory
     * afterwards. Nothing will be sent to it any more. */
    void (*lost)(struct transport *t, struct peer *peer);

    /* Both may be NULL. settle: opens connections now that were requested at the start. finish: returns when
     * all that was sent has left this process for good; nothing will be sent afterwards. together: all ranks
     * of the job do this now and wait for each other. */
    int (*settle)(struct transport *t);
    void (*finish)(struct transport *t, bool together);

    /* Sends one frame: 0 (the payload has been copied or sent) or ERR_AGAIN (nothing happened). The first
     * three words are the header (frame_head, frame_from, word). */
    int (*send)(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                size_t len);

    /* Sends one frame in two steps, for payload that is packed in place: reserve returns at least len
     * writable bytes, commit sends them. No other operation on the peer may come between the two. */
    int (*reserve)(struct peer *peer, size_t len, void **payload);
    void (*commit)(struct peer *peer, const struct frame_header *header, size_t len);

    /* One-sided transfers of at least 1 byte. 0: op->done will be called or has been called. ERR_AGAIN:
     * nothing was started, and the caller retries (the send queue is full, or the connection is being
     * opened). Another error: nothing was started. `mem` is the registration of the local memory. A silent
     * put (op and mem are NULL) has copied its data when it returns 0; its completion is not reported. */
    int (*put)(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
               const struct net_key *key, size_t len, struct net_op *op);
    int (*get)(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
               const struct net_key *key, size_t len, struct net_op *op);

    /* NULL unless this processor moves the bytes (caps.cpu_moves). Executes 1 to NET_PIECES_MAX puts or gets
     * before it returns. Their bytes become visible in any order. Returns 0, or an error class. */
    int (*move)(struct peer *peer, bool put, const struct net_piece *pieces, size_t count);

    /* Atomic operation on an aligned 8-byte word of the peer; the previous value is stored in *old as by a
     * get. Atomic only towards operations of the same adapter: a processor's atomic instruction may come
     * between read and write. Requests of up to 256 bytes to one peer are executed in the order of the calls:
     * a put or get after an atomic operation sees its result, a get after a put sees the data. */
    int (*atomic)(struct peer *peer, const struct net_atomic *change, uint64_t *old,
                  const struct net_mem *mem, uint64_t remote, const struct net_key *key, struct net_op *op);

    /* Atomic operation on memory of this process, executed by the adapter that peers use; complete when the
     * call returns. atomic_open must precede it, once or more often: 0, or an error with a message. */
    int (*atomic_open)(struct transport *t);
    int (*atomic_here)(struct transport *t, const struct net_atomic *change, uint64_t *old, void *word,
                       const struct net_key *key);

    /* Makes memory reachable for put and get. */
    int (*mem_register)(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                        struct net_key *key);
    void (*mem_release)(struct transport *t, struct net_mem *mem);
    /* Registers one piece of a larger buffer, without extending it to adjacent cached ranges. NULL: memory
     * cannot be registered in pieces. */
    int (*mem_register_piece)(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                              struct net_key *key);

    /* Delivers what has arrived through net->deliver; returns the number of events handled, bounded. The cost
     * does not depend on the number of idle peers. */
    int (*poll)(struct transport *t);

    /* Before sleeping: from now on an arrival rings net->doorbell. Returns false when something has arrived
     * already, and then the caller must poll instead of sleeping. */
    bool (*arm)(struct transport *t);
    void (*disarm)(struct transport *t); /* may be NULL */

    /* Returns the doorbell of a process of this node, by job rank. NULL except for the transport between
     * processes of a node (net->local). */
    struct doorbell *(*doorbell)(const struct transport *t, uint32_t rank);

    /* Lists the ports of this node, each with the reason why it is used or not. NULL if the transport has no
     * adapters. t is NULL outside of a job that uses the transport. The caller frees *ports. */
    int (*ports)(struct transport *t, struct net_port **ports, uint32_t *count);
};

/* For a transport that can access all memory of its peers without registration. */
int transport_register_nothing(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                               struct net_key *key);
void transport_release_nothing(struct transport *t, struct net_mem *mem);

#endif
