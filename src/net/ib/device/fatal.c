/* fatal.c: ends the job with a message that names the peer, the device and the failure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "boot/boot.h"
#include "net/guest.h"
#include "net/ib/ib.h"

void ib_fatal(struct ib *ib, const struct ib_endpoint *ep, const char *fmt, ...)
{
    char text[400], sentence[800], where[64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (ep && ep->peer->card)
        snprintf(where, sizeof(where), "of another job");
    else if (ep)
        snprintf(where, sizeof(where), "on %s node, node %u", ep->peer->local ? "this" : "another",
                 ep->peer->node);
    if (ep)
        snprintf(sentence, sizeof(sentence),
                 "the connection to rank %u (%s) over %s failed: %s. If that rank is still running, check %s",
                 ep->peer->card ? ep->peer->card->rank : ep->peer->rank, where, ib->device.name, text,
                 ib->device.verbs.softib ? "the messages of softib above"
                                         : "the cable, the port and the switch");
    else if (strncmp(text, ib->device.name, strlen(ib->device.name)) == 0)
        snprintf(sentence, sizeof(sentence), "%s", text);
    else
        snprintf(sentence, sizeof(sentence), "%s: %s", ib->device.name, text);
    if (!ep && ib->base.net->lost) { /* the failure concerns only this rank */
        log_error("%s. This rank ends, the others go on (-enable-recovery)", sentence);
        _exit(1);
    }
    boot_abort(ib->base.net->boot, 1, sentence);
}
