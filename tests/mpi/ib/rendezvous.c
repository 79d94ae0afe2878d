/* rendezvous.c: the test p2p/crossing.c over InfiniBand, with every protocol forced, with adapters that
 * write the last byte last and that do not, with and without shared receive queues, and with too few
 * credits.
 *
 * ranks: 2
 * nodes: only 2
 * also: FISHPLATE_RENDEZVOUS=rput
 * also: FISHPLATE_RENDEZVOUS=getcqe
 * also: FISHPLATE_RENDEZVOUS=get FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=putnr FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=put FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=put FISHPLATE_LAB=IB_LAST_BYTE=no
 * also: FISHPLATE_RENDEZVOUS=put FISHPLATE_LAB=IB_LAST_BYTE=yes FISHPLATE_IB_RECEIVE=shared
 * also: FISHPLATE_RENDEZVOUS=split
 * also: FISHPLATE_RENDEZVOUS=r3
 * also: FISHPLATE_LAB=IB_FLOW=static FISHPLATE_IB_BUFFERS=2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/crossing.c"
