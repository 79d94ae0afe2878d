/* advice.c: when a user changes each setting, and which counter shows the need; see advice.h. Each new
 * setting gets a line here; tests/tools/tunables.sh finds settings without a line, and unknown counters.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "advice.h"

#include <string.h>

#include "base/tunable.h"

const char *const advice_titles[ADVICE_GROUPS] = {"Start here", "Network", "Collectives", "Expert"};
const char *const advice_words[ADVICE_GROUPS] = {"start", "network", "collectives", "expert"};

#define START  ADVICE_START
#define NET    ADVICE_NETWORK
#define COLL   ADVICE_COLLECTIVES
#define EXPERT ADVICE_EXPERT

static const struct advice table[] = {
    {"CHECK", START, "Set 0 for a program that is known to be correct and sends very many small messages.",
     NULL},
    {"COLL", COLL,
     "Set it when `fishplate bench` shows another algorithm to be faster for your sizes and ranks.",
     "coll_schedules_made"},
    {"COLL_TRY", COLL,
     "Set 0 if every run must use the same algorithms. Raise it for short programs if the MPI_T variable "
     "`coll_choices` is empty at their "
     "end.",
     "coll_tuning_us"},
    {"CRASH_NOTE", START, "Set 0 when another tool reports crashes and conflicts with these handlers.", NULL},
    {"DEBUG", START,
     "Set coll when a job hangs in a collective or its results are wrong, rma when results of one-sided "
     "operations are wrong.",
     NULL},
    {"DOCTOR", START,
     "Set 0 when every kilobyte or open file of a rank counts; then `fishplate why` cannot see it.", NULL},
    {"EAGER_MAX", NET,
     "Raise it when many medium messages wait for their receiver; lower it to save memory for unexpected "
     "messages.",
     "p2p_rendezvous"},
    {"IB_BUFFERS", NET, "Raise it when senders wait for credits; lower it to save memory with many peers.",
     "ib_credit_waits"},
    {"IB_CONNECT", NET, "Set static to move the cost of connecting from the first messages into MPI_Init.",
     "ib_connections_opened"},
    {"IB_CONNECT_TIMEOUT", NET, "Set it where the launcher cannot notice that a rank has died.",
     "ib_hellos_repeated"},
    {"IB_DEVICES", START,
     "Set it when a node has several adapters and the wrong one is used (fishplate info --devices).", NULL},
    {"IB_GID_INDEX", NET,
     "Set it on RoCE when the network needs another address or RoCE version than the one chosen.", NULL},
    {"IB_MAX_CONNECTIONS", NET,
     "Set it when the adapter runs out of queue pairs or memory with very many peers.",
     "ib_connections_opened"},
    {"IB_PATHS", NET,
     "Raise it where the network between two ports is the bottleneck and there are several paths.",
     "ib_rails_joined"},
    {"IB_PKEY_INDEX", NET, "Set it when the administrator has put your job into another partition.", NULL},
    {"IB_POLLSET", NET, "Raise it when more than 16 peers send many small messages; set 0 to save memory.",
     "ib_rings_added"},
    {"IB_RAIL_PATIENCE", NET, "Raise it where a switch restarts or a cable is changed while jobs run.",
     "ib_connections_moved"},
    {"IB_RECEIVE", NET, "Set shared to save memory when a rank talks to very many peers.", "ib_buffer_bytes"},
    {"IB_RETRIES", NET, "Lower it to notice a broken link sooner.", NULL},
    {"IB_SERVICE_LEVEL", NET, "Set it when the administrator has given your traffic another service level.",
     NULL},
    {"IB_STRIPE", NET,
     "Set even or weighted when the ports are never shared with other jobs, dynamic when adapters slow down "
     "while they send and receive at once.",
     "ib_striped"},
    {"IB_TIMEOUT", NET,
     "Raise it on a congested network where connections fail although the cables are "
     "good.",
     NULL},
    {"IB_WEIGHTS", NET, "Set it when the ports differ in what they can deliver and not in their rate.",
     "ib_rail1_bytes"},
    {"INITIAL_ERRHANDLER", EXPERT,
     "Set it for a program that handles errors before it can set an error handler.", NULL},
    {"INIT_TIMEOUT", NET, "Raise it when hosts start slowly and the job ends in MPI_Init.", "start_fence_us"},
    {"LAB", EXPERT, "Set it for experiments with the library itself, not for programs.", NULL},
    {"GPU", EXPERT,
     "Set cuda to end a job at its start where CUDA cannot be used; set off if classifying addresses "
     "disturbs a program.",
     "gpu_address_queries"},
    {"LOG", START, "Set info when a job uses the wrong network, debug when you report a problem.", NULL},
    {"NAME_DIR", EXPERT,
     "Name a folder on a shared file system when servers and clients run on different hosts.", NULL},
    {"MEM_HOOKS", EXPERT,
     "Set off when another tool changes the same functions of the C library and the two conflict.",
     "reg_invalidations"},
    {"PROGRESS", START,
     "Set thread when nonblocking messages should move while the program computes without MPI calls.",
     "net_thread_wakes"},
    {"REG_CACHE", NET, "Raise it when buffers are registered again and again; lower it when memory is short.",
     "reg_evictions"},
    {"RENDEZVOUS", NET, "Set it to compare the protocols of large messages; auto measures them by itself.",
     "p2p_rendezvous"},
    {"REQUIRE", START, "Set ib in job scripts, so that a job never runs on software by mistake.", NULL},
    {"SHM_CMA", NET, "Set 0 when the system forbids it and records that in its log.", "shm_cma_bytes"},
    {"SHM_RING", EXPERT, "Raise it when senders wait for room at a receiver that seldom calls MPI.",
     "shm_ring_full"},
    {"SPIN_US", NET, "Lower it to save power; raise it when ranks fall asleep between messages.",
     "net_sleeps"},
    {"STATS", START, "Set 1 to see what the library did: every counter named on this page is in its summary.",
     NULL},
    {"TUNE", START,
     "Set off when two runs must make the same choices, or to compare the built-in rules with the tuner.",
     NULL},
    {"VERBS", START, "Set softib to use the software adapter on purpose, system to forbid it.", NULL},
};

const struct advice *advice_find(const struct tunable *t)
{
    static const struct advice none = {.group = ADVICE_EXPERT, .when = ""};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].name, t->name) == 0)
            return &table[i];
    return &none;
}
