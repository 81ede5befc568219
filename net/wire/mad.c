/* SPDX-License-Identifier: BSD-2-Clause */
/* Management datagram header: see mad.h. */
#include "net/wire/mad.h"

#include "lib/bytes.h"

enum { BASE_VERSION = 1 };

_Static_assert(MAD_ATTRIBUTE_MODIFIER + 4 == MAD_HEADER_LEN, "24 bytes");

bool mad_parse(struct mad *mad, const uint8_t *buf, size_t len)
{
    if (len < MAD_LEN || buf[MAD_BASE_VERSION] != BASE_VERSION) {
        return false;
    }
    *mad = (struct mad){
        .mgmt_class = buf[MAD_MGMT_CLASS],
        .class_version = buf[MAD_CLASS_VERSION],
        .method = buf[MAD_METHOD],
        .status = get_be16(buf + MAD_STATUS),
        .class_specific = get_be16(buf + MAD_CLASS_SPECIFIC),
        .attribute_id = get_be16(buf + MAD_ATTRIBUTE_ID),
        .attribute_modifier = get_be32(buf + MAD_ATTRIBUTE_MODIFIER),
        .transaction_id = get_be64(buf + MAD_TRANSACTION_ID),
    };
    return true;
}

void mad_emit(const struct mad *mad, uint8_t *buf)
{
    buf[MAD_BASE_VERSION] = BASE_VERSION;
    buf[MAD_MGMT_CLASS] = mad->mgmt_class;
    buf[MAD_CLASS_VERSION] = mad->class_version;
    buf[MAD_METHOD] = mad->method;
    put_be16(buf + MAD_STATUS, mad->status);
    put_be16(buf + MAD_CLASS_SPECIFIC, mad->class_specific);
    put_be64(buf + MAD_TRANSACTION_ID, mad->transaction_id);
    put_be16(buf + MAD_ATTRIBUTE_ID, mad->attribute_id);
    put_be16(buf + MAD_RESERVED, 0);
    put_be32(buf + MAD_ATTRIBUTE_MODIFIER, mad->attribute_modifier);
}
