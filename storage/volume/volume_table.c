/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/volume/volume_table.h"

#include <string.h>

enum { MIB_SHIFT = 20 };

void volume_table_init(struct volume_table *table, uint64_t medium_bytes)
{
    uint8_t shift = VOLUME_WINDOW_SHIFT_MIN;
    uint64_t windows;

    while ((medium_bytes + (UINT64_C(1) << shift) - 1) >> shift >
           VOLUME_WINDOWS) {
        shift++;
    }
    windows = (medium_bytes + (UINT64_C(1) << shift) - 1) >> shift;
    memset(table, 0, sizeof(*table));
    table->window_shift = shift;
    table->windows = (uint16_t)windows;
    table->medium_bytes = medium_bytes;
    table->plan.block_shift = VOLUME_SHIFT_512;
}

/* ---- Windows. */

static uint64_t full_window_bytes(const struct volume_table *table)
{
    return UINT64_C(1) << table->window_shift;
}

uint64_t volume_table_window_bytes(const struct volume_table *table,
                                   uint32_t window)
{
    uint64_t start = (uint64_t)window << table->window_shift;

    if (start >= table->medium_bytes) {
        return 0;
    }
    return MIN(table->medium_bytes - start, full_window_bytes(table));
}

uint32_t volume_table_find_run(const struct volume_table *table,
                               enum volume_window state, uint32_t from,
                               uint32_t *first)
{
    uint32_t window = from;
    uint32_t end;

    while (window < table->windows && table->state[window] != state) {
        window++;
    }
    *first = window;
    for (end = window; end < table->windows && table->state[end] == state;) {
        end++;
    }
    return end - window;
}

/* The number of full windows; a short one may follow them. */
static uint32_t full_windows(const struct volume_table *table)
{
    return (uint32_t)(table->medium_bytes >> table->window_shift) <
                   table->windows
               ? (uint32_t)(table->medium_bytes >> table->window_shift)
               : table->windows;
}

static uint32_t count_clean(const struct volume_table *table, uint32_t windows)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < windows; i++) {
        count += table->state[i] == WINDOW_CLEAN;
    }
    return count;
}

/* The first window of `count` adjacent clean ones; 0 when there are none. */
static uint32_t find_place(const struct volume_table *table, uint32_t windows,
                           uint32_t count)
{
    uint32_t run = 0;

    for (uint32_t i = 0; i < windows; i++) {
        run = table->state[i] == WINDOW_CLEAN ? run + 1 : 0;
        if (run == count) {
            return i + 1 - count;
        }
    }
    return 0;
}

static void own_window(struct volume_table *table, uint32_t window)
{
    table->state[window] = WINDOW_OWNED;
    table->list[table->listed++] = (uint16_t)window;
}

/*
 * Give a namespace enough windows for `bytes`, adjacent ones if there are as
 * many.  The short window is taken only when the full ones do not suffice.
 *
 * @return their number; 0 when too few are clean, and nothing changed
 */
static uint16_t own_windows(struct volume_table *table, uint64_t bytes)
{
    uint64_t size = full_window_bytes(table);
    uint64_t need = (bytes + size - 1) >> table->window_shift;
    uint32_t full = full_windows(table);
    uint32_t clean_full = count_clean(table, full);
    bool has_short = full < table->windows;
    bool takes_short;
    uint32_t window;

    if (need > VOLUME_WINDOWS) {
        return 0;
    }
    takes_short = clean_full + 1 == need && has_short &&
                  table->state[full] == WINDOW_CLEAN &&
                  bytes - ((need - 1) << table->window_shift) <=
                      volume_table_window_bytes(table, full);
    if (clean_full < need && !takes_short) {
        return 0;
    }
    window = find_place(table, full, (uint32_t)need - takes_short);
    for (uint32_t left = (uint32_t)need - takes_short; left > 0; window++) {
        if (table->state[window] == WINDOW_CLEAN) {
            own_window(table, window);
            left--;
        }
    }
    if (takes_short) {
        own_window(table, full);
    }
    return (uint16_t)need;
}

/* ---- Namespaces. */

