/* sources.c: the commands that measure. A further benchmark that prints {"tables": [...]}, like
 * `fishplate-lab ib`, needs one line here and one line for each entry.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "papers.h"

#define PAIR            "mpiexec -n 2 -vnodes 2 "
#define FOUR            "mpiexec -n 4 -vnodes 4 "
#define ONE_NODE        "mpiexec -n 2 "
#define KERNELS         "fishplate-lab kernels --json "
#define LIU_PROGRAMS    "is cg mg ft lu bt sp"             /* programs of [Liu04] */
#define TAKAGI_PROGRAMS "cg sp ft dt-bh dt-wh dt-sh lu bt" /* programs of [Takagi13]; DT is three graphs */

/* Programs with settings: a quick run uses class S, a full run class W. */
#define KERNEL_VARIANT(label, settings, programs)                                          \
    {                                                                                      \
        label, FOUR settings KERNELS programs, FOUR settings KERNELS "--class W " programs \
    }
#define IB_TOPIC(topic, quick, full)                                               \
    {                                                                              \
        .name = topic, .quick_seconds = quick, .full_seconds = full, .variants = { \
            {0, "fishplate-lab ib --quick --repeat 1 --json " topic,               \
             "fishplate-lab ib --repeat 1 --json " topic}                          \
        }                                                                          \
    }

/* Class B on 8 nodes, SP and BT on 4, as in the paper. */
#define PROFILE(label, ranks, program)                                               \
    {                                                                                \
        label,                                                                       \
            "fishplate prof --quiet --json - -- mpiexec -n " ranks " -vnodes " ranks \
            " fishplate-lab kernels --quiet " program,                               \
            "fishplate prof --quiet --json - -- mpiexec -n " ranks " -vnodes " ranks \
            " fishplate-lab kernels --quiet --class B " program                      \
    }
/* Class A on 8 nodes, SP and BT with two processes a node, as in the paper; eager messages by send and
 * receive only. A credit message is due at half of the buffers: 5 of 10, the paper's threshold. */
#define FLOW(program, ranks, scheme, buffers)                                                              \
    {                                                                                                      \
        program " " scheme,                                                                                \
            "mpiexec -n " ranks " -vnodes 8 -genv FISHPLATE_IB_POLLSET=0 -genv FISHPLATE_IB_RECEIVE=peer " \
            "-genv FISHPLATE_IB_BUFFERS=" buffers " -genv FISHPLATE_LAB=IB_FLOW=" scheme                   \
            " " KERNELS program,                                                                           \
            "mpiexec -n " ranks " -vnodes 8 -genv FISHPLATE_IB_POLLSET=0 -genv FISHPLATE_IB_RECEIVE=peer " \
            "-genv FISHPLATE_IB_BUFFERS=" buffers " -genv FISHPLATE_LAB=IB_FLOW=" scheme " " KERNELS       \
            "--class A " program                                                                           \
    }
#define FLOWS(program, ranks) FLOW(program, ranks, "static", "10"), FLOW(program, ranks, "dynamic", "1")
#define NODES(label, n)                                                                \
    {                                                                                  \
        label, "mpiexec -n " n " -vnodes " n " " KERNELS "is cg mg lu ft sweep",       \
            "mpiexec -n " n " -vnodes " n " " KERNELS "--class W is cg mg lu ft sweep" \
    }

#define WAITS(program, protocol)                                                  \
    {                                                                             \
        program " " protocol,                                                     \
            "fishplate prof --quiet --json - -- " FOUR                            \
            "-genv FISHPLATE_EAGER_MAX=4047 -genv FISHPLATE_RENDEZVOUS=" protocol \
            " fishplate-lab kernels --quiet " program,                            \
            "fishplate prof --quiet --json - -- " FOUR                            \
            "-genv FISHPLATE_EAGER_MAX=4047 -genv FISHPLATE_RENDEZVOUS=" protocol \
            " fishplate-lab kernels --quiet --class W " program                   \
    }

