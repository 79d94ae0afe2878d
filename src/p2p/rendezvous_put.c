/* rendezvous_put.c: PUT: the receiver starts, like PUTNR, but sets the last byte at random, so that the data
 * changes it nearly always, whatever the program sends [Takagi13 3.2, step PR1'].
 *
 *     sender                         receiver
 *       <------------------------- RTR   posted: address, key, room, last byte
 *       write =========================> the last byte has changed: complete
 *       WRITTEN - - - - - - - - - - - -> one time in 256, or when the message is shorter than the room
 *     complete when the write is done
 *
 * Which message belongs into which receive: offers.h. The transfer: offer.c, write.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/engine.h"

static COUNTER(writes, "p2p_rendezvous_put",
               "Large messages written into an offered receive whose last byte was random.");

uint8_t put_last_byte(struct p2p *p)
{
    p->dice = p->dice * 1664525u + 1013904223u;
    return (uint8_t)(p->dice >> 24);
}

void put_used(void)
{
    counter_add(&writes, 1);
}
