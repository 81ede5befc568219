/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hosts/host_list.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32.h"

enum {                       /* byte offsets of the header; little-endian */
       HEADER_MAGIC = 0,     /* 8 bytes */
       HEADER_VERSION = 8,   /* 2 bytes: VERSION, which older firmware reads,
                              * unless a host has a key of TLS */
       HEADER_COUNT = 10,    /* 2 bytes: entries */
       HEADER_SEQUENCE = 12, /* 4 bytes */
       HEADER_FLAGS = 16,    /* 1 byte: FLAG_EXCLUSIVE */
       HEADER_BODY_CRC = 20, /* of all entries */
       HEADER_SPARE = 24,    /* 1 byte: a number for which the last byte of the
                              * header differs from ERASED in two bits or more */
       HEADER_CRC = 28,      /* of the 28 bytes before */
       FLAG_EXCLUSIVE = 1,
       VERSION = 1,
       VERSION_LONG = 2, /* entries with keys of TLS */
};
_Static_assert(HEADER_CRC + 4 == HOST_LIST_HEADER_LEN, "the CRC ends it");

enum {                         /* byte offsets of an entry */
       ENTRY_NQN = 0,          /* padded with zeroes */
       ENTRY_LEAST_HASH = 224, /* 1 byte: enum auth_hash */
       ENTRY_LEAST_DH = 225,   /* 1 byte: enum auth_dh */
       ENTRY_HOST_KEY = 232,
       ENTRY_CTRL_KEY = 304,
       ENTRY_TLS_KEY = HOST_ENTRY_LEN, /* VERSION_LONG only */
       TLS_KEY_MAX = 48,               /* bytes of the key itself */
       KEY_LEN = 0,  /* offsets in a key; of a secret 0 (none), 32, 48 or 64 */
       KEY_HASH = 1, /* of its transformation; 0: none */
       KEY_BYTES = 8,
       KEY_END = KEY_BYTES + AUTH_HASH_MAX,
};
_Static_assert(ENTRY_HOST_KEY + KEY_END == ENTRY_CTRL_KEY,
               "keys have 72 bytes");
_Static_assert((int)ENTRY_CTRL_KEY + (int)KEY_END <= (int)HOST_ENTRY_LEN,
               "an entry holds both keys");
_Static_assert((int)ENTRY_TLS_KEY + (int)KEY_BYTES + (int)TLS_KEY_MAX ==
                   (int)HOST_LONG_ENTRY_LEN,
               "a long entry ends with the key of TLS");

enum { /* byte offsets of the seal, which ends a copy; little-endian */
       SEAL_MAGIC = 0,    /* 8 bytes */
       SEAL_SEQUENCE = 8, /* 4 bytes: of the copy */
       SEAL_CRC = 12,     /* of the 12 bytes before */
};
_Static_assert(SEAL_CRC + 4 == HOST_LIST_SEAL_LEN, "the CRC ends it");

enum { ERASED = 0xff }; /* a byte that was not written */

static const uint8_t magic[8] = {'E', 'S', 'S', 'D', '-', 'H', 'S', 'T'};
static const uint8_t seal_magic[8] = {'E', 'S', 'S', 'D', '-', 'H', 'S', 'L'};

bool host_list_header_is_complete(const uint8_t *buf)
{
    return buf[HOST_LIST_HEADER_LEN - 1] != ERASED;
}

/* Whether one flipped bit cannot make a byte look as if it was not written. */
static bool is_far_from_erased(uint8_t byte)
{
    uint8_t zeros = (uint8_t)~byte;

    return (zeros & (zeros - 1)) != 0;
}

void host_list_header_emit(const struct host_list_header *header, uint8_t *buf)
{
    memset(buf, 0, HOST_LIST_HEADER_LEN);
    memcpy(buf + HEADER_MAGIC, magic, sizeof(magic));
    put_le16(buf + HEADER_VERSION,
             header->entry_len == HOST_LONG_ENTRY_LEN ? VERSION_LONG : VERSION);
    put_le16(buf + HEADER_COUNT, header->count);
    put_le32(buf + HEADER_SEQUENCE, header->sequence);
    buf[HEADER_FLAGS] = header->is_exclusive ? FLAG_EXCLUSIVE : 0;
    put_le32(buf + HEADER_BODY_CRC, header->body_crc);
    do {
        buf[HEADER_SPARE]++;
        put_le32(buf + HEADER_CRC, crc32_update(0, buf, HEADER_CRC));
    } while (!is_far_from_erased(buf[HOST_LIST_HEADER_LEN - 1]));
}