const struct source sources[] = {
    IB_TOPIC("small", 2, 8),
    IB_TOPIC("polling", 1, 10),
    IB_TOPIC("flow", 4, 30),
    IB_TOPIC("rendezvous", 2, 300),
    {.name = "memory",
     .untimed = true, /* memory of processes */
     .quick_seconds = 1,
     .full_seconds = 10,
     .variants = {{0, "fishplate-lab ib --quick --repeat 1 --json memory",
                   "fishplate-lab ib --repeat 1 --json memory"}}},
    IB_TOPIC("reuse", 2, 10),
    {.name = "pair",
     .quick_seconds = 9,
     .full_seconds = 60,
     .variants =
         {{0,
           PAIR "fishplate bench --json --short --time 0.2 latency bw bibw bilat window overhead potential",
           PAIR "fishplate bench --json latency bw bibw bilat window overhead potential"}}},
    {.name = "node",
     .quick_seconds = 2,
     .full_seconds = 20,
     .variants = {{0, ONE_NODE "fishplate bench --json --short latency bw",
                   ONE_NODE "fishplate bench --json latency bw"}}},
    {.name = "collectives",
     .quick_seconds = 3,
     .full_seconds = 20,
     .variants = {{0, "mpiexec -n 8 -vnodes 8 fishplate bench --json --short --time 0.2 alltoall allreduce",
                   "mpiexec -n 8 -vnodes 8 fishplate bench --json alltoall allreduce"}}},
    {.name = "schemes",
     .quick_seconds = 3,
     .full_seconds = 12,
     .variants =
         {{"hw",
           PAIR "-genv FISHPLATE_LAB=IB_FLOW=hw fishplate bench --json --sizes 4,256,1k --time 0.2 latency",
           PAIR "-genv FISHPLATE_LAB=IB_FLOW=hw fishplate bench --json latency"},
          {"static",
           PAIR
           "-genv FISHPLATE_LAB=IB_FLOW=static fishplate bench --json --sizes 4,256,1k --time 0.2 latency",
           PAIR "-genv FISHPLATE_LAB=IB_FLOW=static fishplate bench --json latency"},
          {"dynamic",
           PAIR
           "-genv FISHPLATE_LAB=IB_FLOW=dynamic fishplate bench --json --sizes 4,256,1k --time 0.2 latency",
           PAIR "-genv FISHPLATE_LAB=IB_FLOW=dynamic fishplate bench --json latency"}}},
    {.name = "kernels_flow",
     .quick_too_brief = true,
     .quick_seconds = 3,
     .full_seconds = 40,
     .variants =
         {KERNEL_VARIANT("hw/100", "-genv FISHPLATE_LAB=IB_FLOW=hw -genv FISHPLATE_IB_BUFFERS=100 ",
                         LIU_PROGRAMS),
          KERNEL_VARIANT("static/100", "-genv FISHPLATE_LAB=IB_FLOW=static -genv FISHPLATE_IB_BUFFERS=100 ",
                         LIU_PROGRAMS),
          KERNEL_VARIANT("dynamic/100", "-genv FISHPLATE_LAB=IB_FLOW=dynamic -genv FISHPLATE_IB_BUFFERS=100 ",
                         LIU_PROGRAMS),
          KERNEL_VARIANT("hw/1", "-genv FISHPLATE_LAB=IB_FLOW=hw -genv FISHPLATE_IB_BUFFERS=1 ",
                         LIU_PROGRAMS),
          KERNEL_VARIANT("static/1", "-genv FISHPLATE_LAB=IB_FLOW=static -genv FISHPLATE_IB_BUFFERS=1 ",
                         LIU_PROGRAMS),
          KERNEL_VARIANT("dynamic/1", "-genv FISHPLATE_LAB=IB_FLOW=dynamic -genv FISHPLATE_IB_BUFFERS=1 ",
                         LIU_PROGRAMS)}},
    {.name = "kernels_protocols",
     .quick_too_brief = true,
     .quick_seconds = 2,
     .full_seconds = 20,
     .variants = {KERNEL_VARIANT("ring", "-genv FISHPLATE_IB_POLLSET=16 -genv FISHPLATE_IB_RECEIVE=peer ",
                                 LIU_PROGRAMS),
                  KERNEL_VARIANT("send/receive",
                                 "-genv FISHPLATE_IB_POLLSET=0 -genv FISHPLATE_IB_RECEIVE=peer ",
                                 LIU_PROGRAMS),
                  KERNEL_VARIANT("shared queue",
                                 "-genv FISHPLATE_IB_POLLSET=0 -genv FISHPLATE_IB_RECEIVE=shared ",
                                 LIU_PROGRAMS)}},
    {.name = "kernels_rendezvous",
     .quick_too_brief = true,
     .quick_seconds = 2,
     .full_seconds = 20,
     .variants = {KERNEL_VARIANT("get", "-genv FISHPLATE_RENDEZVOUS=get -genv FISHPLATE_EAGER_MAX=4047 ",
                                 TAKAGI_PROGRAMS),
                  KERNEL_VARIANT("put", "-genv FISHPLATE_RENDEZVOUS=put -genv FISHPLATE_EAGER_MAX=4047 ",
                                 TAKAGI_PROGRAMS)}},
    {.name = "waits",
     .quick_too_brief = true,
     .quick_seconds = 5,
     .full_seconds = 40,
     .variants = {WAITS("cg", "get"), WAITS("cg", "put"), WAITS("sp", "get"), WAITS("sp", "put"),
                  WAITS("ft", "get"), WAITS("ft", "put"), WAITS("lu", "get"), WAITS("lu", "put"),
                  WAITS("bt", "get"), WAITS("bt", "put"), WAITS("dt-sh", "get"), WAITS("dt-sh", "put")}},
    {.name = "profiles",
     .same_always = true, /* number of messages, no times */
     .quick_too_brief = true,
     .quick_seconds = 6,
     .full_seconds = 1300,
     .variants = {PROFILE("IS", "8", "is"), PROFILE("CG", "8", "cg"), PROFILE("MG", "8", "mg"),
                  PROFILE("LU", "8", "lu"), PROFILE("FT", "8", "ft"), PROFILE("BT", "4", "bt"),
                  PROFILE("SP", "4", "sp"), PROFILE("sweep", "8", "sweep"), PROFILE("vis", "8", "vis")}},
    {.name = "kernels_credits",
     .untimed = true, /* number of messages, no times */
     .quick_too_brief = true,
     .quick_seconds = 10,
     .full_seconds = 400,
     .variants = {FLOWS("is", "8"), FLOWS("ft", "8"), FLOWS("lu", "8"), FLOWS("cg", "8"), FLOWS("mg", "8"),
                  FLOWS("bt", "16"), FLOWS("sp", "16")}},
    {.name = "kernels_nodes",
     .quick_too_brief = true,
     .quick_seconds = 3,
     .full_seconds = 60,
     .variants = {NODES("2 nodes", "2"), NODES("4 nodes", "4"), NODES("8 nodes", "8")}},
    {.name = "rails_study",
     .same_always = true,
     .quick_too_brief = true,
     .quick_seconds = 18,
     .full_seconds = 600,
     .variants = {{0, "fishplate-lab sim rails --quick --length 0.12 --json",
                   "fishplate-lab sim rails --json"}}},
    {.name = "logp",
     .quick_seconds = 3,
     .full_seconds = 20,
     .variants = {{0, "fishplate-lab logp --quick --no-models --json",
                   "fishplate-lab logp --no-models --json"}}},
    {.name = "logp_models",
     .quick_seconds = 4,
     .full_seconds = 120,
     .variants = {{0, "fishplate-lab logp --quick --json", "fishplate-lab logp --json"}}},
    {.name = "barriers_sim",
     .same_always = true,
     .quick_seconds = 1,
     .full_seconds = 10,
     .variants = {{0, "fishplate-lab sim barrier --nodes 16,64,256 --json",
                   "fishplate-lab sim barrier --nodes 4,16,64,128,256,1024,4096 --json"}}},
    {.name = "bcast_sim",
     .same_always = true,
     .quick_seconds = 1,
     .full_seconds = 5,
     .variants = {{0, "fishplate-lab sim bcast --nodes 2,4,8,16,64,256 --sizes 8 --json",
                   "fishplate-lab sim bcast --nodes 2,4,8,16,64,256,1024 --sizes 8 --json"}}},
    {.name = "multicast_sim",
     .same_always = true,
     .quick_seconds = 10,
     .full_seconds = 30,
     .variants = {{0, "fishplate-lab sim multicast --collectors 8,32,64,128 --sizes 8,1836 --json",
                   "fishplate-lab sim multicast --packets 400 --collectors 8,16,32,64,128,256 --sizes "
                   "8,32,128,512,1k,1836 --json"}}},
    {.name = "rails",
     .quick_seconds = 20,
     .full_seconds = 120,
     .variants = {{0, "fishplate-lab rails --quick --json", "fishplate-lab rails --repeat 1 --json"}}},
    {.name = "barrier",
     .quick_seconds = 20,
     .full_seconds = 120,
     .variants = {{0, "fishplate-lab barrier --shapes 2x2,4x4,8x8 --budget 15 --json",
                   "fishplate-lab barrier --json"}}},
    {.name = "bcast",
     .quick_seconds = 30,
     .full_seconds = 180,
     .variants = {{0, "fishplate-lab bcast --quick --json", "fishplate-lab bcast --json"}}},
};
const int sources_count = (int)(sizeof(sources) / sizeof(sources[0]));

