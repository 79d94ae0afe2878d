/* guest.h: processes of other MPI_COMM_WORLDs ("guests"), known since a spawn, an accept or a connect.
 *
 * The layers above identify a process by one number: below net->size it is the rank in this world, from
 * net->size on a guest. Each process numbers its guests in the order of connection and never reuses a number,
 * so a group that still contains a departed guest cannot denote a later one. The record of a departed guest
 * is freed. Two processes identify a third one to each other by its world and its rank there.
 *
 * A process that never connects to another world has no table, opens no devices and polls nothing for guests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_GUEST_H
#define FP_NET_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net;
struct peer;

/* The identity and addresses of a process, exchanged between jobs: fixed layout, little-endian. */
struct net_card {
    uint64_t world;   /* hash of the job's name */
    uint32_t rank;    /* in that world */
    int32_t vnode;    /* -1: its node is not virtual */
    uint64_t machine; /* processes with the same number see each other under /proc */
    uint64_t fabric;  /* hash of SOFTIB_FABRIC, the name of the software fabric; 0: not set */
    int32_t pid;
    int32_t inbox_fd; /* memory file to which others write frames; -1: none */
    int32_t bell_fd;  /* memory file of the doorbell; -1: in the inbox */
    uint32_t has_ib;
    uint64_t bell_offset;
    uint64_t probe_address,
        probe_value; /* address in private memory, and the value there, by which others test access */
    uint8_t ib[32];  /* struct ib_address */
};
_Static_assert(sizeof(struct net_card) == 104, "travels between processes");

/* Writes the card of this process; opens the sockets and devices through which other jobs reach it. */
int net_fill_card(struct net *net, struct net_card *out);

/* Returns the number of the process with this card: its rank if it is of this world, the number of a known
 * guest, or a new number without references. */
int net_guest_add(struct net *net, const struct net_card *card, uint32_t *number);

/* Finds the number of a process; false if it is unknown. */
bool net_guest_find_number(const struct net *net, uint64_t world, uint32_t rank, uint32_t *number);

/* The identity of a process in one word: a hash, different for all processes that meet, and never less than
 * NET_GUEST_ID_MIN. */
#define NET_GUEST_ID_MIN 2
uint64_t net_guest_id(uint64_t world, uint32_t rank);

/* Finds the number of the guest with this identity; false if it is unknown. */
bool net_guest_find_id(const struct net *net, uint64_t id, uint32_t *number);

/* The card of a guest; NULL for processes of this world and for guests who are gone. */
const struct net_card *net_guest_get_card(const struct net *net, uint32_t number);

/* The location of the connection to a process of this world or a guest; NULL for guests that have left. */
struct peer **net_peer_slot(struct net *net, uint32_t number);

/* The flag that a guest has died (net/lost.h); NULL for processes of this world and guests that have left. */
bool *net_guest_dead_flag(const struct net *net, uint32_t number);

/* The identity of a process, the same in every job: its job and its rank there. */
struct net_name {
    uint64_t world;
    uint64_t rank;
};
struct net_name net_process_name(const struct net *net, uint32_t number);

/* Checks that the process can be reached. Returns 0, or an error with its text in err_detail(). */
int net_guest_check_reachable(struct net *net, uint32_t number);

/* Communicators hold references to their guests. Numbers of this world are ignored. */
void net_guest_retain(struct net *net, uint32_t number);
void net_guest_release(struct net *net, uint32_t number);
bool net_guest_is_shared(const struct net *net, uint32_t number); /* more than one reference is held */

/* Watches the guest's process: this process is notified of its end, as far as the kernel can report it (on the same
 * machine). For guests of a job that another mpiexec started; for spawned jobs the launcher reports deaths. */
void net_guest_watch(struct net *net, uint32_t number);
bool net_guest_is_on_this_machine(const struct net *net, uint32_t number);
/* True if a guest on this machine has ended or is ending, also if that was not reported yet. */
bool net_guest_is_gone(const struct net *net, uint32_t number);
/* True if the launcher or the kernel has reported the end of a guest: it writes nothing any more. */
bool net_guest_has_ended(const struct net *net, uint32_t number);

/* Disconnects from guests without references; both ends close the connection. Waits. */
void net_guests_disconnect_unused(struct net *net);

/* Frees all guests and their connections. Called by net_close. */
void net_guests_close(struct net *net);

#endif
