/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of namespaces as bytes.
 * Reference: docs/hardware/flash.md, "Namespaces"
 */
#include "storage/volume/volume_table.h"

#include <string.h>

#include "lib/bytes.h"

enum {                          /* byte offsets in the record; little-endian */
       RECORD_CREATIONS = 0,    /* 4 bytes: number of the last creation */
       RECORD_WINDOW_SHIFT = 4, /* 1 byte, 20 or more */
       RECORD_PLAN_COUNT = 5,   /* the setting by which the drive was divided:
                                 * namespaces, 1 byte */
       RECORD_PLAN_SHIFT = 6,   /* of it: block size, 1 byte */
       RECORD_MEDIUM_BYTES = 8, /* 8 bytes */
       RECORD_PLAN_SIZE_MIB = 16, /* of it: MiB of each namespace, 4 bytes */
       RECORD_NAMESPACES = 20, /* 2 bytes: namespaces, which follow, each with
                                * its runs of windows */
       RECORD_HOSTS = 22,      /* 2 bytes: hosts, after the dirty runs */
       RECORD_DIRTY_RUNS = 24, /* 2 bytes: runs of windows to be erased before
                                * they are used again, after the namespaces */
       RECORD_HEADER_LEN = 32,
};

enum {                    /* byte offsets in a namespace */
       NS_CREATION = 0,   /* 4 bytes: number of its creation */
       NS_NSID = 4,       /* 1 byte, as those that follow */
       NS_SHIFT = 5,      /* block size: 9 or 12 */
       NS_FLAGS = 6,      /* NS_IS_* */
       NS_PROTECTION = 7, /* enum volume_protection */
       NS_SIZE_BYTES = 8, /* 8 bytes */
       NS_PORTID = 16,    /* 2 bytes: port of a private one's attachment */
       NS_RUNS = 18,      /* 2 bytes: runs, which follow the namespace */
       NS_ANAGRPID = 20,  /* 0 in older records, where it means 1 */
       NS_PROTECTION_INFO = 21, /* 0 in older records: no metadata */
       NS_LEN = 32,
       NS_IS_PRIVATE = 0x01,
       NS_IS_FOR_ALL = 0x02,
       NS_IS_ERASING = 0x04, /* a Format has not ended */
       NS_FLAGS_ALL = 0x07,
};

enum { /* NS_PROTECTION_INFO */
       PI_TYPE_MASK = 0x03,
       PI_HAS_METADATA = 0x04,
       PI_IS_FIRST = 0x08,
       PI_ALL = 0x0f,
};

enum { RUN_FIRST = 0, RUN_COUNT = 2, RUN_LEN = 4 };

enum {
    HOST_NQN = 0,
    /* Bit n - 1 of 128: whether this host is attached to namespace n differs
     * from NS_IS_FOR_ALL. */
    HOST_EXCEPTIONS = VOLUME_NQN_LEN,
    HOST_LEN = VOLUME_NQN_LEN + 16,
};

enum { WINDOW_SHIFT_MAX = 52 };

/* ---- Writing. */

static uint8_t *put_run(uint8_t *at, uint32_t first, uint32_t count)
{
    put_le16(at + RUN_FIRST, (uint16_t)first);
    put_le16(at + RUN_COUNT, (uint16_t)count);
    return at + RUN_LEN;
}

/* @return the end of the runs; *count is set to their number */
static uint8_t *put_list(uint8_t *at, const uint16_t *list, uint32_t windows,
                         uint16_t *count)
{
    *count = 0;
    for (uint32_t i = 0, run; i < windows; i += run) {
        run = 1;
        while (i + run < windows && list[i + run] == list[i] + run) {
            run++;
        }
        at = put_run(at, list[i], run);
        (*count)++;
    }
    return at;
}