const struct paper papers[PAPERS] = {
    [PAPER_LIU] = {"Liu04", "J. Liu: Designing High Performance and Scalable MPI over InfiniBand, 2004"},
    [PAPER_TAKAGI] = {"Takagi13", "M. Takagi and others: Revisiting Rendezvous Protocols, EuroMPI 2013"},
    [PAPER_COLL] = {"Coll01",
                    "S. Coll and others: Using Multirail Networks in High-Performance Clusters, 2001"},
    [PAPER_SHIPMAN] = {"Shipman06", "G. Shipman and others: InfiniBand Scalability in Open MPI, IPDPS 2006"},
    [PAPER_HOEFLER] = {"Hoefler05", "T. Höfler: Evaluation of publicly available Barrier-Algorithms, 2005"},
};

/* Figure names are spelled as in the entries, so that a test can compare both lists with all figures of
 * the papers. */
const struct unmeasured unmeasured[] = {
    {PAPER_LIU, "Figures 2.1 to 2.3, 3.1 to 3.3, 6.3, 6.4, 6.6, 7.2 to 7.4, 8.1 to 8.3",
     "diagrams of designs, without measured values"},
    {PAPER_LIU, "Figures 4.1 to 4.4",
     "three networks, with the basic implementation; figure 6.7 shows InfiniBand with its final one"},
    {PAPER_LIU, "Figures 6.1, 6.2, 6.5",
     "times of adapter hardware: polling a completion queue by entries, one write against two, a write that "
     "gathers; softib's times are those of its own code. `fishplate-lab logp` prints o and L of each verb "
     "here"},
    {PAPER_LIU, "Table 6.1",
     "peers of the processes of large programs (sPPM, SMG2000, Sphot, Sweep3D, Samrai, CG on 64 to 1024 "
     "processes), taken from another study; `fishplate ps` and prof show the peers of a program here"},
    {PAPER_LIU, "Figure 9.18",
     "the programs of table 9.2 on 2 to 16 nodes of another cluster; here nodes share the cores of one "
     "machine"},
    {PAPER_LIU, "Figure 9.19",
     "times of 16 processes, two a node, over three networks; table 9.2 has the programs with one a node"},
    {PAPER_TAKAGI, "Figures 1 to 5", "time lines of the protocols, and how processes are placed"},
    {PAPER_TAKAGI, "Table 1", "the machine"},
    {PAPER_COLL, "Figures 1, 2, tables 1, 2",
     "examples of reservations and their state tables; lab/tests/unit/test_rails_reserve_all.c explores "
     "these states"},
    {PAPER_SHIPMAN, "Figures 1, 2", "drawings of the modules and of what a peer uses"},
    {PAPER_SHIPMAN, "Figure 6",
     "latency of many pairs at the same time, each rank with a processor of its own; ranks that share cores "
     "wait for each other longer than it takes to poll the rings. Figure 6.15 of [Liu04] has the time to "
     "poll"},
    {PAPER_HOEFLER,
     "Figures 1.1 to 1.5, 2.1 to 2.13, 2.22 to 2.30, 2.37, 3.1 to 3.4, tables 1.1, 2.1, 2.3, 3.1",
     "diagrams, examples of algorithms and how the models are built"},
    {PAPER_HOEFLER, "Figures 3.5, 3.6, 4.1", "a barrier by parallel ports and a board for it"},
    {PAPER_HOEFLER, "Figures 4.2, 4.3, table 4.1",
     "times of the program abinit, whose input the paper does not name"},
};
const int unmeasured_count = (int)(sizeof(unmeasured) / sizeof(unmeasured[0]));
