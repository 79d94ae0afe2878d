/* source_line.c: resolves return addresses to file and line by addr2line, once for each address.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "source_line.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/elf.h"

struct known {
    struct page_place at;
    char text[160];
};

struct places {
    struct known *known;
    size_t count;
};

struct places *places_open(void)
{
    return calloc(1, sizeof(struct places));
}

void places_close(struct places *p)
{
    if (p)
        free(p->known);
    free(p);
}

static uint64_t module_base(const char *module)
{
    struct elf f;
    if (elf_open(&f, module) != NULL)
        return 0;
    const uint64_t base = elf_base_address(&f);
    elf_close(&f);
    return base;
}

/* Reads the first line that a command prints. No shell is used, because the path comes from the user. */
static void place_read_command_output(char *const argv[], char *line, size_t size)
{
    int ends[2];
    line[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_RDWR);
        dup2(nowhere, STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    if (in && !fgets(line, (int)size, in))
        line[0] = '\0';
    if (in)
        fclose(in);
    else
        close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    line[strcspn(line, "\n")] = '\0';
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A name without a folder is that of another user's program (sample_set_user). Opening a FIFO or a device could
 * block or have side effects. */
static bool is_path_of_file(const char *module)
{
    struct stat s;
    return module[0] == '/' && stat(module, &s) == 0 && S_ISREG(s.st_mode);
}

static void place_find_line(const struct page_place *at, char *line, size_t size)
{
    char address[32];
    line[0] = '\0';
    if (!is_path_of_file(at->module))
        return;
    snprintf(address, sizeof(address), "0x%llx",
             (unsigned long long)(at->offset - 1 + module_base(at->module)));
    place_read_command_output((char *[]){"addr2line", "-e", (char *)at->module, address, NULL}, line, size);
}

static void place_query_addr2line(const struct page_place *at, char *out, size_t size)
{
    char line[1024];
    place_find_line(at, line, sizeof(line));
    char *note = strstr(line, " (discriminator");
    if (note)
        *note = '\0';
    if (line[0] && line[0] != '?' && !strstr(line, ":?") && !strstr(line, ":0"))
        snprintf(out, size, "%s", base_name(line));
    else if (at->symbol[0])
        snprintf(out, size, "%.100s (in %.48s)", at->symbol, base_name(at->module));
    else
        snprintf(out, size, "%.100s+0x%llx", base_name(at->module), (unsigned long long)at->offset);
}

const char *place_text(struct places *p, const struct page_place *at)
{
    if (!p || !at->module[0])
        return "";
    for (size_t i = 0; i < p->count; i++)
        if (p->known[i].at.offset == at->offset && strcmp(p->known[i].at.module, at->module) == 0)
            return p->known[i].text;
    struct known *grown = realloc(p->known, (p->count + 1) * sizeof(*grown));
    if (!grown)
        return "";
    p->known = grown;
    struct known *k = &grown[p->count++];
    k->at = *at;
    place_query_addr2line(at, k->text, sizeof(k->text));
    return k->text;
}
