/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines in order: see deadlines.h. */
#include "net/tcp/deadlines.h"

static void put_entry(struct deadlines *d, uint16_t at, uint16_t entry)
{
    d->table[at].heap = entry;
    d->table[entry].place = (uint16_t)(at + 1);
}

static uint64_t key_at(const struct deadlines *d, uint16_t at)
{
    return d->table[d->table[at].heap].key;
}

static void sift_up(struct deadlines *d, uint16_t at)
{
    uint16_t entry = d->table[at].heap;
    uint64_t key = d->table[entry].key;

    while (at > 0 && key_at(d, (uint16_t)((at - 1) / 2)) > key) {
        put_entry(d, at, d->table[(at - 1) / 2].heap);
        at = (uint16_t)((at - 1) / 2);
    }
    put_entry(d, at, entry);
}

static void sift_down(struct deadlines *d, uint16_t at)
{
    uint16_t entry = d->table[at].heap;
    uint64_t key = d->table[entry].key;

    for (;;) {
        uint16_t child = (uint16_t)(2 * at + 1);

        if (child + 1 < d->count &&
            key_at(d, (uint16_t)(child + 1)) < key_at(d, child)) {
            child++;
        }
        if (child >= d->count || key_at(d, child) >= key) {
            break;
        }
        put_entry(d, at, d->table[child].heap);
        at = child;
    }
    put_entry(d, at, entry);
}

static void remove_first(struct deadlines *d)
{
    d->table[d->table[0].heap].place = 0;
    d->count--;
    if (d->count != 0) {
        d->table[0].heap = d->table[d->count].heap;
        sift_down(d, 0);
    }
}

void deadlines_init(struct deadlines *deadlines, struct deadline *table,
                    uint16_t entries)
{
    deadlines->table = table;
    deadlines->count = 0;
    for (uint16_t i = 0; i < entries; i++) {
        table[i] = (struct deadline){.due = DEADLINE_NONE};
    }
}

void deadlines_set(struct deadlines *deadlines, uint16_t entry, uint64_t due_us)
{
    struct deadline *deadline = &deadlines->table[entry];

    deadline->due = due_us;
    if (due_us == DEADLINE_NONE) {
        return;
    }
    if (deadline->place == 0) {
        deadline->key = due_us;
        deadlines->table[deadlines->count].heap = entry;
        sift_up(deadlines, deadlines->count++);
    } else if (due_us < deadline->key) {
        deadline->key = due_us;
        sift_up(deadlines, (uint16_t)(deadline->place - 1));
    }
}

uint64_t deadlines_next(const struct deadlines *deadlines)
{
    return deadlines->count != 0 ? key_at(deadlines, 0) : DEADLINE_NONE;
}

bool deadlines_take(struct deadlines *deadlines, uint64_t now_us,
                    uint16_t *entry)
{
    while (deadlines_next(deadlines) <= now_us && deadlines->count != 0) {
        uint16_t first = deadlines->table[0].heap;
        struct deadline *deadline = &deadlines->table[first];

        if (deadline->due <= now_us) {
            remove_first(deadlines);
            deadline->due = DEADLINE_NONE;
            *entry = first;
            return true;
        }
        if (deadline->due == DEADLINE_NONE) {
            remove_first(deadlines);
        } else {
            deadline->key = deadline->due;
            sift_down(deadlines, 0);
        }
    }
    return false;
}