static uint8_t *put_ns(uint8_t *at, const struct volume_table *table,
                       uint32_t i)
{
    const struct volume_entry *ns = &table->ns[i];
    uint16_t runs;
    uint8_t *end;

    memset(at, 0, NS_LEN);
    put_le32(at + NS_CREATION, ns->creation);
    at[NS_NSID] = (uint8_t)(i + 1);
    at[NS_SHIFT] = ns->block_shift;
    at[NS_FLAGS] = (uint8_t)((ns->is_private ? NS_IS_PRIVATE : 0) |
                             (ns->is_for_all ? NS_IS_FOR_ALL : 0) |
                             (ns->is_erasing ? NS_IS_ERASING : 0));
    at[NS_PROTECTION] = ns->protection;
    put_le64(at + NS_SIZE_BYTES, ns->size_bytes);
    put_le16(at + NS_PORTID, ns->portid);
    at[NS_ANAGRPID] = ns->anagrpid;
    at[NS_PROTECTION_INFO] =
        (uint8_t)(ns->pi_type | (ns->has_metadata ? PI_HAS_METADATA : 0) |
                  (ns->pi_is_first ? PI_IS_FIRST : 0));
    end = put_list(at + NS_LEN, &table->list[ns->first_entry], ns->windows,
                   &runs);
    put_le16(at + NS_RUNS, runs);
    return end;
}

/* Dirty windows beyond the end of the medium are written too: they still hold
 * data when the drive gets its former, longer medium back. */
static uint8_t *put_dirty(uint8_t *at, const struct volume_table *table,
                          uint16_t *runs)
{
    *runs = 0;
    for (uint32_t i = 0, run; i < VOLUME_WINDOWS; i += run + 1) {
        run = 0;
        while (i + run < VOLUME_WINDOWS &&
               table->state[i + run] == WINDOW_DIRTY) {
            run++;
        }
        if (run != 0) {
            at = put_run(at, i, run);
            (*runs)++;
        }
    }
    return at;
}

static uint8_t *put_host(uint8_t *at, const struct volume_host *host)
{
    memcpy(at + HOST_NQN, host->nqn, VOLUME_NQN_LEN);
    for (unsigned int w = 0; w < ARRAY_LEN(host->exceptions); w++) {
        put_le32(at + HOST_EXCEPTIONS + 4 * w, host->exceptions[w]);
    }
    return at + HOST_LEN;
}

size_t volume_record_emit(const struct volume_table *table, uint8_t *buf)
{
    uint8_t *at = buf + RECORD_HEADER_LEN;
    uint16_t namespaces = 0;
    uint16_t dirty;

    memset(buf, 0, RECORD_HEADER_LEN);
    put_le32(buf + RECORD_CREATIONS, table->creations);
    buf[RECORD_WINDOW_SHIFT] = table->window_shift;
    buf[RECORD_PLAN_COUNT] = table->plan.count;
    buf[RECORD_PLAN_SHIFT] = table->plan.block_shift;
    put_le32(buf + RECORD_PLAN_SIZE_MIB, table->plan.size_mib);
    put_le64(buf + RECORD_MEDIUM_BYTES, table->medium_bytes);
    for (uint32_t i = 0; i < VOLUME_NAMESPACES; i++) {
        if (table->ns[i].creation != 0) {
            at = put_ns(at, table, i);
            namespaces++;
        }
    }
    at = put_dirty(at, table, &dirty);
    for (uint16_t i = 0; i < table->hosts; i++) {
        at = put_host(at, &table->host[i]);
    }
    put_le16(buf + RECORD_NAMESPACES, namespaces);
    put_le16(buf + RECORD_HOSTS, table->hosts);
    put_le16(buf + RECORD_DIRTY_RUNS, dirty);
    return (size_t)(at - buf);
}

/* ---- Reading. */

struct reader {
    const uint8_t *at;
    size_t left;
};

