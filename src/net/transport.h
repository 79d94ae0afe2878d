/* transport.h: the interface between the transports, which move bytes, and everything above. A transport
 * offers frames (small, ordered per peer, flow-controlled), put and get, memory registration, poll and arm.
 * It never sees a tag, a communicator or a protocol. Nothing above src/net reads the name of a transport:
 * it reads capabilities.
 *
 * When resources are exhausted the result is ERR_AGAIN; a transport has no queue of its own. net/peer.h
 * queues in order.
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

/* The 24 bytes that travel with every frame. They belong to the layer above. With the transport's own 8 bytes
 * and 32 bytes of payload they fill one cache line, so an 8-byte message costs one line. */
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

/* The header as three words in registers: a sender that builds it in memory pays for reading it back at
 * another width (failed store forwarding), which is a good part of the cost of a small message. */
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
    bool once; /* a put that must not be repeated after a failure: others may have changed the word */
};

/* What the layer above knows of a put or get whose connection failed before its end. A receiver that polls bytes in memory
 * (caps.last_byte_last) may have seen that end, and given the memory back to the program. */
enum net_fate {
    NET_FATE_REPEAT, /* the transfer can be repeated: nobody uses its memory before it is reported as done */
    NET_FATE_DONE,   /* this process has seen the end of the transfer */
    NET_FATE_ASK /* the peer may have seen the end, and knows the transfer by a number (net.has_arrived) */
};

/* Registered memory as the owner sees it, and the bytes a peer needs to reach it. */
struct net_mem {
    uint64_t address;
    uint64_t length;
    void *handle; /* the transport's own */
};
struct net_key {
    uint64_t word[2];
};

/* Recent cost of registering memory: ns for a registration, and ns for each 64 KiB. 0: unknown, or free. */
struct net_pin {
    uint32_t base_ns, unit_ns;
};

/* Memory of this process and of a peer. */
struct net_piece {
    void *local;
    uint64_t remote;
    size_t length;
};
#define NET_PIECES_MAX 64

/* A change of a word of 8 bytes by an adapter. */
struct net_atomic {
    bool swap; /* sets the word to `value` if it is `operand`; else adds `operand` */
    uint64_t operand, value;
};

struct transport;

/* A barrier that the network itself performs, among processes that have joined a group. One of them gets a group and sends it to the
 * others its number; all join; nobody may enter before all have joined. The group is free when the last one has left it. */
struct transport_barrier {
    int (*get)(const struct transport_barrier *b, uint32_t *group); /* ERR_AGAIN: all groups are in use */
    void (*give_back)(const struct transport_barrier *b, uint32_t group); /* nobody has joined */
    void *(*join)(const struct transport_barrier *b, uint32_t group);     /* NULL: no memory */
    void (*enter)(const struct transport_barrier *b, void *member);
    bool (*over)(const struct transport_barrier *b,
                 void *member); /* true once after enter; rings no doorbell */
    void (*leave)(const struct transport_barrier *b, void *member);
};

/* Packets that the network itself copies to all who have joined a group: lost, doubled and reordered at will (group.h makes
 * messages of them). A member has receive buffers, and slots that packets are built in. Closing a member leaves the group. */
struct net_packet {
    void *data;
    uint32_t length;
    uint32_t handle; /* the transport's own */
};
struct transport_multicast {
    size_t (*packet_max)(struct transport *t);
    /* Opens a multicast group; all members pass the same number. An error leaves its reason in err_detail(). */
    int (*open)(struct transport *t, uint64_t group, uint32_t receives, uint32_t slots, void **member);
    /* From now on packets are polled for, and wake a process that sleeps. Those that came earlier have waited. */
    void (*begin)(void *member);
    void *(*slot)(void *member, uint32_t i);
    bool (*busy)(void *member, uint32_t i); /* the slot must not be written: its packet is being sent */
    int (*send)(void *member, uint32_t i, size_t len); /* ERR_AGAIN: the send queue is full */
    int (*poll)(void *member, struct net_packet *out, int most);
    void (*give_back)(void *member, uint32_t handle); /* the packet has been read */
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
    bool adds_beside_cpu; /* ... also while processors change the same words by atomic instructions */
    const struct transport_barrier *barrier; /* NULL: the network has no barriers */
    const struct transport_barrier *wires;   /* a network that has only barriers, and one group; NULL: none */
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

