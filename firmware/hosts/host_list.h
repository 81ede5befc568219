/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of hosts with their keys, as it is in flash.
 * Reference: docs/hardware/flash.md, "Hosts"
 */
#ifndef ESSD_HOSTS_HOST_LIST_H
#define ESSD_HOSTS_HOST_LIST_H

#include "nvmeof/auth/auth_key.h"
#include "nvmeof/target/target.h"

enum { HOSTS_MAX = 64 };

struct host_entry {
    char nqn[NVMF_NQN_MAX + 1];
    struct auth_key host_key; /* empty: the host need not authenticate */
    struct auth_key ctrl_key; /* empty: the drive does not prove its identity */
    struct auth_key tls_key;  /* pre-shared key of TLS; empty: none */
    uint8_t least_hash;       /* enum auth_hash; at least AUTH_SHA256 */
    uint8_t least_dh;         /* enum auth_dh */
};

struct host_list {
    bool is_exclusive; /* only hosts on the list may connect */
    uint16_t count;
    struct host_entry entry[HOSTS_MAX];
};

/* How a change of the list came into the flash. */
enum host_save {
    HOST_SAVED,       /* both copies hold the new list */
    HOST_SAVED_ONCE,  /* one copy holds it, and is in force */
    HOST_SAVE_FAILED, /* no copy holds it: the old list is in force */
};

enum {
    HOST_LIST_HEADER_LEN = 32,
    HOST_ENTRY_LEN = 384,
    HOST_LONG_ENTRY_LEN = 440, /* in a list that has keys of TLS */
    HOST_LIST_SEAL_LEN = 16,
    HOST_LIST_LEN_MAX = HOST_LIST_HEADER_LEN + HOSTS_MAX * HOST_LONG_ENTRY_LEN,
};

/* The header of the list in flash, which its entries follow. */
struct host_list_header {
    uint32_t sequence; /* from 1 */
    uint16_t count;
    uint16_t entry_len; /* HOST_ENTRY_LEN or HOST_LONG_ENTRY_LEN */
    bool is_exclusive;
    uint32_t body_crc; /* CRC-32 of the entries */
};

/** @param buf  HOST_LIST_HEADER_LEN bytes, all written */
void host_list_header_emit(const struct host_list_header *header, uint8_t *buf);

/**
 * Whether all bytes of a header were written, which are written in their order.
 * Otherwise the power failed before, and these bytes never counted.
 */
bool host_list_header_is_complete(const uint8_t *buf);

/** @return false when these bytes are no intact header */
MUST_USE bool host_list_header_parse(struct host_list_header *header,
                                     const uint8_t *buf);

/** The seal of a copy, which says that no other copy is newer than this one.
 * @param buf  HOST_LIST_SEAL_LEN bytes, all written */
void host_list_seal_emit(uint32_t sequence, uint8_t *buf);

/** Whether these bytes are the seal of the list with this sequence number. */
MUST_USE bool host_list_seal_fits(uint32_t sequence, const uint8_t *buf);

/** @param buf  HOST_ENTRY_LEN bytes, all written: without the key of TLS */
void host_entry_emit(const struct host_entry *entry, uint8_t *buf);

/** @return false when a value is impossible */
MUST_USE bool host_entry_parse(struct host_entry *entry, const uint8_t *buf);

/** The same with the key of TLS.
 * @param buf  HOST_LONG_ENTRY_LEN bytes, all written */
void host_long_entry_emit(const struct host_entry *entry, uint8_t *buf);

/** @return false when a value is impossible */
MUST_USE bool host_long_entry_parse(struct host_entry *entry,
                                    const uint8_t *buf);

/** Whether a name can be a host NQN: 1 to 223 printable characters, without
 * spaces and quotation marks, that begin with "nqn.". */
bool host_nqn_is_valid(const char *nqn);

#endif
