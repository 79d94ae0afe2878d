/* reserve.pml: the reservation of rails at both ends [Coll01 3] as a model, written from the table in lab/mechanisms/rails/reserve.h and not
 * from the code. Each node has one process that sends MESSAGES messages to one other node, one after the other, each over one of the
 * rails that are granted (striping ratio 0). Frames between the two adapters of a rail arrive in order.
 *
 *     -DNODES=3 -DRAILS=2 -DMESSAGES=1 -DBOUND=1    the size
 *     -DTO0=1 -DTO1=2 -DTO2=0                       whom each node sends to
 *     -DPRINTED                                     the tie-break as the paper prints it
 *
 * Everything that can happen by itself is a process, so that weak fairness is fair to each: a process that asks, the next frame of
 * a wire, a stripe that arrives. What happens is one step, and says so in a line that tests/spin/replay.c follows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NODES
#define NODES 3
#endif
#ifndef RAILS
#define RAILS 1
#endif
#ifndef MESSAGES
#define MESSAGES 1
#endif
#ifndef BOUND
#define BOUND 1
#endif
#ifndef TO0
#define TO0 1
#define TO1 2
#define TO2 0
#endif

#define TO(n)         ((n) == 0 -> TO0 : ((n) == 1 -> TO1 : TO2))
#define WIRE(r, f, t) wire[((r) * NODES + (f)) * NODES + (t)]
#define NIC(n, r)     ((n) * RAILS + (r))
#define NOBODY        255
#define NO_RAIL       255

#ifdef PRINTED
#define STRONGER(mine, theirs) ((mine) != (theirs))
#else
#define STRONGER(mine, theirs) ((mine) > (theirs))
#endif

mtype = { RTS, CTS, NACK, ABORT, ACK };
mtype = { FREE, RESERVED, RECEIVING, RECEIVING_OUT, SENDING };

chan wire[RAILS * NODES * NODES] = [4] of { mtype, short };

/* Adapters. */
mtype state[NODES * RAILS];
short counter[NODES * RAILS];
short asked_with[NODES * RAILS];
byte granted_to[NODES * RAILS];

/* Processes: sets of rails are bits. */
byte left[NODES];
byte waiting[NODES];
byte granted[NODES];
byte data[NODES];
byte last[NODES];

/* A process takes one of the granted rails, the next after the last one, and gives the others back. */
inline decide(n, r)
{
    if
    :: granted[n] ->
        if
        :: last[n] == NO_RAIL -> last[n] = 0
        :: else -> last[n] = (last[n] + 1) % RAILS
        fi;
        do
        :: !(granted[n] & (1 << last[n])) -> last[n] = (last[n] + 1) % RAILS
        :: else -> break
        od;
        left[n]--;
        data[n] = 1 << last[n];
        r = 0;
        do
        :: r < RAILS ->
            if
            :: (granted[n] & (1 << r)) && r != last[n] ->
                state[NIC(n, r)] = FREE;
                WIRE(r, n, TO(n))!ABORT, 0
            :: else
            fi;
            r++
        :: else -> break
        od;
        granted[n] = 0
    :: else
    fi;
    r = 0
}

/* The adapter of rail `at` tells its process. */
inline answer(n, at, yes, r)
{
    waiting[n] = waiting[n] & ~(1 << at);
    if
    :: yes -> granted[n] = granted[n] | (1 << at)
    :: else
    fi;
    if
    :: waiting[n] == 0 -> decide(n, r)
    :: else
    fi
}

#define SAYS \
    printf("state %d %d %e %d %d\n", me, rail, state[NIC(me, rail)], counter[NIC(me, rail)], granted_to[NIC(me, rail)])

/* A process that has a message asks all rails that are free. */
#define CAN_ASK(n) \
    (left[n] && !waiting[n] && !data[n] && (state[NIC(n, 0)] == FREE || state[NIC(n, RAILS - 1)] == FREE))

proctype asks(byte me)
{
    byte rail;
end:
    do
    :: d_step {
        CAN_ASK(me) ->
        printf("asks %d\n", me);
        rail = 0;
        do
        :: rail < RAILS ->
            if
            :: state[NIC(me, rail)] == FREE ->
                state[NIC(me, rail)] = RESERVED;
                asked_with[NIC(me, rail)] = counter[NIC(me, rail)];
                waiting[me] = waiting[me] | (1 << rail);
                WIRE(rail, me, TO(me))!RTS, counter[NIC(me, rail)]
            :: else
            fi;
            rail++
        :: else -> break
        od;
        rail = 0
       }
    od
}

