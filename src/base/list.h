/* list.h: an intrusive, doubly linked, circular list. The head is a node of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_LIST_H
#define FP_BASE_LIST_H

#include <stdbool.h>

#include "base/util.h"

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void list_prepend(struct list *head, struct list *node)
{
    list_append(head->next, node);
}

static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = node;
}

static inline struct list *list_first(struct list *head)
{
    return list_empty(head) ? NULL : head->next;
}

#define list_entry(node, type, member) container_of(node, type, member)

#define list_foreach(pos, head) for (struct list *pos = (head)->next; pos != (head); pos = pos->next)
#define list_foreach_safe(pos, after, head) \
    for (struct list *pos = (head)->next, *after = pos->next; pos != (head); pos = after, after = pos->next)

#endif
