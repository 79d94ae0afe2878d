/* net.c: start, end and table of operations of the TCP/UDP wire.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/net.h"
#include "net/greet.h"
#include "net/poll.h"
#include "net/remote.h"
#include "net/switch.h"
#include "net/udp.h"

static void on_route_found(uint32_t port, const struct in_addr *me)
{
    if (me)
        group_set_source_address(*me);
    udp_release_waiting(port);
}

static const struct conn_user user = {
    .frame = remote_handle_frame,
    .payload = remote_handle_payload,
    .segment = remote_build_next_segment,
    .lost = remote_connection_lost,
    .routed = on_route_found,
};

const struct wire net_wire = {
    .lock = net_lock,
    .unlock = net_unlock,
    .attach = remote_attach,
    .detach = remote_detach,
    .progress = remote_progress,
    .reserve = remote_reserve,
    .moved = remote_path_changed,
    .quiet = remote_stop_transfers,
    .retract = remote_end_region_transfers,
    .datagram = udp_send_datagram,
    .multicast = group_send,
    .group = group_join,
    .to_switch = net_to_switch,
    .from_switch = net_from_switch,
};

const struct attendant net_attendant = {
    .poll = net_poll, .armed = net_on_cq_armed, .sleep = net_sleep, .woke = net_after_wakeup};

bool net_read_key(void)
{
    uint8_t key[KEY_BYTES];
    char err[4400];
    if (!key_read(key, err, sizeof(err))) {
        softib_log("%s", err);
        errno = EACCES;
        return false;
    }
    key_set_fabric_key(key, proc.fab.id);
    secret_wipe(key, sizeof(key));
    return true;
}

bool net_listen(uint32_t slot)
{
    uint16_t port = (uint16_t)(proc.fab.base_of[proc.fab.node] + slot);
    if (!greet_listen(port))
        return false;
    if (udp_bind(port))
        return true;
    greet_reset_after_fork();
    return false;
}

static void net_tick(uint64_t now)
{
    conn_tick(now);
    greet_tick(now);
    switch_net_tick(now);
    udp_tick();
    conn_free_closed();
    greet_free_finished();
}

bool net_start(void)
{
    conn_user = &user;
    return loop_start(net_handle_ready, net_tick) && greet_start() && udp_start(udp_ready);
}

void net_reset_after_fork(void)
{
    conn_reset_after_fork();
    loop_reset_after_fork();
    greet_reset_after_fork();
    udp_reset_after_fork();
    group_reset_after_fork();
}
