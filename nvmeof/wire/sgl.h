/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SGL descriptor of a command, which says where the host's data is.
 *
 * Only transports read it; the target does not.
 * Spec: NVM Express Base 1.4 section 4.4; Fabrics 1.1 sections 2.3 and 7.3.
 * Left out: segments and bit buckets, which MSDBD 1 rules out.
 */
#ifndef ESSD_NVMEOF_WIRE_SGL_H
#define ESSD_NVMEOF_WIRE_SGL_H

#include <stdint.h>

enum { /* byte offsets; everything little-endian */
       SGL_ADDRESS = 0,
       SGL_LENGTH = 8,       /* of a data block: 32 bits */
       SGL_KEYED_LENGTH = 8, /* of a keyed data block: 24 bits */
       SGL_KEYED_KEY = 11,   /* of a keyed data block: 32 bits */
       SGL_TYPE = 15,        /* type:4 subtype:4, from the top bit */
       SGL_LEN = 16,
};

enum sgl_kind {
    SGL_KEYED,            /* 40h: host memory, with a key */
    SGL_KEYED_INVALIDATE, /* 4Fh: as above; the response invalidates the key */
    SGL_IN_CAPSULE,       /* 01h: the address is an offset after the SQE */
};

struct sgl {
    enum sgl_kind kind;
    uint64_t address;
    uint32_t len_bytes;
    uint32_t key; /* only of keyed kinds */
};

/**
 * @param buf  SGL_LEN bytes: &capsule[SQE_SGL1].
 * @return 0, or NVME_SC_SGL_INVALID_TYPE for any other kind of descriptor; *sgl
 *         is then zero.
 */
uint16_t sgl_parse(struct sgl *sgl, const uint8_t *buf);

/**
 * Whether an in-capsule descriptor stays inside the data that arrived.
 *
 * @param arrived_bytes  length of the capsule's data, which follows the SQE.
 * @return 0, NVME_SC_SGL_INVALID_OFFSET or NVME_SC_SGL_INVALID_LENGTH.
 */
uint16_t sgl_check_in_capsule(const struct sgl *sgl, uint32_t arrived_bytes);

/** For hosts and tests.  @param buf  SGL_LEN bytes, all written. */
void sgl_emit(uint8_t *buf, const struct sgl *sgl);

#endif
