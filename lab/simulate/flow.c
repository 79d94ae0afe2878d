/* flow.c: `fishplate-lab sim flow`: a stream of small messages with each flow control scheme, on a simulated
 * machine. The simulator's part is in lab/sim/flow.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lab/sim/flow.h"

#include "tools/fishplate/command.h"
#include "cli/json.h"
#include "simulate.h"
#include "cli/options.h"

struct flow_options {
    size_t windows[SIM_LIST_MAX], buffers[SIM_LIST_MAX];
    int nwindows, nbuffers;
    size_t bytes, messages;
    struct machine machine;
    bool json, help;
};

static const char *const scheme_names[] = {
    [CREDIT_HW] = "hw", [CREDIT_STATIC] = "static", [CREDIT_DYNAMIC] = "dynamic"};

static const char usage[] =
    "Usage: fishplate-lab sim flow [options]\n"
    "\n"
    "Small messages one way, in windows; an answer to each window comes back [Liu04 figures 5.2, 5.3]. Each "
    "flow control scheme (FISHPLATE_LAB=IB_FLOW) with each number of receive buffers (FISHPLATE_IB_BUFFERS), "
    "with the library's own arithmetic of credits on a simulated machine.\n"
    "\n"
    "  MB/s             of the messages\n"
    "  credit messages  sent because enough credits were owed and no frame went the other way\n"
    "  waits            times the sender had no credit\n"
    "  refused          frames that found no buffer (receiver not ready); they are repeated 10 us later\n"
    "  buffers          most that were posted: the dynamic scheme posts more when the sender waits\n"
    "\n"
    "Options:\n"
    "  --windows 1,100   messages of a window (default 1,10,50,100)\n"
    "  --buffers 10,100  receive buffers at the start (default 1,10,100)\n"
    "  --bytes 4         of a message\n"
    "  --messages 10k    in all\n"
    "  --machine NAME    as for fishplate-lab sim (default liu2004)\n"
    "  --set NAME=VALUE  one of its parameters\n"
    "  --json\n"
    "  --help\n";

static bool parse_value(void *options, const char *name, const char *value)
{
    struct flow_options *o = options;
    size_t one[SIM_LIST_MAX];
    int count;
    if (strcmp(name, "--windows") == 0)
        return sim_parse_list(value, o->windows, &o->nwindows);
    if (strcmp(name, "--buffers") == 0)
        return sim_parse_list(value, o->buffers, &o->nbuffers);
    if (strcmp(name, "--machine") == 0)
        return sim_read_machine(&o->machine, value);
    if (strcmp(name, "--set") == 0)
        return machine_set_pair(&o->machine, value);
    if (!sim_parse_list(value, one, &count) || count != 1 || one[0] < 1 || one[0] > 1u << 30)
        return false;
    if (strcmp(name, "--bytes") == 0)
        o->bytes = one[0];
    else if (strcmp(name, "--messages") == 0)
        o->messages = one[0];
    else
        return false;
    return true;
}

static void flow_print_row(struct json *j, const struct flow_options *o, size_t window, size_t buffers,
                           enum credit_scheme scheme)
{
    const struct flow_order order = {.machine = &o->machine,
                                     .rules = {.scheme = scheme,
                                               .growth = CREDIT_EXPONENTIAL,
                                               .first = (uint32_t)buffers,
                                               .buffers_max = buffers > 128 ? (uint32_t)buffers : 128,
                                               .step = (uint32_t)buffers},
                                     .window = (uint32_t)window,
                                     .windows = (uint32_t)((o->messages + window - 1) / window),
                                     .bytes = (uint32_t)o->bytes,
                                     .rnr_ns = 10000};
    struct flow_report r;
    flow_simulate(&order, &r);
    const double rate = r.us > 0 ? (double)r.messages * (double)o->bytes / r.us : 0;
    if (!o->json && r.failed)
        printf("%8zu %8zu  %-8s %s\n", window, buffers, scheme_names[scheme], r.failed);
    else if (!o->json)
        printf("%8zu %8zu  %-8s %10.3f %10llu %10llu %10llu %10u\n", window, buffers, scheme_names[scheme],
               rate, (unsigned long long)r.credit_messages, (unsigned long long)r.waits,
               (unsigned long long)r.refused, r.most_posted);
    else {
        json_object(j, NULL);
        json_int(j, "window", (long long)window);
        json_int(j, "buffers", (long long)buffers);
        json_string(j, "scheme", scheme_names[scheme]);
        if (r.failed)
            json_string(j, "failed", r.failed);
        json_real(j, "MB/s", rate);
        json_int(j, "messages", (long long)r.messages);
        json_int(j, "credit_messages", (long long)r.credit_messages);
        json_int(j, "waits", (long long)r.waits);
        json_int(j, "refused", (long long)r.refused);
        json_int(j, "most_posted", r.most_posted);
        json_end(j);
    }
}

int command_sim_flow(int argc, char **argv)
{
    struct flow_options o = {.windows = {1, 10, 50, 100},
                             .buffers = {1, 10, 100},
                             .nwindows = 4,
                             .nbuffers = 3,
                             .bytes = 4,
                             .messages = 10000};
    const struct sim_command c = {"sim flow", &o, &o.help, &o.json, NULL, parse_value, NULL};
    struct json j = {.out = stdout};
    machine_set_preset(&o.machine, "liu2004");
    const int status = sim_parse(&c, argc, argv);
    if (status)
        return status;
    if (o.help) {
        cli_print_page(usage, stdout);
        return 0;
    }
    for (int i = 0; i < o.nwindows || i < o.nbuffers; i++)
        if ((i < o.nwindows && (o.windows[i] < 1 || o.windows[i] > 1u << 20)) ||
            (i < o.nbuffers && (o.buffers[i] < 1 || o.buffers[i] > 1u << 20)))
            return sim_report_misuse("sim flow", "must be from 1 to 1048576",
                                     "a window or number of buffers");
    if (o.json) {
        json_object(&j, NULL);
        json_string(&j, "program", "fishplate-lab sim flow");
        json_string(&j, "carrier", "simulated");
        json_array(&j, "results");
    } else
        printf(
            "fishplate-lab sim flow: messages of %zu bytes (simulated)\n\n%8s %8s  %-8s %10s %10s %10s %10s "
            "%10s\n",
            o.bytes, "window", "buffers", "scheme", "MB/s", "credits", "waits", "refused", "most");
    for (int w = 0; w < o.nwindows; w++)
        for (int b = 0; b < o.nbuffers; b++)
            for (int s = CREDIT_HW; s <= CREDIT_DYNAMIC; s++)
                flow_print_row(&j, &o, o.windows[w], o.buffers[b], (enum credit_scheme)s);
    if (o.json) {
        json_end(&j);
        json_end(&j);
        putchar('\n');
    }
    return 0;
}
