/* links.h: finds the links between ranks that are slower than the others. Pure: `fishplate ps` passes the
 * figures of the ranks' pages, `fishplate prof` those of its records (both from net/pace.h). A link is slow
 * if its large messages took at least LINK_SLOW times as long as those of other links of its kind, at their
 * fastest and in sum. The other links are those that touch neither of its ends, so that all links of a slow
 * node are found even if they are the majority.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_LINKS_H
#define FP_TOOLS_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINK_SLOW = 2, LINK_FEW = 2 /* others, at least */, LINK_MESSAGES = 5 /* at least */ };

struct link_seen {
    /* In. */
    int from, to;  /* ranks */
    int ends[2];   /* the nodes of the two, as numbers; a link within a node has the ranks themselves here */
    unsigned kind; /* links are compared with links of the same kind: medium and size class of messages */
    int rail;
    uint64_t messages, bytes, ns;
    double best;     /* seconds a byte, at the fastest */
    const char *how; /* for people; may be "" */
    /* Out. */
    double rate;   /* bytes a second */
    double others; /* median rate of the other links; 0: there are too few of them */
    double times;  /* ratio to the other links' fastest time; 0: too few messages */
    bool slow;
};

/* Merges the measurements of both ranks of a link. Returns the number of links left. */
size_t links_merge(struct link_seen *list, size_t n);

/* Judges all, and puts the slowest first. Returns how many are slow. */
size_t links_judge(struct link_seen *list, size_t n);

/* The end that all slow links have in common, when there are several and it is one alone; else -1. */
int links_find_slow_node(const struct link_seen *list, size_t n);

struct json;
void links_json(struct json *j, const struct link_seen *l);

#endif
