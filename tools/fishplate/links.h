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

enum { LINK_SLOW = 2, LINK_FEW = 2 /* fewest other links */, LINK_MESSAGES = 5 /* fewest messages */ };

struct link_seen {
    /* Set by the caller: */
    int from, to;  /* ranks */
    int ends[2];   /* node numbers of `from` and `to`; for a link within a node the ranks themselves */
    unsigned kind; /* links are compared with links of the same kind: medium and size class of messages */
    int rail;
    uint64_t messages, bytes, ns;
    double best;     /* seconds per byte of the fastest message */
    const char *how; /* description of the link for the report; may be "" */
    /* Set by links_judge: */
    double rate;   /* bytes per second */
    double others; /* median rate of the other links, bytes per second; 0: too few links */
    double times;  /* ratio of `best` to the other links' median; 0: too few links */
    bool slow;
};

/* Merges the measurements of both ranks of a link. Returns the number of links left. */
size_t links_merge(struct link_seen *list, size_t n);

/* Judges all links and sorts them, the slowest first. Returns the number of slow links. */
size_t links_judge(struct link_seen *list, size_t n);

/* Returns the node that several slow links all have in common; -1 if there is none or it is ambiguous. */
int links_find_slow_node(const struct link_seen *list, size_t n);

struct json;
void links_json(struct json *j, const struct link_seen *l);

#endif
