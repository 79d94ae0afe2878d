/* tunable.h: a tunable is declared by one line in the file that reads it. The environment variable
 * FISHPLATE_<NAME>, the range check, the suggestion for a mistyped name, `fishplate info`, the page of the
 * documentation and the MPI_T control variable follow from that line. tunables_load() reads all values
 * once, before the library starts.
 *     static TUNABLE_SIZE(eager_max, "EAGER_MAX", 16384, 0, 1 << 20,
 *                         "Largest message sent without a handshake.");
 *     ... (size_t)eager_max.value ...
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_TUNABLE_H
#define FP_BASE_TUNABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tunable_type { TUNABLE_IS_BOOL, TUNABLE_IS_INT, TUNABLE_IS_SIZE, TUNABLE_IS_STRING, TUNABLE_IS_CHOICE };
/* Sources of a value; later ones take precedence. */
enum tunable_source {
    SOURCE_DEFAULT,
    SOURCE_SITE_FILE,
    SOURCE_USER_FILE,
    SOURCE_ENVIRONMENT,
    SOURCE_PROGRAM
};

struct tunable {
    const char *name; /* without FISHPLATE_ */
    const char *doc;
    /* Of a choice: "auto|on|off"; its value is the index of a word. Of a string: the permitted words. */
    const char *choices;
    const char *text; /* value of a string; "": not set */
    int (*check)(
        /* checks the text of a string: returns 0 or MPI_ERR_ARG with a sentence; NULL: any text */
        const char *text);
    const char *file; /* source file; its folder names the layer */
    int64_t value, initial, min, max;
    enum tunable_type type;
    enum tunable_source source;
    bool laboratory; /* for experiments: set by FISHPLATE_LAB and MPI_T only, not documented for users */
    int64_t users;   /* of a choice: only the first `users` values are for users; 0: all */
};

#define TUNABLE_DEFINE(var, ...)                          \
    struct tunable var = {__VA_ARGS__, .file = __FILE__}; \
    static struct tunable *const var##_entry __attribute__((section("fp_tunables"), used)) = &var

#define TUNABLE_BOOL(var, NAME, def, DOC)                                                              \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_BOOL, .value = def, .initial = def, .max = 1, \
                   .text = "", .doc = DOC)
#define TUNABLE_INT(var, NAME, def, lo, hi, DOC)                                                       \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_INT, .value = def, .initial = def, .min = lo, \
                   .max = hi, .text = "", .doc = DOC)
#define TUNABLE_SIZE(var, NAME, def, lo, hi, DOC)                                                       \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_SIZE, .value = def, .initial = def, .min = lo, \
                   .max = hi, .text = "", .doc = DOC)
#define TUNABLE_STRING(var, NAME, DOC) \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_STRING, .text = "", .doc = DOC)
/* A tunable whose value is a string that the function CHECK accepts. */
#define TUNABLE_CHECKED(var, NAME, CHECK, DOC) \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_STRING, .text = "", .check = CHECK, .doc = DOC)
/* A tunable whose value is a list of the words in WORDS, separated by commas. */
#define TUNABLE_WORDS(var, NAME, WORDS, DOC) \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_STRING, .text = "", .choices = WORDS, .doc = DOC)
#define TUNABLE_CHOICE(var, NAME, def, CHOICES, DOC)                                           \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_CHOICE, .value = def, .initial = def, \
                   .choices = CHOICES, .text = "", .doc = DOC)

/* Tunables for experiments, set by FISHPLATE_LAB. */
#define LABORATORY_INT(var, NAME, def, lo, hi, DOC)                                                    \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_INT, .value = def, .initial = def, .min = lo, \
                   .max = hi, .text = "", .doc = DOC, .laboratory = true)
#define LABORATORY_SIZE(var, NAME, def, lo, hi, DOC)                                                    \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_SIZE, .value = def, .initial = def, .min = lo, \
                   .max = hi, .text = "", .doc = DOC, .laboratory = true)
#define LABORATORY_CHOICE(var, NAME, def, CHOICES, DOC)                                        \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_CHOICE, .value = def, .initial = def, \
                   .choices = CHOICES, .text = "", .doc = DOC, .laboratory = true)
/* A choice of which only the first `few` values are for users; the others are for experiments. */
#define TUNABLE_CHOICE_FEW(var, NAME, def, CHOICES, few, DOC)                                  \
    TUNABLE_DEFINE(var, .name = NAME, .type = TUNABLE_IS_CHOICE, .value = def, .initial = def, \
                   .choices = CHOICES, .text = "", .doc = DOC, .users = few)

/* Reads every tunable from the files of the site and of the user (settings_file.h), then from the
 * environment. Returns the number of problems (unknown names, values out of range), which tunables_report()
 * prints (called by one rank of a job only). */
int tunables_load(void);
void tunables_report(void);

/* Number of tunables, and the tunable of an index, sorted by name. */
size_t tunables_count(void);
struct tunable *tunables_get(size_t index);
struct tunable *tunables_find(const char *name);

/* Parses a whole number; with `units`, k, m or g may follow, or kb, mb or gb. Returns false, and leaves *out
 * alone, for other text. Numbers in info keys and in FISHPLATE_COLL have the same form. */
bool tunable_parse_number(const char *text, bool units, int64_t *out);

/* Parses and checks a value. Returns 0, or MPI_ERR_ARG with a text. */
int tunable_set(struct tunable *t, const char *text, enum tunable_source source);

/* Writes the value as a user would type it. */
void tunable_format(const struct tunable *t, char *out, size_t size);

/* True if the list of a TUNABLE_WORDS contains the word. */
bool tunable_has_word(const struct tunable *t, const char *word);

/* Reads a variable of a launcher or of the user's shell. The only getenv in the library. */
const char *env_get(const char *name);

#endif
