/* rendezvous_putnr.c: PUTNR: the receiver starts: a posted receive sets its last byte to a constant and is
 * offered to the sender, whose message is then written there at once. The receiver looks at that byte; only
 * where the byte does not change is it told [Takagi13 2.2, steps PR1, PR2, PS1 to PS3].
 *
 *     sender                         receiver
 *       <------------------------- RTR   posted: address, key, room, last byte
 *       write =========================> the last byte has changed: complete
 *       WRITTEN - - - - - - - - - - - -> only when the byte is the same, or the message shorter than the room
 *     complete when the write is done
 *
 * Which message belongs into which receive: offers.h. The transfer is that of PUT: offer.c, write.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/engine.h"

static COUNTER(putnrs, "p2p_rendezvous_putnr",
               "Large messages written into an offered receive whose last byte was a constant.");

/* Zero: what the last byte of a message of numbers often is, so the price of a constant can be seen. */
uint8_t putnr_last_byte(struct p2p *p)
{
    (void)p;
    return 0;
}

void putnr_used(void)
{
    counter_add(&putnrs, 1);
}