/* @return the next `len` bytes, NULL when there are fewer */
static const uint8_t *take_bytes(struct reader *reader, size_t len)
{
    const uint8_t *at = reader->at;

    if (reader->left < len) {
        return NULL;
    }
    reader->at += len;
    reader->left -= len;
    return at;
}

/* Read a run of windows that are not in any other run. */
static bool take_run(struct reader *reader, struct volume_table *table,
                     enum volume_window state, uint32_t *first, uint32_t *count)
{
    const uint8_t *run = take_bytes(reader, RUN_LEN);

    if (run == NULL) {
        return false;
    }
    *first = get_le16(run + RUN_FIRST);
    *count = get_le16(run + RUN_COUNT);
    if (*count == 0 || *first + *count > VOLUME_WINDOWS) {
        return false;
    }
    for (uint32_t i = *first; i < *first + *count; i++) {
        if (table->state[i] != WINDOW_CLEAN) {
            return false;
        }
        table->state[i] = (uint8_t)state;
    }
    return true;
}

static bool take_list(struct reader *reader, struct volume_table *table,
                      struct volume_entry *ns, uint16_t runs)
{
    uint32_t first, count;

    ns->first_entry = table->listed;
    for (uint16_t i = 0; i < runs; i++) {
        if (!take_run(reader, table, WINDOW_OWNED, &first, &count)) {
            return false;
        }
        for (uint32_t w = 0; w < count; w++) {
            table->list[table->listed++] = (uint16_t)(first + w);
        }
    }
    ns->windows = (uint16_t)(table->listed - ns->first_entry);
    return ns->windows != 0;
}

/* Whether the windows hold the namespace, or did on a longer medium. */
static bool judge_size(const struct volume_table *table,
                       struct volume_entry *ns)
{
    uint64_t start = 0;

    ns->is_cut = false;
    for (uint32_t w = 0; w < ns->windows; w++) {
        uint64_t bytes =
            volume_table_window_bytes(table, table->list[ns->first_entry + w]);
        uint64_t need =
            MIN(ns->size_bytes - start, UINT64_C(1) << table->window_shift);

        ns->is_cut |= bytes < need;
        start += need;
    }
    return start == ns->size_bytes;
}

static bool take_ns(struct reader *reader, struct volume_table *table)
{
    const uint8_t *at = take_bytes(reader, NS_LEN);
    struct volume_entry *ns;
    uint32_t i;

    if (at == NULL) {
        return false;
    }
    i = at[NS_NSID] - 1u;
    if (i >= VOLUME_NAMESPACES || table->ns[i].creation != 0 ||
        at[NS_FLAGS] & ~NS_FLAGS_ALL || at[NS_PROTECTION] >= PROTECTIONS ||
        at[NS_ANAGRPID] > VOLUME_ANA_GROUPS ||
        at[NS_PROTECTION_INFO] & ~PI_ALL ||
        (at[NS_SHIFT] != VOLUME_SHIFT_512 &&
         at[NS_SHIFT] != VOLUME_SHIFT_4096)) {
        return false;
    }
    ns = &table->ns[i];
    *ns = (struct volume_entry){
        .creation = get_le32(at + NS_CREATION),
        .size_bytes = get_le64(at + NS_SIZE_BYTES),
        .block_shift = at[NS_SHIFT],
        .is_private = at[NS_FLAGS] & NS_IS_PRIVATE,
        .is_for_all = at[NS_FLAGS] & NS_IS_FOR_ALL,
        .is_erasing = at[NS_FLAGS] & NS_IS_ERASING,
        .protection = at[NS_PROTECTION],
        .portid = get_le16(at + NS_PORTID),
        .anagrpid = MAX(at[NS_ANAGRPID], 1),
        .pi_type = at[NS_PROTECTION_INFO] & PI_TYPE_MASK,
        .has_metadata = at[NS_PROTECTION_INFO] & PI_HAS_METADATA,
        .pi_is_first = at[NS_PROTECTION_INFO] & PI_IS_FIRST,
    };
    return ns->creation != 0 && ns->creation <= table->creations &&
           ns->size_bytes >> ns->block_shift != 0 &&
           ns->size_bytes % 512 == 0 &&
           take_list(reader, table, ns, get_le16(at + NS_RUNS)) &&
           judge_size(table, ns);
}

