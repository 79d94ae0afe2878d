/* explore.h: visits every state that a small system can reach. The test provides states of a fixed size
 * that compare byte by byte (no padding, or zeroed) and a function that adds the successors of one state.
 * The search is breadth-first, so the printed trail to a wrong state is a shortest one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_EXPLORE_H
#define FP_TESTS_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct explore {
    size_t size;           /* bytes of one state */
    uint32_t count;        /* number of states found */
    uint32_t capacity;     /* of the arrays, in states */
    uint32_t slots;        /* slots of the hash table, a power of two */
    uint32_t current;      /* the state whose successors are being added */
    char *states;          /* in the order of discovery */
    uint32_t *predecessor; /* the state from which each state was reached first */
    const char **event;    /* the event that led from the predecessor to the state */
    uint32_t *table;       /* hash table of state index + 1; 0: empty slot */
};

static inline void explore_open(struct explore *e, size_t size)
{
    *e = (struct explore){.size = size, .capacity = 1 << 12, .slots = 1 << 13};
    e->states = malloc(e->capacity * size);
    e->predecessor = malloc(e->capacity * sizeof(*e->predecessor));
    e->event = malloc(e->capacity * sizeof(*e->event));
    e->table = calloc(e->slots, sizeof(*e->table));
}

static inline void explore_close(struct explore *e)
{
    free(e->states);
    free(e->predecessor);
    free(e->event);
    free(e->table);
}

static inline const void *explore_state(const struct explore *e, uint32_t i)
{
    return e->states + i * e->size;
}

static inline uint32_t explore_hash_state(const struct explore *e, const void *state)
{
    const char *bytes = state;
    uint64_t hash = 0;
    for (size_t i = 0; i < e->size; i += sizeof(hash)) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, e->size - i < sizeof(word) ? e->size - i : sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32) & (e->slots - 1);
}

static inline void explore_grow(struct explore *e)
{
    e->capacity *= 2;
    e->slots *= 2;
    e->states = realloc(e->states, e->capacity * e->size);
    e->predecessor = realloc(e->predecessor, e->capacity * sizeof(*e->predecessor));
    e->event = realloc(e->event, e->capacity * sizeof(*e->event));
    free(e->table);
    e->table = calloc(e->slots, sizeof(*e->table));
    if (!e->states || !e->predecessor || !e->event || !e->table) {
        printf("explore: no memory for %u states\n", e->capacity);
        exit(1);
    }
    for (uint32_t i = 0; i < e->count; i++) {
        uint32_t slot = explore_hash_state(e, explore_state(e, i));
        while (e->table[slot])
            slot = (slot + 1) & (e->slots - 1);
        e->table[slot] = i + 1;
    }
}

/* Adds a state that `event` reaches from the current state, unless the state is known. Returns the index
 * of the state. */
static inline uint32_t explore_add(struct explore *e, const void *state, const char *event)
{
    uint32_t slot = explore_hash_state(e, state);
    for (; e->table[slot]; slot = (slot + 1) & (e->slots - 1))
        if (memcmp(explore_state(e, e->table[slot] - 1), state, e->size) == 0)
            return e->table[slot] - 1;
    if (e->count == e->capacity) {
        explore_grow(e);
        slot = explore_hash_state(e, state);
        while (e->table[slot])
            slot = (slot + 1) & (e->slots - 1);
    }
    e->table[slot] = e->count + 1;
    memcpy(e->states + e->count * e->size, state, e->size);
    e->predecessor[e->count] = e->current;
    e->event[e->count] = event;
    return e->count++;
}

/* Expands all states until no new state is found or `expand_state` returns false. Returns false in the
 * second case. */
static inline bool explore_run(struct explore *e, const void *first,
                               bool (*expand_state)(struct explore *e, const void *state))
{
    explore_add(e, first, "begin");
    char *state = malloc(e->size); /* a copy: explore_grow may move the array */
    bool good = true;
    for (e->current = 0; good && e->current < e->count; e->current++) {
        memcpy(state, explore_state(e, e->current), e->size);
        good = expand_state(e, state);
        if (!good)
            break;
    }
    free(state);
    return good;
}

/* Prints the events that led to a state, first to last. */
static inline void explore_print_trail(const struct explore *e, uint32_t i)
{
    if (i != 0)
        explore_print_trail(e, e->predecessor[i]);
    printf("  %s\n", e->event[i]);
}

/* Explores all states that `first` leads to and returns their number. After the search `unexpected`
 * reports failures and returns true if the trail to the last state is to be printed. */
static inline uint32_t explore_all_states(size_t size, const void *first,
                                          bool (*expand_state)(struct explore *e, const void *state),
                                          bool (*unexpected)(void))
{
    struct explore e;
    explore_open(&e, size);
    explore_run(&e, first, expand_state);
    if (unexpected())
        explore_print_trail(&e, e.current);
    const uint32_t count = e.count;
    explore_close(&e);
    return count;
}

#endif