const struct volume_entry *volume_table_find(const struct volume_table *table,
                                             uint32_t nsid)
{
    if (nsid == 0 || nsid > VOLUME_NAMESPACES ||
        table->ns[nsid - 1].creation == 0) {
        return NULL;
    }
    return &table->ns[nsid - 1];
}

enum volume_result volume_table_create(struct volume_table *table,
                                       const struct volume_entry *entry,
                                       uint32_t *nsid)
{
    uint16_t first = table->listed;
    uint32_t i = 0;
    uint16_t windows;

    while (i < VOLUME_NAMESPACES && table->ns[i].creation != 0) {
        i++;
    }
    if (i == VOLUME_NAMESPACES) {
        return VOLUME_NO_IDENTIFIER;
    }
    windows = own_windows(table, entry->size_bytes);
    if (windows == 0) {
        return VOLUME_NO_CAPACITY;
    }
    table->ns[i] = (struct volume_entry){
        .creation = ++table->creations,
        .size_bytes = entry->size_bytes,
        .block_shift = entry->block_shift,
        .has_metadata = entry->has_metadata,
        .pi_type = entry->pi_type,
        .pi_is_first = entry->pi_is_first,
        .is_private = entry->is_private,
        .is_for_all = entry->is_for_all,
        .anagrpid = entry->anagrpid,
        .first_entry = first,
        .windows = windows,
    };
    *nsid = i + 1;
    return VOLUME_OK;
}

bool volume_plans_differ(const struct volume_plan *a,
                         const struct volume_plan *b)
{
    return a->count != b->count || a->size_mib != b->size_mib ||
           a->block_shift != b->block_shift;
}

bool volume_table_divide(struct volume_table *table,
                         const struct volume_plan *plan)
{
    uint64_t medium_bytes = table->medium_bytes;
    uint64_t shares = plan->count != 0 ? plan->count : 1;
    uint64_t bytes = (uint64_t)plan->size_mib << MIB_SHIFT;
    struct volume_entry entry = {
        .block_shift = plan->block_shift,
        .is_for_all = true,
        .anagrpid = 1,
    };
    uint32_t nsid;

    if (plan->count == 0) {
        bytes = medium_bytes;
    } else if (bytes == 0) {
        bytes = (uint64_t)(table->windows / shares) << table->window_shift;
        bytes = MIN(bytes, medium_bytes);
    }
    entry.size_bytes = bytes;
    table->plan = *plan;
    for (uint64_t i = 0; i < shares; i++) {
        if (bytes == 0 ||
            volume_table_create(table, &entry, &nsid) != VOLUME_OK) {
            volume_table_init(table, medium_bytes);
            return false;
        }
    }
    return true;
}

/* Forget hosts that are treated like all others. */
static void drop_plain_hosts(struct volume_table *table)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < table->hosts; i++) {
        uint32_t any = 0;

        for (size_t w = 0; w < ARRAY_LEN(table->host[i].exceptions); w++) {
            any |= table->host[i].exceptions[w];
        }
        if (any != 0) {
            table->host[kept++] = table->host[i];
        }
    }
    table->hosts = kept;
}

void volume_table_delete(struct volume_table *table, uint32_t nsid)
{
    uint32_t i = nsid - 1;
    uint16_t first = table->ns[i].first_entry;
    uint16_t windows = table->ns[i].windows;

    for (uint16_t w = first; w < first + windows; w++) {
        table->state[table->list[w]] = WINDOW_DIRTY;
    }
    memmove(&table->list[first], &table->list[first + windows],
            (size_t)(table->listed - first - windows) * sizeof(table->list[0]));
    table->listed = (uint16_t)(table->listed - windows);
    for (uint32_t n = 0; n < VOLUME_NAMESPACES; n++) {
        if (table->ns[n].creation != 0 && table->ns[n].first_entry > first) {
            table->ns[n].first_entry =
                (uint16_t)(table->ns[n].first_entry - windows);
        }
    }
    for (uint16_t h = 0; h < table->hosts; h++) {
        table->host[h].exceptions[i / 32] &= ~BIT(i % 32);
    }
    drop_plain_hosts(table);
    table->ns[i] = (struct volume_entry){0};
}