/* The next frame of a wire reaches the adapter of `me`. */
proctype hears(byte rail; byte from; byte me)
{
    mtype kind;
    short with;
    byte r;
end:
    do
    :: d_step {
        WIRE(rail, from, me)?kind, with ->
        printf("frame %d %d %d\n", rail, from, me);
        if
        :: kind == RTS ->
            if
            :: state[NIC(me, rail)] == FREE ->
                state[NIC(me, rail)] = RECEIVING;
                granted_to[NIC(me, rail)] = from;
                WIRE(rail, me, from)!CTS, 0
            :: state[NIC(me, rail)] == RESERVED ->
                if
                :: asked_with[NIC(me, rail)] > with || (asked_with[NIC(me, rail)] == with && STRONGER(me, from)) ->
                    if
                    :: counter[NIC(me, rail)] > -BOUND -> counter[NIC(me, rail)]--
                    :: else
                    fi;
                    WIRE(rail, me, from)!NACK, 0
                :: else ->
                    if
                    :: counter[NIC(me, rail)] < BOUND -> counter[NIC(me, rail)]++
                    :: else
                    fi;
                    state[NIC(me, rail)] = RECEIVING_OUT;
                    granted_to[NIC(me, rail)] = from;
                    WIRE(rail, me, from)!CTS, 0
                fi
            :: else ->
                WIRE(rail, me, from)!NACK, 0
            fi
        :: kind == CTS ->
            asked_with[NIC(me, rail)] = 0;
            if
            :: state[NIC(me, rail)] == RESERVED ->
                state[NIC(me, rail)] = SENDING;
                answer(me, rail, true, r)
            :: else ->
                assert(state[NIC(me, rail)] == RECEIVING_OUT);
                state[NIC(me, rail)] = RECEIVING;
                WIRE(rail, me, from)!ABORT, 0;
                answer(me, rail, false, r)
            fi
        :: kind == NACK ->
            asked_with[NIC(me, rail)] = 0;
            if
            :: state[NIC(me, rail)] == RESERVED -> state[NIC(me, rail)] = FREE
            :: else ->
                assert(state[NIC(me, rail)] == RECEIVING_OUT);
                state[NIC(me, rail)] = RECEIVING
            fi;
            answer(me, rail, false, r)
        :: kind == ABORT ->
            assert(granted_to[NIC(me, rail)] == from);
            granted_to[NIC(me, rail)] = NOBODY;
            if
            :: state[NIC(me, rail)] == RECEIVING -> state[NIC(me, rail)] = FREE
            :: else ->
                assert(state[NIC(me, rail)] == RECEIVING_OUT);
                state[NIC(me, rail)] = RESERVED
            fi
        :: kind == ACK ->
            assert(state[NIC(me, rail)] == SENDING);
            state[NIC(me, rail)] = FREE
        fi;
        SAYS;
        kind = 0;
        with = 0
       }
    od
}

/* A stripe of `from` is in the receiver's memory: both ends were kept for it, and for nothing else. */
proctype arrives(byte rail; byte from)
{
    byte me;
end:
    do
    :: d_step {
        data[from] & (1 << rail) ->
        printf("data %d %d\n", rail, from);
        me = TO(from);
        data[from] = data[from] & ~(1 << rail);
        assert(state[NIC(from, rail)] == SENDING);
        assert(granted_to[NIC(me, rail)] == from);
        granted_to[NIC(me, rail)] = NOBODY;
        WIRE(rail, me, from)!ACK, 0;
        if
        :: state[NIC(me, rail)] == RECEIVING -> state[NIC(me, rail)] = FREE
        :: else ->
            assert(state[NIC(me, rail)] == RECEIVING_OUT);
            state[NIC(me, rail)] = RESERVED
        fi;
        SAYS;
        me = 0
       }
    od
}

#define QUIET(n)   (left[n] == 0 && data[n] == 0 && waiting[n] == 0)
#define ALL_FREE(n) (state[NIC(n, 0)] == FREE && state[NIC(n, RAILS - 1)] == FREE)
#if NODES == 3
#define ENDED (QUIET(0) && QUIET(1) && QUIET(2) && ALL_FREE(0) && ALL_FREE(1) && ALL_FREE(2))
#else
#define ENDED (QUIET(0) && QUIET(1) && ALL_FREE(0) && ALL_FREE(1))
#endif

#ifdef LIVENESS
/* No standstill, no circle without end, no rail kept for ever. */
ltl ends { <>[] ENDED }
#endif

init
{
    byte n, r, t;
    atomic {
        n = 0;
        do
        :: n < NODES ->
            left[n] = MESSAGES;
            last[n] = NO_RAIL;
            run asks(n);
            r = 0;
            do
            :: r < RAILS ->
                state[NIC(n, r)] = FREE;
                granted_to[NIC(n, r)] = NOBODY;
                run arrives(r, n);
                t = 0;
                do
                :: t < NODES ->
                    if
                    :: t != n && (TO(n) == t || TO(t) == n) -> run hears(r, n, t)
                    :: else
                    fi;
                    t++
                :: else -> break
                od;
                r++
            :: else -> break
            od;
            n++
        :: else -> break
        od;
        n = 0; r = 0; t = 0
    }
    timeout;
    assert(ENDED)
}