bool host_list_header_parse(struct host_list_header *header, const uint8_t *buf)
{
    uint16_t version = get_le16(buf + HEADER_VERSION);

    *header = (struct host_list_header){
        .sequence = get_le32(buf + HEADER_SEQUENCE),
        .count = get_le16(buf + HEADER_COUNT),
        .entry_len =
            version == VERSION_LONG ? HOST_LONG_ENTRY_LEN : HOST_ENTRY_LEN,
        .is_exclusive = buf[HEADER_FLAGS] & FLAG_EXCLUSIVE,
        .body_crc = get_le32(buf + HEADER_BODY_CRC),
    };
    return memcmp(buf + HEADER_MAGIC, magic, sizeof(magic)) == 0 &&
           (version == VERSION || version == VERSION_LONG) &&
           header->count <= HOSTS_MAX && header->sequence != 0 &&
           crc32_update(0, buf, HEADER_CRC) == get_le32(buf + HEADER_CRC);
}

void host_list_seal_emit(uint32_t sequence, uint8_t *buf)
{
    memcpy(buf + SEAL_MAGIC, seal_magic, sizeof(seal_magic));
    put_le32(buf + SEAL_SEQUENCE, sequence);
    put_le32(buf + SEAL_CRC, crc32_update(0, buf, SEAL_CRC));
}

bool host_list_seal_fits(uint32_t sequence, const uint8_t *buf)
{
    uint8_t expected[HOST_LIST_SEAL_LEN];

    host_list_seal_emit(sequence, expected);
    return memcmp(buf, expected, sizeof(expected)) == 0;
}

static void key_emit(const struct auth_key *key, uint8_t *buf)
{
    buf[KEY_LEN] = key->len;
    buf[KEY_HASH] = key->hash;
    memcpy(buf + KEY_BYTES, key->bytes, AUTH_HASH_MAX);
}

static bool key_parse(struct auth_key *key, const uint8_t *buf)
{
    key->len = buf[KEY_LEN];
    key->hash = buf[KEY_HASH];
    memcpy(key->bytes, buf + KEY_BYTES, AUTH_HASH_MAX);
    return (key->len == 0 || key->len == 32 || key->len == 48 ||
            key->len == 64) &&
           key->hash < AUTH_HASHES;
}

void host_entry_emit(const struct host_entry *entry, uint8_t *buf)
{
    memset(buf, 0, HOST_ENTRY_LEN);
    memcpy(buf + ENTRY_NQN, entry->nqn, sizeof(entry->nqn));
    buf[ENTRY_LEAST_HASH] = entry->least_hash;
    buf[ENTRY_LEAST_DH] = entry->least_dh;
    key_emit(&entry->host_key, buf + ENTRY_HOST_KEY);
    key_emit(&entry->ctrl_key, buf + ENTRY_CTRL_KEY);
}

bool host_nqn_is_valid(const char *nqn)
{
    size_t len = strnlen(nqn, NVMF_NQN_MAX + 1);

    if (len < 5 || len > NVMF_NQN_MAX || memcmp(nqn, "nqn.", 4) != 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (nqn[i] <= ' ' || nqn[i] > '~' || nqn[i] == '"' || nqn[i] == '\\') {
            return false;
        }
    }
    return true;
}

bool host_entry_parse(struct host_entry *entry, const uint8_t *buf)
{
    memset(&entry->tls_key, 0, sizeof(entry->tls_key));
    memcpy(entry->nqn, buf + ENTRY_NQN, sizeof(entry->nqn));
    entry->least_hash = buf[ENTRY_LEAST_HASH];
    entry->least_dh = buf[ENTRY_LEAST_DH];
    return host_nqn_is_valid(entry->nqn) && entry->least_hash >= AUTH_SHA256 &&
           entry->least_hash < AUTH_HASHES && entry->least_dh < AUTH_DHS &&
           key_parse(&entry->host_key, buf + ENTRY_HOST_KEY) &&
           key_parse(&entry->ctrl_key, buf + ENTRY_CTRL_KEY);
}

void host_long_entry_emit(const struct host_entry *entry, uint8_t *buf)
{
    uint8_t *key = buf + ENTRY_TLS_KEY;

    host_entry_emit(entry, buf);
    memset(key, 0, HOST_LONG_ENTRY_LEN - ENTRY_TLS_KEY);
    key[KEY_LEN] = entry->tls_key.len;
    key[KEY_HASH] = entry->tls_key.hash;
    memcpy(key + KEY_BYTES, entry->tls_key.bytes, TLS_KEY_MAX);
}

bool host_long_entry_parse(struct host_entry *entry, const uint8_t *buf)
{
    const uint8_t *key = buf + ENTRY_TLS_KEY;
    bool is_good = host_entry_parse(entry, buf);

    entry->tls_key.len = key[KEY_LEN];
    entry->tls_key.hash = key[KEY_HASH];
    memcpy(entry->tls_key.bytes, key + KEY_BYTES, TLS_KEY_MAX);
    return is_good &&
           (entry->tls_key.len == 0 || entry->tls_key.len == 32 ||
            entry->tls_key.len == TLS_KEY_MAX) &&
           entry->tls_key.hash <= AUTH_SHA384;
}
