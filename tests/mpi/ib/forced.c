/* forced.c: the test p2p/forced.c over InfiniBand, each rank on a separate node.
 *
 * ranks: 2
 * nodes: only 2
 * env: FISHPLATE_RENDEZVOUS=r3
 * also: FISHPLATE_RENDEZVOUS=rput
 * also: FISHPLATE_RENDEZVOUS=getcqe
 * also: FISHPLATE_RENDEZVOUS=get FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=putnr FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=put FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=split
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/forced.c"
