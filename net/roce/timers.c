/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines in order: see timers.h. */
#include "net/roce/timers.h"

#include <string.h>

static void put_entry(struct timers *t, uint16_t at, uint16_t slot)
{
    t->heap[at] = slot;
    t->place[slot] = (uint16_t)(at + 1);
}

static void sift_up(struct timers *t, uint16_t at)
{
    uint16_t slot = t->heap[at];

    while (at > 0) {
        uint16_t parent = (uint16_t)((at - 1) / 2);

        if (t->key[t->heap[parent]] <= t->key[slot]) {
            break;
        }
        put_entry(t, at, t->heap[parent]);
        at = parent;
    }
    put_entry(t, at, slot);
}

static void sift_down(struct timers *t, uint16_t at)
{
    uint16_t slot = t->heap[at];

    for (;;) {
        uint16_t child = (uint16_t)(2 * at + 1);

        if (child >= t->count) {
            break;
        }
        if (child + 1 < t->count &&
            t->key[t->heap[child + 1]] < t->key[t->heap[child]]) {
            child++;
        }
        if (t->key[t->heap[child]] >= t->key[slot]) {
            break;
        }
        put_entry(t, at, t->heap[child]);
        at = child;
    }
    put_entry(t, at, slot);
}

static void remove_first(struct timers *t)
{
    t->place[t->heap[0]] = 0;
    t->count--;
    if (t->count != 0) {
        t->heap[0] = t->heap[t->count];
        sift_down(t, 0);
    }
}

void timers_reset(struct timers *timers)
{
    memset(timers, 0, sizeof(*timers));
    memset(timers->due, 0xff, sizeof(timers->due));
}

void timers_set(struct timers *timers, uint16_t slot, uint64_t due_ns)
{
    timers->due[slot] = due_ns;
    if (due_ns == TIMERS_NONE) {
        return;
    }
    if (timers->place[slot] == 0) {
        timers->key[slot] = due_ns;
        timers->heap[timers->count] = slot;
        sift_up(timers, timers->count++);
    } else if (due_ns < timers->key[slot]) {
        timers->key[slot] = due_ns;
        sift_up(timers, (uint16_t)(timers->place[slot] - 1));
    }
}

bool timers_expired(struct timers *timers, uint64_t now_ns, uint16_t *slot)
{
    while (timers->count != 0 && timers_next(timers) <= now_ns) {
        uint16_t first = timers->heap[0];

        if (timers->due[first] <= now_ns) {
            remove_first(timers);
            timers->due[first] = TIMERS_NONE;
            *slot = first;
            return true;
        }
        if (timers->due[first] == TIMERS_NONE) {
            remove_first(timers);
        } else {
            timers->key[first] = timers->due[first];
            sift_down(timers, 0);
        }
    }
    return false;
}
