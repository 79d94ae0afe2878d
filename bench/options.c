/* options.c: the command line of the benchmark and its help text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

void bench_usage(const struct bench_host *host)
{
    printf("Usage: mpiexec -n 4 %s [options] [tests]\n\n", host->program);
    printf("Measures this MPI library and verifies the data of every kind of message it sends. Without "
           "names, all tests run:\n\n");
    for (int i = 0; i < bench_ntests; i++)
        printf("  %-20s %s\n", bench_tests[i].name, bench_tests[i].doc);
    printf(
        "\nOptions:\n"
        "  --short          the main sizes only, in a few seconds\n"
        "  --sizes 8,1k,4M  these sizes for every test that has sizes\n"
        "  --time 0.5       seconds to spend on each figure\n"
        "  --pairs 2        pairs of ranks that work at once in latency, bw, bibw, rate (default 1: ranks "
        "0 and 1)\n"
        "  --one-buffer     bw from and to one buffer, as perftest does; without, each message of a "
        "window has its "
        "own\n"
        "  --calls rotate   collectives back to back, each with the next root (default); back-to-back: "
        "with the same root;\n"
        "                   barrier: a barrier before every call, which is not timed\n"
        "  --compare bcast  all algorithms of that operation side by side, and the FISHPLATE_COLL\n"
        "                   setting that is fastest over the sizes\n"
        "  --forced r3,get  in latency, bw, bibw: the library's own choice of how large messages move, in "
        "turns\n"
        "                   with these settings of FISHPLATE_RENDEZVOUS, and its time over that of the best\n"
        "  --no-pin         leave the ranks where the launcher put them\n"
        "  --json           one JSON document instead of the table\n"
        "  --help\n\n"
        "best, median and p99 are over batches; a batch is long enough for the clock not to matter.\n"
        "Examples:\n"
        "  mpiexec -n 2 %s --sizes 8,4k latency bw\n"
        "  mpiexec -n 8 %s --short barrier allreduce\n",
        host->program, host->program);
}

bool bench_parse_bytes(const char *text, size_t len, size_t *out)
{
    size_t value = 0, i = 0;
    for (; i < len && isdigit((unsigned char)text[i]); i++)
        value = value * 10 + (size_t)(text[i] - '0');
    if (i == 0 || i > 10 || len - i > 1)
        return false;
    if (i < len) {
        switch (tolower((unsigned char)text[i])) {
        case 'k':
            value <<= 10;
            break;
        case 'm':
            value <<= 20;
            break;
        case 'g':
            value <<= 30;
            break;
        case 'b':
            break;
        default:
            return false;
        }
    }
    *out = value;
    return value <= (size_t)1 << 30;
}

static bool parse_sizes(struct bench_options *o, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, ",");
        if (o->nsizes == BENCH_SIZES_MAX || !bench_parse_bytes(text, len, &o->sizes[o->nsizes]))
            return false;
        o->nsizes++;
        text += len + (text[len] == ',');
    }
    return o->nsizes > 0;
}

static bool parse_test(struct bench_options *o, const char *name)
{
    for (int i = 0; i < bench_ntests; i++)
        if (strcmp(bench_tests[i].name, name) == 0) {
            o->wanted |= 1u << i;
            return true;
        }
    return false;
}

/* An option that takes a value, which may follow in the next argument or after '='. */
static bool takes_value(const char *name, int argc, char **argv, int *i, const char **value)
{
    size_t len = strlen(name);
    if (strncmp(argv[*i], name, len) != 0)
        return false;
    if (argv[*i][len] == '=') {
        *value = argv[*i] + len + 1;
        return true;
    }
    if (argv[*i][len] != 0)
        return false;
    *value = *i + 1 < argc ? argv[++*i] : "";
    return true;
}

static bool parse_calls(struct bench_options *o, const char *text)
{
    static const char *const names[] = {"rotate", "back-to-back", "barrier"};
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], text) == 0) {
            o->calls = (enum bench_calls)i;
            return true;
        }
    return false;
}

static bool parse_value(struct bench_options *o, int argc, char **argv, int *i, bool *known)
{
    const char *value = "";
    char *end = NULL;
    *known = true;
    if (takes_value("--sizes", argc, argv, i, &value))
        return parse_sizes(o, value);
    if (takes_value("--time", argc, argv, i, &value)) {
        o->seconds = strtod(value, &end);
        return end != value && *end == 0 && o->seconds > 0 && o->seconds <= 3600;
    }
    if (takes_value("--pairs", argc, argv, i, &value)) {
        o->pairs = (int)strtol(value, &end, 10);
        return end != value && *end == 0 && o->pairs >= 1;
    }
    if (takes_value("--compare", argc, argv, i, &value)) {
        o->compare = value;
        return value[0] != 0;
    }
    if (takes_value("--forced", argc, argv, i, &value))
        return bench_forced_parse(&o->forced, value);
    if (takes_value("--calls", argc, argv, i, &value))
        return parse_calls(o, value);
    *known = false;
    return false;
}

bool bench_parse(struct bench_options *o, int argc, char **argv, bool speak)
{
    *o = (struct bench_options){.pin = true, .pairs = 1};
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        bool known;
        if (strcmp(a, "--short") == 0)
            o->brief = true;
        else if (strcmp(a, "--json") == 0)
            o->json = true;
        else if (strcmp(a, "--one-buffer") == 0)
            o->one_buffer = true;
        else if (strcmp(a, "--no-pin") == 0)
            o->pin = false;
        else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0)
            o->help = true;
        else if (!parse_value(o, argc, argv, &i, &known) && !(!known && parse_test(o, a))) {
            if (speak && known)
                fprintf(stderr, "bench: the value of '%s' is invalid; --help shows the valid values.\n", a);
            else if (speak)
                fprintf(stderr, "bench: '%s' is neither an option nor a test; --help lists both.\n", a);
            return false;
        }
    }
    if (o->seconds == 0)
        o->seconds = o->brief ? 0.1 : 0.4;
    if (o->wanted == 0)
        o->wanted = (1u << bench_ntests) - 1;
    return true;
}

void bench_format_bytes(size_t bytes, char out[32])
{
    if (bytes >= MI && bytes % MI == 0)
        snprintf(out, 32, "%zu MiB", bytes / MI);
    else if (bytes >= KI && bytes % KI == 0)
        snprintf(out, 32, "%zu KiB", bytes / KI);
    else
        snprintf(out, 32, "%zu B", bytes);
}
