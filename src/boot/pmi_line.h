/* pmi_line.h: one line of the PMI-1 protocol: `key=value` words and a newline. The client in this folder
 * and the server in launcher/ compile this file, so that both reject the same invalid lines. Depends on
 * libc alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PMI_LINE_H
#define FP_BOOT_PMI_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMI_LINE_MAX  (1u << 20) /* the longest line is the node map of a very large job */
#define PMI_WORDS_MAX 24
#define PMI_KEY_MAX   64 /* limits that the server announces, with the terminator */
#define PMI_VALUE_MAX 1024
#define PMI_CHUNK \
    900 /* length of the longest value that the client sends: Slurm limits lines to 1024 bytes */

struct pmi_line {
    unsigned n;
    struct {
        const char *key, *value;
    } word[PMI_WORDS_MAX];
};

/*
 * Splits `text` (terminated, without the newline; modified) into words. Words without `=` are skipped,
 * because other servers put free text in messages. False: an empty key, a control character or too many
 * words; *out is then undefined.
 */
bool pmi_line_parse(char *text, struct pmi_line *out);

/* The first value of that key, or NULL. */
const char *pmi_line_get(const struct pmi_line *line, const char *key);

/* The value of the key as a decimal number in a range. False: the key is missing, or its value is no such
 * number. */
bool pmi_line_int(const struct pmi_line *line, const char *key, long min, long max, long *out);

/* Percent-encodes free text as one word. The result is truncated to `size` and terminated. */
void pmi_escape(const char *text, char *out, size_t size);

/* Decodes the result of pmi_escape in place. */
void pmi_unescape_all(char *text);

/* Decodes text that will be printed: unprintable bytes except newline become '?'. */
void pmi_unescape(char *text);

#endif
