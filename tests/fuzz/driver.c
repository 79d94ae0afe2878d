/* driver.c: replaces libFuzzer if that is missing: runs a target on every file of its corpus, then on
 * inputs made from these files by seeded changes. Accepts the options of libFuzzer that fuzz.py uses:
 *
 *     fuzz_NAME [-runs=N] [-max_total_time=SECONDS] [-seed=N] [-max_len=BYTES] FOLDER...
 * The same seed generates the same inputs. An input that ends the process is written to crash-NAME.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

struct input {
    uint8_t *bytes;
    size_t size;
};

static struct input *corpus;
static size_t ncorpus;
static uint64_t random_state = 1;
static size_t max_len = 4096;
static struct input current_input; /* the running input, for the signal handler */
static char crash_name[256] = "crash";

static uint32_t random_below(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return below ? (uint32_t)((random_state >> 20) % below) : 0;
}

static void write_input(int fd)
{
    for (size_t done = 0; done < current_input.size;) {
        ssize_t n = write(fd, current_input.bytes + done, current_input.size - done);
        if (n <= 0)
            return;
        done += (size_t)n;
    }
}

static void on_abort(int signal)
{
    int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0)
        write_input(fd);
    static const char text[] = "The input that did it was written to ";
    if (write(2, text, sizeof(text) - 1) > 0 && write(2, crash_name, strlen(crash_name)) > 0 &&
        write(2, "\n", 1) > 0)
        (void)signal;
    _exit(77 - 1);
}

static void load_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return;
    struct input in = {malloc(max_len), 0};
    corpus = realloc(corpus, (ncorpus + 1) * sizeof(*corpus));
    if (!corpus || !in.bytes)
        abort();
    in.size = fread(in.bytes, 1, max_len, f);
    corpus[ncorpus++] = in;
    fclose(f);
}

static int compare_by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_folder(const char *folder)
{
    struct dirent **names;
    int n = scandir(folder, &names, NULL, compare_by_name);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            load_file(path);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

/* ---- changes ---- */

static void insert_number(struct input *in)
{
    static const uint64_t numbers[] = {0,          1,          7,         8,         64,    127,
                                       255,        256,        4096,      32767,     65535, 0x7fffffff,
                                       0xffffffff, 1ull << 32, INT64_MAX, UINT64_MAX};
    uint64_t v = numbers[random_below(sizeof(numbers) / sizeof(numbers[0]))] + random_below(3) - 1;
    size_t width = (size_t)1 << random_below(4), at = random_below((uint32_t)in->size);
    uint8_t bytes[8];
    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(v >> 8 * (random_below(4) ? i : width - 1 - i));
    for (size_t i = 0; i < width && at + i < in->size; i++)
        in->bytes[at + i] = bytes[i];
}

static void insert_bytes(struct input *in, const uint8_t *bytes, size_t n)
{
    size_t at = random_below((uint32_t)in->size + 1);
    n = n < max_len - in->size ? n : max_len - in->size;
    memmove(in->bytes + at + n, in->bytes + at, in->size - at);
    for (size_t i = 0; i < n; i++)
        in->bytes[at + i] = bytes ? bytes[i] : (uint8_t)random_below(256);
    in->size += n;
}

static void remove_bytes(struct input *in)
{
    size_t at = random_below((uint32_t)in->size), n = 1 + random_below((uint32_t)(in->size - at));
    memmove(in->bytes + at, in->bytes + at + n, in->size - at - n);
    in->size -= n;
}

static void change_input(struct input *in)
{
    const struct input *other = ncorpus ? &corpus[random_below((uint32_t)ncorpus)] : NULL;
    size_t from;
    switch (in->size == 0 ? 5 : random_below(8)) {
    case 0:
        in->bytes[random_below((uint32_t)in->size)] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1:
        in->bytes[random_below((uint32_t)in->size)] = (uint8_t)random_below(256);
        break;
    case 2:
    case 3:
        insert_number(in);
        break;
    case 4:
        remove_bytes(in);
        break;
    case 5:
        insert_bytes(in, NULL, 1 + random_below(16));
        break;
    default: /* insert a part of another input */
        if (other && other->size) {
            from = random_below((uint32_t)other->size);
            insert_bytes(in, other->bytes + from, 1 + random_below((uint32_t)(other->size - from)));
        }
    }
}

static void make_input(struct input *in)
{
    in->size = 0;
    if (ncorpus) {
        const struct input *from = &corpus[random_below((uint32_t)ncorpus)];
        memcpy(in->bytes, from->bytes, from->size);
        in->size = from->size;
    }
    for (uint32_t n = 1 + random_below(8); n > 0; n--)
        change_input(in);
}

static void run_input(const struct input *in)
{
    current_input = *in;
    LLVMFuzzerTestOneInput(in->bytes, in->size);
}

int main(int argc, char **argv)
{
    unsigned long long runs = 10000, done = 0;
    long seconds = 0;
    time_t began = time(NULL);
    const char *name = strrchr(argv[0], '/');
    snprintf(crash_name, sizeof(crash_name), "crash-%s", name ? name + 1 : argv[0]);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-max_len=", 9) == 0)
            max_len = (size_t)atol(argv[i] + 9);
        else if (strncmp(argv[i], "-runs=", 6) == 0)
            runs = (unsigned long long)atoll(argv[i] + 6);
        else if (strncmp(argv[i], "-seed=", 6) == 0)
            random_state = (uint64_t)atoll(argv[i] + 6) * 0x9e3779b97f4a7c15ull | 1;
        else if (strncmp(argv[i], "-max_total_time=", 16) == 0)
            seconds = atol(argv[i] + 16), runs = UINT64_MAX;
    }
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-')
            load_folder(argv[i]);
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
    signal(SIGFPE, on_abort);
    for (size_t i = 0; i < ncorpus; i++, done++)
        run_input(&corpus[i]);
    struct input in = {malloc(max_len), 0};
    for (; done < runs && !(seconds && done % 64 == 0 && time(NULL) - began >= seconds); done++) {
        make_input(&in);
        run_input(&in);
    }
    fprintf(stderr, "Done %llu runs in %lld second(s)\n", done, (long long)(time(NULL) - began));
    return 0;
}
