/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/sgl.h"

#include "lib/bytes.h"
#include "lib/util.h"
#include "nvmeof/wire/cqe.h"

_Static_assert(SGL_KEYED_LENGTH + 3 == SGL_KEYED_KEY, "24-bit length");
_Static_assert(SGL_KEYED_KEY + 4 == SGL_TYPE, "32-bit key");

static const uint8_t sgl_type[] = {
    [SGL_KEYED] = 0x40,
    [SGL_KEYED_INVALIDATE] = 0x4f,
    [SGL_IN_CAPSULE] = 0x01,
};

uint16_t sgl_parse(struct sgl *sgl, const uint8_t *buf)
{
    *sgl = (struct sgl){.address = get_le64(buf + SGL_ADDRESS)};
    for (unsigned int i = 0; i < ARRAY_LEN(sgl_type); i++) {
        if (buf[SGL_TYPE] != sgl_type[i]) {
            continue;
        }
        sgl->kind = (enum sgl_kind)i;
        if (sgl->kind == SGL_IN_CAPSULE) {
            sgl->len_bytes = get_le32(buf + SGL_LENGTH);
        } else {
            sgl->len_bytes = get_le24(buf + SGL_KEYED_LENGTH);
            sgl->key = get_le32(buf + SGL_KEYED_KEY);
        }
        return NVME_SC_SUCCESS;
    }
    *sgl = (struct sgl){0};
    return NVME_SC_SGL_INVALID_TYPE;
}

uint16_t sgl_check_in_capsule(const struct sgl *sgl, uint32_t arrived_bytes)
{
    if (sgl->address > arrived_bytes) {
        return NVME_SC_SGL_INVALID_OFFSET;
    }
    if (sgl->len_bytes > arrived_bytes - sgl->address) {
        return NVME_SC_SGL_INVALID_LENGTH;
    }
    return NVME_SC_SUCCESS;
}

void sgl_emit(uint8_t *buf, const struct sgl *sgl)
{
    put_le64(buf + SGL_ADDRESS, sgl->address);
    put_le32(buf + SGL_LENGTH, sgl->len_bytes);
    put_le24(buf + 12, 0);
    if (sgl->kind != SGL_IN_CAPSULE) {
        put_le24(buf + SGL_KEYED_LENGTH, sgl->len_bytes);
        put_le32(buf + SGL_KEYED_KEY, sgl->key);
    }
    buf[SGL_TYPE] = sgl_type[sgl->kind];
}