static bool take_host(struct reader *reader, struct volume_table *table)
{
    const uint8_t *at = take_bytes(reader, HOST_LEN);
    struct volume_host *host = &table->host[table->hosts];

    if (at == NULL || at[VOLUME_NQN_LEN - 1] != 0) {
        return false;
    }
    memcpy(host->nqn, at + HOST_NQN, VOLUME_NQN_LEN);
    for (unsigned int w = 0; w < ARRAY_LEN(host->exceptions); w++) {
        host->exceptions[w] = get_le32(at + HOST_EXCEPTIONS + 4 * w);
    }
    table->hosts++;
    return true;
}

static bool take_header(struct reader *reader, struct volume_table *table,
                        uint64_t medium_bytes, const uint8_t **at)
{
    uint64_t windows;
    uint8_t shift;

    *at = take_bytes(reader, RECORD_HEADER_LEN);
    if (*at == NULL) {
        return false;
    }
    shift = (*at)[RECORD_WINDOW_SHIFT];
    if (shift < VOLUME_WINDOW_SHIFT_MIN || shift > WINDOW_SHIFT_MAX) {
        return false;
    }
    memset(table, 0, sizeof(*table));
    /* The medium may have another size than when the table was written. */
    windows = (medium_bytes + (UINT64_C(1) << shift) - 1) >> shift;
    table->windows = (uint16_t)MIN(windows, (uint64_t)VOLUME_WINDOWS);
    table->medium_bytes = MIN(medium_bytes, (uint64_t)VOLUME_WINDOWS << shift);
    table->window_shift = shift;
    table->creations = get_le32(*at + RECORD_CREATIONS);
    table->plan = (struct volume_plan){
        .count = (*at)[RECORD_PLAN_COUNT],
        .size_mib = get_le32(*at + RECORD_PLAN_SIZE_MIB),
        .block_shift = (*at)[RECORD_PLAN_SHIFT],
    };
    return true;
}

/*
 * The medium is longer than when the table was written.  It may have been as
 * long before that, so its end may hold data, also of a window that was erased
 * up to the former end only.
 */
static void dirty_new_windows(struct volume_table *table, uint64_t former_bytes)
{
    uint64_t first = former_bytes >> table->window_shift;

    for (uint64_t i = first;
         table->medium_bytes > former_bytes && i < VOLUME_WINDOWS; i++) {
        if (table->state[i] == WINDOW_CLEAN) {
            table->state[i] = WINDOW_DIRTY;
        }
    }
}

bool volume_record_parse(struct volume_table *table, uint64_t medium_bytes,
                         const uint8_t *buf, size_t len)
{
    struct reader reader = {buf, len};
    const uint8_t *at;
    uint16_t hosts;
    uint32_t first, count;

    if (!take_header(&reader, table, medium_bytes, &at)) {
        return false;
    }
    for (uint16_t i = 0; i < get_le16(at + RECORD_NAMESPACES); i++) {
        if (!take_ns(&reader, table)) {
            return false;
        }
    }
    for (uint16_t i = 0; i < get_le16(at + RECORD_DIRTY_RUNS); i++) {
        if (!take_run(&reader, table, WINDOW_DIRTY, &first, &count)) {
            return false;
        }
    }
    dirty_new_windows(table, get_le64(at + RECORD_MEDIUM_BYTES));
    hosts = get_le16(at + RECORD_HOSTS);
    for (uint16_t i = 0; i < hosts && hosts <= VOLUME_HOSTS; i++) {
        if (!take_host(&reader, table)) {
            return false;
        }
    }
    return hosts <= VOLUME_HOSTS && reader.left == 0;
}
