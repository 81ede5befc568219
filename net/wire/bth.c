/* SPDX-License-Identifier: BSD-2-Clause */
/* Base Transport Header: see bth.h. */
#include "net/wire/bth.h"

#include "lib/bytes.h"

_Static_assert(BTH_PSN + 3 == BTH_LEN, "BTH is 12 bytes");

bool bth_parse(struct bth *bth, const uint8_t *buf, size_t len)
{
    if (len < BTH_LEN || (buf[BTH_FLAGS] & 0x0f) != 0) {
        return false;
    }
    *bth = (struct bth){
        .opcode = buf[BTH_OPCODE],
        .pad_bytes = buf[BTH_FLAGS] >> 4 & 3,
        .solicited = buf[BTH_FLAGS] & 0x80,
        .migrated = buf[BTH_FLAGS] & 0x40,
        .fecn = buf[BTH_FECN] & 0x80,
        .becn = buf[BTH_FECN] & 0x40,
        .ack_requested = buf[BTH_ACK_REQ] & 0x80,
        .pkey = get_be16(buf + BTH_PKEY),
        .dest_qp = get_be24(buf + BTH_DEST_QP),
        .psn = get_be24(buf + BTH_PSN),
    };
    return true;
}

void bth_emit(const struct bth *bth, uint8_t *buf)
{
    buf[BTH_OPCODE] = bth->opcode;
    buf[BTH_FLAGS] =
        (uint8_t)((bth->solicited ? 0x80 : 0) | (bth->migrated ? 0x40 : 0) |
                  (bth->pad_bytes & 3) << 4);
    put_be16(buf + BTH_PKEY, bth->pkey);
    buf[BTH_FECN] = (uint8_t)((bth->fecn ? 0x80 : 0) | (bth->becn ? 0x40 : 0));
    put_be24(buf + BTH_DEST_QP, bth->dest_qp);
    buf[BTH_ACK_REQ] = bth->ack_requested ? 0x80 : 0;
    put_be24(buf + BTH_PSN, bth->psn);
}
