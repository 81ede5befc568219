/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of table entries, linked by their indices.  An entry is in at most one
 * list of those that share an array of links.
 */
#ifndef ESSD_FTL_LIST_H
#define ESSD_FTL_LIST_H

#include "lib/util.h"

enum { FTL_LIST_END = 0xffff };

struct ftl_link {
    uint16_t next;
    uint16_t prev;
};

struct ftl_list {
    struct ftl_link *links;
    uint16_t head;
    uint16_t tail;
    uint16_t count;
};

static inline void ftl_list_init(struct ftl_list *list, struct ftl_link *links)
{
    *list = (struct ftl_list){links, FTL_LIST_END, FTL_LIST_END, 0};
}

/** Insert before `next`; FTL_LIST_END: at the end. */
static inline void ftl_list_insert(struct ftl_list *list, uint16_t entry,
                                   uint16_t next)
{
    uint16_t prev = next == FTL_LIST_END ? list->tail : list->links[next].prev;

    list->links[entry] = (struct ftl_link){next, prev};
    *(prev == FTL_LIST_END ? &list->head : &list->links[prev].next) = entry;
    *(next == FTL_LIST_END ? &list->tail : &list->links[next].prev) = entry;
    list->count++;
}

static inline void ftl_list_append(struct ftl_list *list, uint16_t entry)
{
    ftl_list_insert(list, entry, FTL_LIST_END);
}

/** Insert at the beginning.  Lists of free entries do this, so that those used
 * last are used again first: their memory is in the caches. */
static inline void ftl_list_push(struct ftl_list *list, uint16_t entry)
{
    uint16_t next = list->head;

    list->links[entry] = (struct ftl_link){next, FTL_LIST_END};
    *(next == FTL_LIST_END ? &list->tail : &list->links[next].prev) = entry;
    list->head = entry;
    list->count++;
}

static inline void ftl_list_remove(struct ftl_list *list, uint16_t entry)
{
    struct ftl_link link = list->links[entry];

    *(link.prev == FTL_LIST_END ? &list->head : &list->links[link.prev].next) =
        link.next;
    *(link.next == FTL_LIST_END ? &list->tail : &list->links[link.next].prev) =
        link.prev;
    list->count--;
}

/** @return FTL_LIST_END when the list is empty */
static inline uint16_t ftl_list_pop(struct ftl_list *list)
{
    uint16_t entry = list->head;

    if (entry != FTL_LIST_END) {
        uint16_t next = list->links[entry].next;

        *(next == FTL_LIST_END ? &list->tail : &list->links[next].prev) =
            FTL_LIST_END;
        list->head = next;
        list->count--;
    }
    return entry;
}

/** Append entries in this order. */
static inline void ftl_list_append_all(struct ftl_list *list,
                                       const uint16_t *entries, uint32_t count)
{
    struct ftl_link *links = list->links;
    uint16_t prev = list->tail;

    if (count == 0) {
        return;
    }
    *(prev == FTL_LIST_END ? &list->head : &links[prev].next) = entries[0];
    for (uint32_t i = 0; i + 1 < count; i++) {
        links[entries[i]] = (struct ftl_link){entries[i + 1], prev};
        prev = entries[i];
    }
    links[entries[count - 1]] = (struct ftl_link){FTL_LIST_END, prev};
    list->tail = entries[count - 1];
    list->count = (uint16_t)(list->count + count);
}

/** Remove the first entries. @return how many: at most `most` */
static inline uint32_t ftl_list_pop_all(struct ftl_list *list,
                                        uint16_t *entries, uint32_t most)
{
    uint32_t count = MIN(most, (uint32_t)list->count);
    uint16_t next = list->head;

    if (count == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = next;
        next = list->links[next].next;
    }
    *(next == FTL_LIST_END ? &list->tail : &list->links[next].prev) =
        FTL_LIST_END;
    list->head = next;
    list->count = (uint16_t)(list->count - count);
    return count;
}

/*
 * A list that is filled with ftl_list_append(), and then only popped and pushed
 * as a stack: its entries' links to their predecessors and its tail are not
 * kept up to date.
 */

/** @return FTL_LIST_END when the stack is empty */
static inline uint16_t ftl_stack_pop(struct ftl_list *stack)
{
    uint16_t entry = stack->head;

    if (entry != FTL_LIST_END) {
        stack->head = stack->links[entry].next;
        stack->count--;
    }
    return entry;
}

static inline void ftl_stack_push(struct ftl_list *stack, uint16_t entry)
{
    stack->links[entry].next = stack->head;
    stack->head = entry;
    stack->count++;
}

#endif