    /* True when the peer can be reached this way; decides once, when the peer is first used. */
    bool (*reaches)(struct transport *t, uint32_t rank);

    /* The same for processes of other worlds (net/guest.h), and both may be NULL: writes what they need to reach this
     * process on its card, and checks whether this process reaches the one with that card. */
    void (*card)(struct transport *t, struct net_card *card);
    bool (*reaches_card)(struct transport *t, const struct net_card *card);

    /* Fills peer->endpoint and peer->caps. May start a handshake: frames then return ERR_AGAIN until it is
     * over. */
    int (*connect)(struct transport *t, struct peer *peer);
    void (*disconnect)(struct transport *t, struct peer *peer);

    /* May be NULL. The connection to a guest is given up, by both ends at about the same time. begin: starts to close
     * it; else: returns when it is closed, making progress meanwhile. */
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

    /* The same in two steps, for payload that is produced in place (packing): reserve gives at least len
     * writable bytes, commit sends them. Nothing may happen on the peer between the two. */
    int (*reserve)(struct peer *peer, size_t len, void **payload);
    void (*commit)(struct peer *peer, const struct frame_header *header, size_t len);

    /* One-sided transfers of any length, at least 1. 0: op->done will be called or has been; ERR_AGAIN:
     * nothing happened, and the caller comes again (the send queue is full, the connection is being opened);
     * another error: nothing happened and nothing will. `mem` is the registration of the local memory.
     * A silent put (op and mem are NULL) has taken its data when it returns 0; its arrival is not reported. */
    int (*put)(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
               const struct net_key *key, size_t len, struct net_op *op);
    int (*get)(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
               const struct net_key *key, size_t len, struct net_op *op);

    /* Where this processor moves the bytes (caps.cpu_moves), else NULL: several puts or gets at once, 1 to NET_PIECES_MAX of them, done
     * when it returns. Their bytes appear in any order. 0, or an error class. */
    int (*move)(struct peer *peer, bool put, const struct net_piece *pieces, size_t count);

    /* Changes a word of the peer (8 bytes, aligned) and brings back what was there, as get does. Atomic towards other
     * changes by this adapter only: a processor's atomic instruction may come between. Requests of up to 256 bytes to one peer
     * are carried out in the order of the calls: a put or get after an addition finds it done, a get after a put finds the
     * data. */
    int (*atomic)(struct peer *peer, const struct net_atomic *change, uint64_t *old,
                  const struct net_mem *mem, uint64_t remote, const struct net_key *key, struct net_op *op);

    /* The same on memory of this process, by the adapter that peers use; done when it returns. atomic_open, once or more often
     * before it: 0, or an error with a sentence. */
    int (*atomic_open)(struct transport *t);
    int (*atomic_here)(struct transport *t, const struct net_atomic *change, uint64_t *old, void *word,
                       const struct net_key *key);

    /* Makes memory reachable for put and get. */
    int (*mem_register)(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                        struct net_key *key);
    void (*mem_release)(struct transport *t, struct net_mem *mem);
    /* The same for one piece of a message, which stays a piece. NULL: memory cannot be registered in pieces. */
    int (*mem_register_piece)(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                              struct net_key *key);

    /* Delivers what has arrived through net->deliver; returns the number of events handled, bounded. The cost
     * does not depend on the number of idle peers. */
    int (*poll)(struct transport *t);

    /* Before sleeping: from now on an arrival rings net->doorbell. Returns false when something has arrived
     * already, and then the caller must poll instead of sleeping. */
    bool (*arm)(struct transport *t);
    void (*disarm)(struct transport *t); /* may be NULL */

    /* NULL but for the transport between processes of a node (net->local). The doorbell of a process of this node, by its rank in
     * the job. */
    struct doorbell *(*doorbell)(const struct transport *t, uint32_t rank);

    /* NULL where there are no adapters. The ports of this node, each with the reason why it is used or not;
     * t is NULL outside of a job that uses the transport. The caller frees *ports. */
    int (*ports)(struct transport *t, struct net_port **ports, uint32_t *count);
};

/* mem_register and mem_release of a transport that reaches all memory of its peers. */
int transport_register_nothing(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                               struct net_key *key);
void transport_release_nothing(struct transport *t, struct net_mem *mem);

#endif
