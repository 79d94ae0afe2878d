/* hcas.c: -hcas, the adapters of each virtual node: number, rate, ports and paths. The option is converted to
 * the syntax of SOFTIB_FABRIC; rankenv.c adds the number of nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "options/hcas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/launch_env.h"
#include "options/optdefs.h"
#include "cli/number.h"

#define HCAS_MAX 16 /* largest number of adapters of a softib node */

struct hcas {
    const char *option; /* name of the option, for messages */
    unsigned n;
    char *rate[HCAS_MAX]; /* NULL: no limit of the rate */
    long ports, lmc, hub;
    char *latency, *bus, *pin;
};

/* True for a positive number with one of the units. */
static bool hcas_is_quantity(const char *text, const char *const *units)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || !(v > 0) || v > 1e9)
        return false;
    for (; *units; units++)
        if (strcmp(end, *units) == 0)
            return true;
    return false;
}

static bool is_rate(const char *text)
{
    static const char *const units[] = {"KB/s", "MB/s", "GB/s", "Mbit/s", "Gbit/s", NULL};
    return hcas_is_quantity(text, units);
}

static bool is_time(const char *text)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    return hcas_is_quantity(text, units);
}

static void set_quantity(const struct hcas *h, const char *key, const char *value, bool ok,
                         const char *example, char **out)
{
    if (!ok)
        launcher_die(STATUS_USAGE, "-%s: %s=%s: write a number and its unit, for example %s=%s.", h->option,
                     key, value, key, example);
    free(*out);
    *out = xstrdup(value);
}

static long set_count(const struct hcas *h, const char *key, const char *value, long min, long max)
{
    long v;
    if (!number_parse_integer(value, min, max, &v))
        launcher_die(STATUS_USAGE, "-%s: %s=%s: write a whole number from %ld to %ld.", h->option, key, value,
                     min, max);
    return v;
}

static void hcas_parse_setting(struct hcas *h, const char *key, const char *value)
{
    if (strcmp(key, "ports") == 0)
        h->ports = set_count(h, key, value, 1, 8);
    else if (strcmp(key, "lmc") == 0)
        h->lmc = set_count(h, key, value, 0, 7);
    else if (strcmp(key, "latency") == 0)
        set_quantity(h, key, value, is_time(value), "2us", &h->latency);
    else if (strcmp(key, "bus") == 0)
        set_quantity(h, key, value, is_rate(value), "1GB/s", &h->bus);
    else if (strcmp(key, "pin") == 0)
        set_quantity(h, key, value, is_time(value), "200ns", &h->pin);
    else if (strcmp(key, "hub") == 0)
        h->hub = set_count(h, key, value, 0, 1);
    else
        launcher_die(STATUS_USAGE,
                     "-%s: there is no setting %s=; there are ports=, lmc=, latency=, bus=, pin= and hub=.",
                     h->option, key);
}

/* Parses "2", "1GB/s" or "2x1GB/s". */
static void hcas_parse_adapter(struct hcas *h, const char *word)
{
    char *end;
    unsigned long n = strtoul(word, &end, 10);
    const char *rate = *end == 'x' ? end + 1 : *end ? word : NULL;
    if (rate == word)
        n = 1;
    if (end == word || word[0] == '-' || word[0] == '+' || (rate && !is_rate(rate)))
        launcher_die(
            STATUS_USAGE,
            "-%s: \"%s\" is not a number of adapters (2), a rate (1GB/s, 10Gbit/s) or both (2x1GB/s).",
            h->option, word);
    if (n < 1 || n > HCAS_MAX - h->n)
        launcher_die(STATUS_USAGE, "-%s: a virtual node has 1 to %d adapters.", h->option, HCAS_MAX);
    while (n-- > 0)
        h->rate[h->n++] = rate ? xstrdup(rate) : NULL;
}

