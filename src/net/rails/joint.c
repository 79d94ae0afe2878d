/* joint.c: the state machine by which two processes connect a pair of rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/joint.h"

static unsigned joint_create_if_wanted(struct joint *j)
{
    if (j->state != JOINT_APART || !j->wanted || j->unsettled)
        return 0;
    j->state = JOINT_MADE;
    return JOINT_DO_CREATE | JOINT_DO_SAY;
}

/* Continues the handshake if the report has the generation of this end. */
static unsigned continue_handshake(struct joint *j, const struct joint_said *said)
{
    unsigned actions = 0;
    if (j->unsettled) {
        j->unsettled = false;
        actions |= JOINT_DO_SETTLE;
    }
    actions |= joint_create_if_wanted(j);
    if (j->state == JOINT_MADE && said->made) {
        j->state = JOINT_READY;
        actions |= JOINT_DO_CONNECT | JOINT_DO_SAY;
    }
    if (j->state == JOINT_READY && said->joined) {
        j->state = JOINT_USED;
        actions |= JOINT_DO_USE;
    }
    return actions;
}

unsigned joint_receive(struct joint *j, const struct joint_said *said)
{
    unsigned actions = 0;
    if ((int32_t)(said->generation - j->generation) < 0)
        return 0; /* sent before the peer received the newer generation */
    if (said->generation != j->generation) {
        if (j->state != JOINT_APART)
            actions = JOINT_DO_DROP;
        actions |= JOINT_DO_SAY;
        j->state = JOINT_APART;
        j->generation = said->generation;
        j->unsettled = true; /* the peer dropped its end before it sent the message */
    }
    return actions | continue_handshake(j, said);
}

unsigned joint_separate(struct joint *j)
{
    if (j->state == JOINT_APART)
        return 0;
    j->state = JOINT_APART;
    j->generation++;
    j->unsettled = true;
    return JOINT_DO_DROP | JOINT_DO_SAY;
}

unsigned joint_set_wanted(struct joint *j, bool wanted)
{
    j->wanted = wanted;
    return wanted ? joint_create_if_wanted(j) : joint_separate(j);
}
