/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reservations that outlive a loss of power as bytes.
 * Reference: docs/hardware/flash.md, "Reservations"
 */
#include "storage/volume/reservations.h"

#include <string.h>

#include "lib/bytes.h"

enum {                        /* byte offsets in the header; little-endian */
       RECORD_VERSION = 0,    /* 2 bytes */
       RECORD_NAMESPACES = 2, /* 2 bytes; 4 reserved bytes follow */
       VERSION = 1,
};

enum {                /* byte offsets in a namespace */
       NS_NSID = 0,   /* 1 byte */
       NS_RTYPE = 1,  /* 1 byte; 0: no reservation */
       NS_HOLDER = 2, /* 2 bytes: which registrant, from 0; 0 if all hold it */
       NS_COUNT = 4,  /* 2 bytes: registrants, which follow */
       NS_UUID = 8,   /* if the NSID has another one, the entry is ignored */
};
_Static_assert(NS_UUID + RESERVATIONS_UUID_LEN == RESERVATIONS_NS_LEN,
               "the UUID ends a namespace");

enum {                        /* byte offsets in a registrant */
       REGISTRANT_HOSTID = 0, /* 16 bytes */
       REGISTRANT_KEY = 16,   /* 8 bytes */
};

/* In other types all registrants hold the reservation. */
static bool has_one_holder(const struct reservation *res)
{
    return res->rtype != RTYPE_NONE && res->rtype < RTYPE_WRITE_EXCLUSIVE_ALL;
}

static uint8_t *put_ns(uint8_t *at, uint32_t nsid,
                       const struct kept_reservation *ns)
{
    const struct reservation *res = &ns->state;

    memset(at, 0, RESERVATIONS_NS_LEN);
    at[NS_NSID] = (uint8_t)nsid;
    at[NS_RTYPE] = res->rtype;
    if (has_one_holder(res)) {
        put_le16(at + NS_HOLDER, res->holder);
    }
    put_le16(at + NS_COUNT, res->count);
    memcpy(at + NS_UUID, ns->uuid, RESERVATIONS_UUID_LEN);
    at += RESERVATIONS_NS_LEN;
    for (uint16_t i = 0; i < res->count; i++) {
        memcpy(at + REGISTRANT_HOSTID, res->registrant[i].hostid,
               RESERVATION_HOSTID_LEN);
        put_le64(at + REGISTRANT_KEY, res->registrant[i].key);
        at += RESERVATIONS_REGISTRANT_LEN;
    }
    return at;
}

size_t reservations_emit(const struct kept_reservations *kept, uint8_t *buf)
{
    uint8_t *at = buf + RESERVATIONS_HEADER_LEN;
    uint16_t namespaces = 0;

    memset(buf, 0, RESERVATIONS_HEADER_LEN);
    for (uint32_t i = 0; i < NVMF_RESERVATION_NAMESPACES; i++) {
        if (kept->ns[i].is_kept) {
            at = put_ns(at, i + 1, &kept->ns[i]);
            namespaces++;
        }
    }
    put_le16(buf + RECORD_VERSION, VERSION);
    put_le16(buf + RECORD_NAMESPACES, namespaces);
    return (size_t)(at - buf);
}

/* ---- Reading. */

/* Whether the holder is registered, and no host is registered twice.  Nobody is
 * if a record was lost. */
static bool is_consistent(const struct reservation *res)
{
    if (res->rtype >= RTYPES || (has_one_holder(res) && res->count == 0) ||
        (res->holder != 0 && res->holder >= res->count)) {
        return false;
    }
    for (uint16_t i = 0; i < res->count; i++) {
        if (reservation_find(res, res->registrant[i].hostid) != i) {
            return false;
        }
    }
    return true;
}

/* Read a namespace from `at` on.  @return its length, 0 when it is invalid */
static size_t take_ns(struct kept_reservations *kept, const uint8_t *at,
                      size_t left)
{
    struct kept_reservation *ns;
    struct reservation *res;
    uint16_t count;
    size_t len;

    if (left < RESERVATIONS_NS_LEN || at[NS_NSID] == 0 ||
        at[NS_NSID] > NVMF_RESERVATION_NAMESPACES) {
        return 0;
    }
    count = get_le16(at + NS_COUNT);
    len = RESERVATIONS_NS_LEN + (size_t)count * RESERVATIONS_REGISTRANT_LEN;
    ns = &kept->ns[at[NS_NSID] - 1];
    if (count > NVMF_MAX_REGISTRANTS || left < len || ns->is_kept) {
        return 0;
    }
    ns->is_kept = true;
    memcpy(ns->uuid, at + NS_UUID, RESERVATIONS_UUID_LEN);
    res = &ns->state;
    res->ptpl = true;
    res->rtype = at[NS_RTYPE];
    res->holder = get_le16(at + NS_HOLDER);
    res->count = count;
    for (uint16_t i = 0; i < count; i++) {
        const uint8_t *from =
            at + RESERVATIONS_NS_LEN + i * RESERVATIONS_REGISTRANT_LEN;

        memcpy(res->registrant[i].hostid, from + REGISTRANT_HOSTID,
               RESERVATION_HOSTID_LEN);
        res->registrant[i].key = get_le64(from + REGISTRANT_KEY);
    }
    return is_consistent(res) ? len : 0;
}

bool reservations_parse(struct kept_reservations *kept, const uint8_t *buf,
                        size_t len)
{
    size_t at = RESERVATIONS_HEADER_LEN;

    memset(kept, 0, sizeof(*kept));
    if (len < at || get_le16(buf + RECORD_VERSION) != VERSION) {
        return false;
    }
    for (uint16_t i = 0; i < get_le16(buf + RECORD_NAMESPACES); i++) {
        size_t taken = take_ns(kept, buf + at, len - at);

        if (taken == 0) {
            return false;
        }
        at += taken;
    }
    return at == len;
}
