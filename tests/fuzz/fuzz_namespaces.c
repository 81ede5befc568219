/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of namespaces: a record as flash may hold it, and then changes as
 * hosts make them.  Every accepted table must be consistent, must stay so, and
 * must be the same after it was written and read.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "storage/volume/volume_table.h"

enum {
    CHANGE_LEN = 4, /* bytes of a change: what, NSID, size in MiB, host */
    CHANGE_DELETE = 0,
    CHANGE_CREATE = 1,
    CHANGE_ATTACH = 2,
    CHANGE_DETACH = 3,
    CHANGE_ERASE = 4,
    CHANGES = 5,
    LENGTH_LEN = 2, /* the record's length, before it */
};
#define MEDIUM_BYTES ((UINT64_C(40) << 20) + 512)

static struct volume_table table, back; /* static, because they are large */
static uint8_t record[VOLUME_RECORD_MAX];

static void abort_unless(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static void check_table(const struct volume_table *t)
{
    uint32_t owned = 0, listed = 0;
    struct volume_capacity capacity;

    for (uint32_t i = 0; i < VOLUME_WINDOWS; i++) {
        owned += t->state[i] == WINDOW_OWNED;
    }
    for (uint32_t n = 0; n < VOLUME_NAMESPACES; n++) {
        const struct volume_entry *ns = &t->ns[n];

        if (ns->creation == 0) {
            continue;
        }
        abort_unless(ns->creation <= t->creations && ns->windows != 0);
        abort_unless(ns->first_entry + ns->windows <= t->listed);
        for (uint32_t w = 0; w < ns->windows; w++) {
            abort_unless(t->state[t->list[ns->first_entry + w]] ==
                         WINDOW_OWNED);
        }
        abort_unless(ns->is_cut ||
                     volume_table_owned_bytes(t, n + 1) >= ns->size_bytes);
        listed += ns->windows;
    }
    abort_unless(listed == t->listed && listed == owned);
    volume_table_capacity(t, &capacity);
    abort_unless(capacity.free_bytes <= capacity.total_bytes &&
                 capacity.total_bytes <= MEDIUM_BYTES);
}

static void check_record(void)
{
    size_t len = volume_record_emit(&table, record);

    abort_unless(len <= sizeof(record));
    abort_unless(volume_record_parse(&back, MEDIUM_BYTES, record, len));
    check_table(&back);
    abort_unless(memcmp(back.state, table.state, sizeof(table.state)) == 0);
    abort_unless(back.creations == table.creations &&
                 back.hosts == table.hosts);
}

static void change_table(const uint8_t *change)
{
    uint32_t nsid = change[1];
    const struct volume_entry entry = {
        .size_bytes = ((uint64_t)change[2] << 20) + 4096,
        .block_shift = change[3] & 1 ? VOLUME_SHIFT_4096 : VOLUME_SHIFT_512,
        .is_private = change[3] & 2,
        .anagrpid = (uint8_t)(change[3] % VOLUME_ANA_GROUPS + 1),
    };
    const char host[] = {(char)('a' + change[3] % 8), '\0'};
    bool attach = change[0] % CHANGES == CHANGE_ATTACH;
    uint32_t first;

    if (change[0] % CHANGES == CHANGE_CREATE) {
        (void)!volume_table_create(&table, &entry, &nsid);
    } else if (change[0] % CHANGES == CHANGE_ERASE) {
        if (volume_table_find_run(&table, WINDOW_DIRTY, 0, &first) != 0) {
            table.state[first] = WINDOW_CLEAN;
        }
    } else if (volume_table_find(&table, nsid) == NULL) {
        return;
    } else if (change[0] % CHANGES == CHANGE_DELETE) {
        volume_table_delete(&table, nsid);
    } else if (volume_table_attach(&table, nsid, host, change[2] & 1, attach) ==
               VOLUME_OK) {
        abort_unless(volume_table_is_attached(&table, nsid, host,
                                              change[2] & 1) == attach);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t record_len;

    if (len < LENGTH_LEN) {
        return 0;
    }
    record_len = (size_t)(data[0] | data[1] << 8);
    data += LENGTH_LEN;
    len -= LENGTH_LEN;
    if (record_len > len) {
        return 0;
    }
    if (record_len == 0) {
        volume_table_init(&table, MEDIUM_BYTES);
    } else if (!volume_record_parse(&table, MEDIUM_BYTES, data, record_len)) {
        return 0;
    }
    check_table(&table);
    for (data += record_len, len -= record_len; len >= CHANGE_LEN;
         data += CHANGE_LEN, len -= CHANGE_LEN) {
        change_table(data);
        check_table(&table);
    }
    check_record();
    return 0;
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t changes[] = {
        CHANGE_CREATE, 0, 3, 0, CHANGE_CREATE, 0, 9,  1, CHANGE_CREATE, 0, 1, 2,
        CHANGE_ATTACH, 1, 0, 0, CHANGE_ATTACH, 3, 1,  1, CHANGE_DELETE, 2, 0, 0,
        CHANGE_ERASE,  0, 0, 0, CHANGE_CREATE, 0, 20, 3, CHANGE_DETACH, 1, 0, 0,
    };
    size_t len = 0;

    if (n > 1) {
        return 0;
    }
    if (n == 1) {
        volume_table_init(&table, MEDIUM_BYTES);
        for (size_t i = 0; i < 6 * CHANGE_LEN; i += CHANGE_LEN) {
            change_table(changes + i);
        }
        len = volume_record_emit(&table, record);
    }
    abort_unless(room >= LENGTH_LEN + len + sizeof(changes));
    buf[0] = (uint8_t)len;
    buf[1] = (uint8_t)(len >> 8);
    memcpy(buf + LENGTH_LEN, record, len);
    memcpy(buf + LENGTH_LEN + len, changes, sizeof(changes));
    return LENGTH_LEN + len + sizeof(changes);
}
