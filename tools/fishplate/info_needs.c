/* info_needs.c: `fishplate info --api FILE...`: lists the MPI functions that a program needs and the library
 * does not have. C calls are symbols of the function's name (with a leading P in a profiling tool); Fortran
 * calls are the name in lower or upper case with an underscore and a suffix of the binding. Names that look
 * like MPI functions but are not in MPI 5.0 (removed, or extensions of another library) are missing too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api_list.h"
#include "cli/elf.h"
#include "info.h"

enum { STRANGERS_MAX = 64, NAME_MAX_LEN = 64 };

struct needs {
    const struct fishplate_inside *in;
    bool *needed; /* [number of functions in the list] true: the file calls it */
    char strangers
        [STRANGERS_MAX]
        [NAME_MAX_LEN]; /* functions that are not in the list; more than STRANGERS_MAX are not printed */
    size_t nstrangers;
    char foreign[NAME_MAX_LEN]; /* MPI library that the file is linked with or whose data it uses; "": none */
};

/* True if the rest of a symbol is a suffix of Fortran bindings: mpi_send_, mpi_send__, mpi_send_f08_,
 * mpi_send_f08ts_. */
static bool is_fortran_suffix(const char *rest)
{
    static const char *const endings[] = {"", "_", "__", "_f08_", "_f08ts_"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcasecmp(rest, endings[i]) == 0)
            return true;
    return false;
}

static bool needs_is_call(const char *symbol, const char *name)
{
    if (strcmp(symbol, name) == 0)
        return true;
    const size_t len = strlen(name);
    return strncasecmp(symbol, name, len) == 0 && symbol[len] == '_' && is_fortran_suffix(symbol + len);
}

/* True for names of C functions, such as MPI_Type_struct; constants are all capitals. */
static bool is_c_name(const char *symbol)
{
    const char *at = strncmp(symbol, "MPI_", 4) == 0    ? symbol + 4
                     : strncmp(symbol, "MPIX_", 5) == 0 ? symbol + 5
                                                        : "";
    return isupper((unsigned char)at[0]) && islower((unsigned char)at[1]);
}

static void needs_add_unknown(struct needs *n, const char *symbol)
{
    for (size_t i = 0; i < n->nstrangers; i++)
        if (strcmp(n->strangers[i], symbol) == 0)
            return;
    if (n->nstrangers < STRANGERS_MAX && strlen(symbol) < NAME_MAX_LEN)
        strcpy(n->strangers[n->nstrangers++], symbol);
}

/* Records another MPI library: programs built with it use other handles and constants. */
static bool needs_add_foreign_library(void *needs, const char *name)
{
    struct needs *n = needs;
    if (strncmp(name, "libmpi", 6) == 0 && strncmp(name, "libmpi_abi", 10) != 0 &&
        strncmp(name, "libmpifort_abi", 14) != 0 && strlen(name) < NAME_MAX_LEN)
        strcpy(n->foreign, name);
    return false;
}

static void needs_add_symbol(void *needs, const char *symbol)
{
    struct needs *n = needs;
    bool known = false;
    if (strncmp(symbol, "ompi_mpi_", 9) == 0 && !n->foreign[0])
        strcpy(n->foreign, "Open MPI");
    if (toupper((unsigned char)symbol[0]) == 'P')
        symbol++;
    if (strncasecmp(symbol, "MPI", 3) != 0)
        return;
    for (size_t i = 0; i < n->in->api_count; i++)
        if (needs_is_call(symbol, n->in->api[i].name))
            known = n->needed[i] = true;
    if (!known && is_c_name(symbol))
        needs_add_unknown(n, symbol);
}

static size_t needs_count(const struct needs *n)
{
    size_t total = n->nstrangers;
    for (size_t i = 0; i < n->in->api_count; i++)
        total += n->needed[i];
    return total;
}

static void print_text(const struct needs *n, const char *file, const struct info_options *o)
{
    if (!o->missing && n->foreign[0])
        printf("%s was compiled for another MPI library (%s), whose handles and constants are others: "
               "compile it again with "
               "Fishplate's mpicc.\n",
               file, n->foreign);
    if (!o->missing && needs_count(n) == 0)
        printf("%s calls no MPI function by name.\n", file);
    else if (!o->missing && n->nstrangers == 0)
        printf("%s needs %zu MPI functions: all are there.\n", file, needs_count(n));
    else if (!o->missing)
        printf("%s needs %zu MPI functions; %zu of them are not in Fishplate %s:\n", file, needs_count(n),
               n->nstrangers, n->in->version);
    for (size_t i = 0; i < n->nstrangers; i++)
        printf(o->missing ? "%s\n" : "    %-40s not a function of MPI 5.0\n", n->strangers[i]);
}

static void print_json(const struct needs *n, const char *file, struct json *j)
{
    json_object(j, NULL);
    json_string(j, "file", file);
    if (n->foreign[0])
        json_string(j, "foreign", n->foreign);
    json_array(j, "there");
    for (size_t i = 0; i < n->in->api_count; i++)
        if (n->needed[i])
            json_string(j, NULL, n->in->api[i].name);
    json_end(j);
    json_array(j, "missing");
    for (size_t i = 0; i < n->nstrangers; i++)
        json_string(j, NULL, n->strangers[i]);
    json_end(j);
    json_end(j);
}

/* Checks one file and returns the exit status. */
static int check_one_file(const struct fishplate_inside *in, const char *file, const struct info_options *o,
                          struct json *j)
{
    struct needs n = {.in = in, .needed = calloc(in->api_count, sizeof(*n.needed))};
    if (!n.needed) {
        fprintf(stderr, "fishplate info: out of memory.\n");
        return 2;
    }
    struct elf f;
    const char *problem = elf_open(&f, file);
    if (!problem) {
        problem = elf_for_each_undefined(&f, needs_add_symbol, &n);
        elf_find_dynamic(&f, DT_NEEDED, needs_add_foreign_library, &n);
        elf_close(&f);
    }
    if (problem)
        fprintf(stderr, "fishplate info: cannot read the symbols of %s: %s.\n", file, problem);
    else if (o->json)
        print_json(&n, file, j);
    else
        print_text(&n, file, o);
    free(n.needed);
    return problem ? 2 : n.nstrangers > 0 || n.foreign[0];
}

int info_needs(const struct fishplate_inside *in, const struct info_options *o)
{
    struct json j = {.out = stdout};
    int status = 0;
    if (o->json) {
        json_object(&j, NULL);
        json_string(&j, "version", in->version);
        json_array(&j, "needs");
    }
    for (int i = 0; i < o->nfiles; i++) {
        const int one = check_one_file(in, o->files[i], o, &j);
        status = one > status ? one : status;
    }
    if (o->json) {
        json_end(&j);
        json_end(&j);
    }
    return status;
}
