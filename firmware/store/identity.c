/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/identity.h"

#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

enum {                         /* byte offsets; little-endian */
       IDENTITY_MAGIC = 0,     /* 8 bytes */
       IDENTITY_VERSION = 8,   /* 16 bits: 1; another one is not read */
       IDENTITY_LENGTH = 10,   /* 16 bits: the whole block, CRC included */
       IDENTITY_SERIAL = 12,   /* 20 bytes; texts are padded with zero bytes */
       IDENTITY_MODEL = 32,    /* 40 bytes */
       IDENTITY_MAC = 72,      /* eight addresses of 6 bytes */
       IDENTITY_CA_GUID = 120, /* 8 bytes: the first MAC address as modified
                                * EUI-64 */
       IDENTITY_UUID = 128,    /* 16 bytes */
       IDENTITY_NGUID = 144,   /* 16 bytes; bytes 8 to 10 are the OUI of
                                * Identify, 02:e5:5d */
       IDENTITY_NQN = 160, /* 224 bytes, of which at least the last is zero */
       IDENTITY_CAPACITY = 384, /* 64 bits */
       IDENTITY_RESERVED = 392,
       IDENTITY_CRC = IDENTITY_LEN - 4,
};
_Static_assert(IDENTITY_SERIAL + IDENTITY_SERIAL_LEN == IDENTITY_MODEL, "");
_Static_assert(IDENTITY_MODEL + IDENTITY_MODEL_LEN == IDENTITY_MAC, "");
_Static_assert(IDENTITY_MAC + 6 * IDENTITY_MAC_COUNT == IDENTITY_CA_GUID, "");
_Static_assert(IDENTITY_NQN + IDENTITY_NQN_LEN + 1 == IDENTITY_CAPACITY, "");
_Static_assert(IDENTITY_CAPACITY + 8 == IDENTITY_RESERVED, "");

static const uint8_t magic[8] = {'E', 'S', 'S', 'D', '-', 'I', 'D', '1'};

#define VERSION 1

/*
 * Copy a padded text.
 * @return false when it is empty, not printable, or padded with other bytes
 *         than zero
 */
static bool take_text(char *text, const uint8_t *from, size_t len)
{
    size_t used = 0;

    while (used < len && from[used] != 0) {
        if (from[used] < 0x20 || from[used] > 0x7e) {
            return false;
        }
        used++;
    }
    for (size_t i = used; i < len; i++) {
        if (from[i] != 0) {
            return false;
        }
    }
    memcpy(text, from, used);
    text[used] = '\0';
    return used > 0;
}

bool identity_parse(struct identity *identity, const uint8_t *buf, size_t len)
{
    struct identity id = {0};

    if (len < IDENTITY_LEN ||
        memcmp(buf + IDENTITY_MAGIC, magic, sizeof(magic)) != 0 ||
        get_le16(buf + IDENTITY_VERSION) != VERSION ||
        get_le16(buf + IDENTITY_LENGTH) != IDENTITY_LEN ||
        crc32_update(0, buf, IDENTITY_CRC) != get_le32(buf + IDENTITY_CRC)) {
        return false;
    }
    if (!take_text(id.serial, buf + IDENTITY_SERIAL, IDENTITY_SERIAL_LEN) ||
        !take_text(id.model, buf + IDENTITY_MODEL, IDENTITY_MODEL_LEN) ||
        !take_text(id.subsystem_nqn, buf + IDENTITY_NQN, IDENTITY_NQN_LEN) ||
        buf[IDENTITY_NQN + IDENTITY_NQN_LEN] != 0) {
        return false;
    }
    memcpy(id.mac, buf + IDENTITY_MAC, sizeof(id.mac));
    memcpy(id.ca_guid, buf + IDENTITY_CA_GUID, sizeof(id.ca_guid));
    memcpy(id.uuid, buf + IDENTITY_UUID, sizeof(id.uuid));
    memcpy(id.nguid, buf + IDENTITY_NGUID, sizeof(id.nguid));
    id.capacity_bytes = get_le64(buf + IDENTITY_CAPACITY);
    *identity = id;
    return true;
}

static void put_text(uint8_t *to, const char *text, size_t len)
{
    for (size_t i = 0; i < len && text[i] != '\0'; i++) {
        to[i] = (uint8_t)text[i];
    }
}

void identity_emit(const struct identity *identity, uint8_t *buf)
{
    memset(buf, 0, IDENTITY_LEN);
    memcpy(buf + IDENTITY_MAGIC, magic, sizeof(magic));
    put_le16(buf + IDENTITY_VERSION, VERSION);
    put_le16(buf + IDENTITY_LENGTH, IDENTITY_LEN);
    put_text(buf + IDENTITY_SERIAL, identity->serial, IDENTITY_SERIAL_LEN);
    put_text(buf + IDENTITY_MODEL, identity->model, IDENTITY_MODEL_LEN);
    put_text(buf + IDENTITY_NQN, identity->subsystem_nqn, IDENTITY_NQN_LEN);
    memcpy(buf + IDENTITY_MAC, identity->mac, sizeof(identity->mac));
    memcpy(buf + IDENTITY_CA_GUID, identity->ca_guid,
           sizeof(identity->ca_guid));
    memcpy(buf + IDENTITY_UUID, identity->uuid, sizeof(identity->uuid));
    memcpy(buf + IDENTITY_NGUID, identity->nguid, sizeof(identity->nguid));
    put_le64(buf + IDENTITY_CAPACITY, identity->capacity_bytes);
    put_le32(buf + IDENTITY_CRC, crc32_update(0, buf, IDENTITY_CRC));
}

static void with_nsid(const uint8_t *base, uint32_t nsid, uint8_t *id)
{
    memcpy(id, base, 16);
    put_be32(id + 12, get_be32(base + 12) ^ nsid);
}

void identity_namespace_uuid(const struct identity *identity, uint32_t nsid,
                             uint8_t uuid[16])
{
    with_nsid(identity->uuid, nsid, uuid);
}

void identity_namespace_nguid(const struct identity *identity, uint32_t nsid,
                              uint8_t nguid[16])
{
    with_nsid(identity->nguid, nsid, nguid);
}
