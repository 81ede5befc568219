/* SPDX-License-Identifier: BSD-2-Clause */
/* RETH, AETH, DETH, IETH, ImmDt: see roce_ext.h. */
#include "net/wire/roce_ext.h"

#include "lib/bytes.h"

_Static_assert(RETH_DMA_LEN + 4 == RETH_LEN, "RETH is 16 bytes");
_Static_assert(AETH_MSN + 3 == AETH_LEN, "AETH is 4 bytes");
_Static_assert(DETH_SRC_QP + 3 == DETH_LEN, "DETH is 8 bytes");

bool reth_parse(struct reth *reth, const uint8_t *buf, size_t len)
{
    if (len < RETH_LEN) {
        return false;
    }
    *reth = (struct reth){
        .va = get_be64(buf + RETH_VA),
        .rkey = get_be32(buf + RETH_RKEY),
        .dma_len_bytes = get_be32(buf + RETH_DMA_LEN),
    };
    return true;
}

void reth_emit(const struct reth *reth, uint8_t *buf)
{
    put_be64(buf + RETH_VA, reth->va);
    put_be32(buf + RETH_RKEY, reth->rkey);
    put_be32(buf + RETH_DMA_LEN, reth->dma_len_bytes);
}

bool aeth_parse(struct aeth *aeth, const uint8_t *buf, size_t len)
{
    if (len < AETH_LEN || (buf[AETH_SYNDROME] & 0x80) != 0) {
        return false;
    }
    *aeth = (struct aeth){
        .kind = (enum aeth_kind)(buf[AETH_SYNDROME] >> 5),
        .value = buf[AETH_SYNDROME] & 0x1f,
        .msn = get_be24(buf + AETH_MSN),
    };
    return true;
}

void aeth_emit(const struct aeth *aeth, uint8_t *buf)
{
    buf[AETH_SYNDROME] =
        (uint8_t)((unsigned)aeth->kind << 5 | (aeth->value & 0x1f));
    put_be24(buf + AETH_MSN, aeth->msn);
}

bool deth_parse(struct deth *deth, const uint8_t *buf, size_t len)
{
    if (len < DETH_LEN) {
        return false;
    }
    *deth = (struct deth){
        .qkey = get_be32(buf + DETH_QKEY),
        .src_qp = get_be24(buf + DETH_SRC_QP),
    };
    return true;
}

void deth_emit(const struct deth *deth, uint8_t *buf)
{
    put_be32(buf + DETH_QKEY, deth->qkey);
    buf[DETH_RESERVED] = 0;
    put_be24(buf + DETH_SRC_QP, deth->src_qp);
}

bool ieth_parse(uint32_t *rkey, const uint8_t *buf, size_t len)
{
    if (len < IETH_LEN) {
        return false;
    }
    *rkey = get_be32(buf + IETH_RKEY);
    return true;
}

void ieth_emit(uint32_t rkey, uint8_t *buf)
{
    put_be32(buf + IETH_RKEY, rkey);
}

bool immdt_parse(uint32_t *data, const uint8_t *buf, size_t len)
{
    if (len < IMMDT_LEN) {
        return false;
    }
    *data = get_be32(buf + IMMDT_DATA);
    return true;
}

void immdt_emit(uint32_t data, uint8_t *buf)
{
    put_be32(buf + IMMDT_DATA, data);
}

uint32_t rnr_timer_us(uint8_t code)
{
    /* From code 2 on the values are 20, 30, 40, 60, 80, 120, ... */
    static const uint32_t first[] = {655360, 10};

    code &= 31;
    if (code < ARRAY_LEN(first)) {
        return first[code];
    }
    return (code % 2 == 0 ? 10u : 15u) << code / 2;
}
