/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hosts/host_table.h"

#include <string.h>

#include "lib/wipe.h"

static struct host_entry *find_entry(struct host_table *table, const char *nqn)
{
    for (uint16_t i = 0; i < table->list.count; i++) {
        if (strcmp(table->list.entry[i].nqn, nqn) == 0) {
            return &table->list.entry[i];
        }
    }
    return NULL;
}

const char *host_list_result_text(enum host_list_result result)
{
    static const char *const text[HOST_RESULTS] = {
        [HOST_OK] = "The list was changed and saved.",
        [HOST_BAD_NQN] = "A host NQN begins with \"nqn.\" and has at most 223 "
                         "printable characters.",
        [HOST_BAD_SECRET] = "This is not a secret of DH-HMAC-CHAP, or it has a "
                            "typing error; nvme gen-dhchap-key makes one.",
        [HOST_BAD_TLS_KEY] = "This is not a key of TLS, or it has a typing "
                             "error; nvme gen-tls-key makes one.",
        [HOST_BAD_HASH] = "The hash functions are sha256, sha384 and sha512.",
        [HOST_BAD_DH] = "The groups are null, ffdhe2048, ffdhe3072, ffdhe4096, "
                        "ffdhe6144 and ffdhe8192.",
        [HOST_NEEDS_KEY] = "A host without a secret of its own cannot have one "
                           "of the drive.",
        [HOST_UNKNOWN] = "The list does not have this host.",
        [HOST_FULL] = "The list is full; remove another host first.",
        [HOST_NOT_SAVED] = "Writing the list to flash failed; nothing has "
                           "changed.",
        [HOST_SAVED_HALF] = "The list was changed, but only one of its two "
                            "copies in flash holds it; repeat the change.",
    };

    return text[result];
}

/* @return false when there is no such name */
static bool find_name(const char *(*name_of)(uint8_t id), uint8_t first,
                      uint8_t limit, const char *name, uint8_t *id)
{
    for (*id = first; *id < limit; (*id)++) {
        if (strcmp(name_of(*id), name) == 0) {
            return true;
        }
    }
    return false;
}

static bool change_key(struct auth_key *key, const char *secret,
                       bool (*parse)(struct auth_key *key, const char *text))
{
    if (secret == NULL) {
        return true;
    }
    if (secret[0] == '\0') {
        memset(key, 0, sizeof(*key));
        return true;
    }
    return parse(key, secret);
}

static enum host_list_result change_entry(struct host_entry *entry,
                                          const struct host_change *change)
{
    if (!change_key(&entry->host_key, change->host_secret, auth_key_parse) ||
        !change_key(&entry->ctrl_key, change->ctrl_secret, auth_key_parse)) {
        return HOST_BAD_SECRET;
    }
    if (!change_key(&entry->tls_key, change->tls_key, auth_psk_parse)) {
        return HOST_BAD_TLS_KEY;
    }
    if (change->least_hash != NULL &&
        !find_name(auth_hash_name, AUTH_SHA256, AUTH_HASHES, change->least_hash,
                   &entry->least_hash)) {
        return HOST_BAD_HASH;
    }
    if (change->least_dh != NULL &&
        !find_name(auth_dh_name, AUTH_DH_NULL, AUTH_DHS, change->least_dh,
                   &entry->least_dh)) {
        return HOST_BAD_DH;
    }
    return entry->host_key.len == 0 && entry->ctrl_key.len != 0 ? HOST_NEEDS_KEY
                                                                : HOST_OK;
}

static enum host_list_result save_list(struct host_table *table)
{
    static const uint8_t results[] = {
        [HOST_SAVED] = HOST_OK,
        [HOST_SAVED_ONCE] = HOST_SAVED_HALF,
        [HOST_SAVE_FAILED] = HOST_NOT_SAVED,
    };

    return table->save == NULL
               ? HOST_OK
               : results[table->save(table->save_ctx, &table->list)];
}

enum host_list_result host_table_set(struct host_table *table, const char *nqn,
                                     const struct host_change *change)
{
    struct host_entry *entry = find_entry(table, nqn);
    bool is_new = entry == NULL;
    struct host_entry before, after;
    enum host_list_result result;

    if (!host_nqn_is_valid(nqn)) {
        return HOST_BAD_NQN;
    }
    if (is_new && table->list.count == HOSTS_MAX) {
        return HOST_FULL;
    }
    if (is_new) {
        entry = &table->list.entry[table->list.count];
        memset(entry, 0, sizeof(*entry));
        memcpy(entry->nqn, nqn, strlen(nqn));
        entry->least_hash = AUTH_SHA256;
    }
    before = *entry;
    after = before;
    result = change_entry(&after, change);
    if (result == HOST_OK) {
        *entry = after;
        table->list.count = (uint16_t)(table->list.count + is_new);
        result = save_list(table);
    }
    if (result == HOST_NOT_SAVED) {
        *entry = before;
        table->list.count = (uint16_t)(table->list.count - is_new);
    }
    wipe_bytes(&before, sizeof(before));
    wipe_bytes(&after, sizeof(after));
    return result;
}

enum host_list_result host_table_remove(struct host_table *table,
                                        const char *nqn)
{
    struct host_entry *entry = find_entry(table, nqn);
    struct host_entry removed, *last;
    enum host_list_result result;

    if (entry == NULL) {
        return HOST_UNKNOWN;
    }
    last = &table->list.entry[table->list.count - 1];
    /* The last entry takes the place of the one that is removed. */
    removed = *entry;
    *entry = *last;
    table->list.count--;
    result = save_list(table);
    if (result == HOST_NOT_SAVED) {
        *entry = removed;
        table->list.count++;
    } else {
        wipe_bytes(last, sizeof(*last));
    }
    wipe_bytes(&removed, sizeof(removed));
    return result;
}

enum host_list_result host_table_set_exclusive(struct host_table *table,
                                               bool is_exclusive)
{
    bool before = table->list.is_exclusive;
    enum host_list_result result;

    table->list.is_exclusive = is_exclusive;
    result = save_list(table);
    if (result == HOST_NOT_SAVED) {
        table->list.is_exclusive = before;
    }
    return result;
}

const struct auth_key *host_table_tls_key(const struct host_table *table,
                                          const char *nqn)
{
    for (uint16_t i = 0; i < table->list.count && !table->is_closed; i++) {
        const struct host_entry *entry = &table->list.entry[i];

        if (strcmp(entry->nqn, nqn) == 0) {
            return entry->tls_key.len != 0 ? &entry->tls_key : NULL;
        }
    }
    return NULL;
}

static bool find_host(void *ctx, const char *hostnqn, struct nvmf_host *host)
{
    struct host_table *table = ctx;
    const struct host_entry *entry = find_entry(table, hostnqn);

    if (table->is_closed || entry == NULL) {
        return !table->is_closed && !table->list.is_exclusive;
    }
    *host = (struct nvmf_host){
        .host_key = &entry->host_key,
        .ctrl_key = &entry->ctrl_key,
        .least_hash = entry->least_hash,
        .least_dh = entry->least_dh,
    };
    return true;
}

struct nvmf_hosts host_table_ops(struct host_table *table)
{
    return (struct nvmf_hosts){table, find_host};
}