static void hcas_parse(struct hcas *h, const char *text)
{
    char *copy = xstrdup(text), *save = NULL;
    for (char *w = strtok_r(copy, ", ", &save); w; w = strtok_r(NULL, ", ", &save)) {
        char *value = strchr(w, '=');
        if (value) {
            *value++ = '\0';
            hcas_parse_setting(h, w, value);
        } else {
            hcas_parse_adapter(h, w);
        }
    }
    free(copy);
    if (h->n == 0)
        h->n = 1;
}

/* Returns the user's own SOFTIB_FABRIC, to which -hcas is added; NULL if it is not set. */
static const char *hcas_get_text(const struct options *o)
{
    const size_t len = strlen(ENV_SOFTIB_FABRIC "=");
    const char *text = o->env_pass == ENV_PASS_NONE ? NULL : getenv(ENV_SOFTIB_FABRIC);
    for (unsigned i = 0; i < o->genv.n; i++)
        if (strncmp(o->genv.v[i], ENV_SOFTIB_FABRIC "=", len) == 0)
            text = o->genv.v[i] + len;
    for (unsigned a = 0; a < o->napps; a++)
        for (unsigned i = 0; i < o->apps[a].env.n; i++)
            if (strncmp(o->apps[a].env.v[i], ENV_SOFTIB_FABRIC "=", len) == 0)
                launcher_die(STATUS_USAGE, "-hcas describes the adapters of all programs; leave out -env %s.",
                             ENV_SOFTIB_FABRIC);
    return text;
}

static void check_fabric_text(const char *text)
{
    static const char *const sizes[] = {"nodes=", "hcas=", "ports=", "lmc="};
    if (*text == '/' || *text == '.')
        launcher_die(STATUS_USAGE,
                     "-hcas and the file %s (SOFTIB_FABRIC) describe the same adapters: use one of them.",
                     text);
    for (unsigned i = 0; i < COUNT_OF(sizes); i++)
        if (strstr(text, sizes[i]))
            launcher_die(STATUS_USAGE,
                         "-hcas and SOFTIB_FABRIC (%s...) describe the same adapters: use one of them.",
                         sizes[i]);
}

static bool is_rate_uniform(const struct hcas *h)
{
    for (unsigned i = 1; i < h->n; i++)
        if (strcmp(h->rate[i] ? h->rate[i] : "", h->rate[0] ? h->rate[0] : "") != 0)
            return false;
    return true;
}

/* Order of the text: sizes, the user's own description, then settings of single adapters. */
static char *build_fabric_text(const struct hcas *h, const char *user)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        launcher_die(1, "Out of memory.");
    fprintf(f, "hcas=%u ports=%ld lmc=%ld", h->n, h->ports, h->lmc);
    if (h->latency)
        fprintf(f, " latency=%s", h->latency);
    if (h->bus)
        fprintf(f, " bus=%s", h->bus);
    if (h->pin)
        fprintf(f, " pin=%s", h->pin);
    if (h->hub)
        fprintf(f, " hub=1");
    if (is_rate_uniform(h) && h->rate[0])
        fprintf(f, " rate=%s", h->rate[0]);
    if (user && *user)
        fprintf(f, " %s", user);
    for (unsigned i = 0; i < h->n && !is_rate_uniform(h); i++)
        if (h->rate[i])
            fprintf(f, " hca%u: rate=%s", i, h->rate[i]);
    if (fclose(f) != 0)
        launcher_die(1, "Out of memory.");
    return text;
}

char *hcas_build_fabric(const struct options *o)
{
    struct hcas h = {.option = "hcas", .ports = 1};
    if (!o->vnodes)
        launcher_die(
            STATUS_USAGE,
            "-hcas describes the adapters of virtual nodes: set the number of nodes with -vnodes N.");
    const char *user = hcas_get_text(o);
    if (user)
        check_fabric_text(user);
    hcas_parse(&h, o->hcas);
    char *words = build_fabric_text(&h, user);
    for (unsigned i = 0; i < h.n; i++)
        free(h.rate[i]);
    free(h.latency);
    free(h.bus);
    free(h.pin);
    return words;
}