void volume_table_close(struct volume_table *table)
{
    table->hosts = 0;
    for (uint32_t i = 0; i < VOLUME_NAMESPACES; i++) {
        if (table->ns[i].creation != 0) {
            table->ns[i].is_for_all = false;
            table->ns[i].protection = PROTECTION_ON;
        }
    }
    for (uint32_t i = 0; i < table->windows; i++) {
        if (table->state[i] == WINDOW_CLEAN) {
            table->state[i] = WINDOW_DIRTY;
        }
    }
}

uint64_t volume_table_owned_bytes(const struct volume_table *table,
                                  uint32_t nsid)
{
    const struct volume_entry *ns = &table->ns[nsid - 1];
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < ns->windows; i++) {
        bytes +=
            volume_table_window_bytes(table, table->list[ns->first_entry + i]);
    }
    return bytes;
}

void volume_table_capacity(const struct volume_table *table,
                           struct volume_capacity *capacity)
{
    *capacity = (struct volume_capacity){
        .window_bytes = full_window_bytes(table),
    };
    for (uint32_t i = 0; i < table->windows; i++) {
        uint64_t bytes = volume_table_window_bytes(table, i);

        capacity->total_bytes += bytes;
        capacity->free_bytes += table->state[i] != WINDOW_OWNED ? bytes : 0;
    }
}

uint32_t volume_table_in_group(const struct volume_table *table,
                               uint8_t anagrpid)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < VOLUME_NAMESPACES; i++) {
        count +=
            table->ns[i].creation != 0 && table->ns[i].anagrpid == anagrpid;
    }
    return count;
}

/* ---- Attachments. */

static int find_host(const struct volume_table *table, const char *hostnqn)
{
    for (uint16_t i = 0; i < table->hosts; i++) {
        if (strncmp(table->host[i].nqn, hostnqn, VOLUME_NQN_LEN) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_exception(const struct volume_table *table, int host, uint32_t i)
{
    return host >= 0 && (table->host[host].exceptions[i / 32] & BIT(i % 32));
}

bool volume_table_is_attached(const struct volume_table *table, uint32_t nsid,
                              const char *hostnqn, uint16_t portid)
{
    const struct volume_entry *ns = &table->ns[nsid - 1];

    if (is_exception(table, find_host(table, hostnqn), nsid - 1) ==
        ns->is_for_all) {
        return false;
    }
    return !ns->is_private || ns->portid == portid;
}

uint32_t volume_table_exceptions(const struct volume_table *table,
                                 uint32_t nsid)
{
    uint32_t count = 0;

    for (uint16_t i = 0; i < table->hosts; i++) {
        count += is_exception(table, i, nsid - 1);
    }
    return count;
}

/* @return -1 when there is no room */
static int add_host(struct volume_table *table, const char *hostnqn)
{
    struct volume_host *host = &table->host[table->hosts];

    if (table->hosts == VOLUME_HOSTS) {
        return -1;
    }
    memset(host, 0, sizeof(*host));
    strncpy(host->nqn, hostnqn, VOLUME_NQN_LEN - 1);
    return table->hosts++;
}

enum volume_result volume_table_attach(struct volume_table *table,
                                       uint32_t nsid, const char *hostnqn,
                                       uint16_t portid, bool attach)
{
    struct volume_entry *ns = &table->ns[nsid - 1];
    int host = find_host(table, hostnqn);

    if (volume_table_is_attached(table, nsid, hostnqn, portid) == attach) {
        return attach ? VOLUME_ALREADY : VOLUME_NOT_ATTACHED;
    }
    if (attach && ns->is_private && volume_table_exceptions(table, nsid) != 0) {
        return VOLUME_PRIVATE;
    }
    if (host < 0) {
        host = add_host(table, hostnqn);
    }
    if (host < 0) {
        return VOLUME_NO_HOST;
    }
    table->host[host].exceptions[(nsid - 1) / 32] ^= BIT((nsid - 1) % 32);
    ns->portid = ns->is_private && attach ? portid : 0;
    drop_plain_hosts(table);
    return VOLUME_OK;
}
