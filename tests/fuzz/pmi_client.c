/* pmi_client.c: fuzzes the answers of a launcher to a rank: PMI-1 lines, the node map, values in chunks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <unistd.h>

#include "boot/chunk.h"
#include "boot/nodemap.h"
#include "boot/pmi1_conn.h"
#include "fuzz.h"

static void fuzz_lines(const uint8_t *data, size_t size)
{
    int ends[2];
    if (size > 60000 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return;
    struct pmi1_conn c = {.fd = ends[0]};
    if (size > 0 && write(ends[1], data, size) != (ssize_t)size)
        abort();
    close(ends[1]);
    while (pmi1_conn_recv(&c, 0) == 0)
        for (unsigned i = 0; i < c.line.n; i++) {
            long number;
            FUZZ_CHECK(pmi_line_get(&c.line, c.line.word[i].key) != NULL);
            if (pmi_line_int(&c.line, c.line.word[i].key, -5, 5, &number))
                FUZZ_CHECK(number >= -5 && number <= 5);
        }
    pmi1_conn_close(&c);
}

static void fuzz_node_map(const char *text)
{
    uint32_t node_of[64], again[64], nnodes, nagain;
    for (uint32_t size = 1; size <= 64; size += 21) {
        if (!nodemap_parse(text, size, node_of, &nnodes))
            continue;
        FUZZ_CHECK(nnodes >= 1 && nnodes <= size);
        for (uint32_t i = 0; i < size; i++)
            FUZZ_CHECK(node_of[i] < nnodes);
        char *formatted = nodemap_format(node_of, size);
        FUZZ_CHECK(formatted && nodemap_parse(formatted, size, again, &nagain) && nagain == nnodes);
        FUZZ_CHECK(memcmp(node_of, again, size * sizeof(*again)) == 0);
        free(formatted);
    }
}

static void fuzz_value(const char *text, size_t size)
{
    size_t whole, len;
    void *val;
    chunk_text_len(text, &whole);
    if (!chunk_decode(text, size, &val, &len))
        return;
    FUZZ_CHECK(len <= size);
    free(val);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *free_text = fuzz_text(data, size), escaped[200];
    fuzz_lines(data, size);
    fuzz_node_map(text);
    fuzz_value(text, strlen(text));
    pmi_escape(text, escaped, sizeof(escaped));
    FUZZ_CHECK(strpbrk(escaped, " \n") == NULL);
    pmi_unescape(free_text);
    free(text);
    free(free_text);
    return 0;
}
