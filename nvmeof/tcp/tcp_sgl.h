/* SPDX-License-Identifier: BSD-2-Clause */
/* The data descriptor (SGL1) of a command over NVMe/TCP. */
#ifndef ESSD_NVMEOF_TCP_SGL_H
#define ESSD_NVMEOF_TCP_SGL_H

#include "nvmeof/target/transport.h"

/**
 * Read the descriptor: data in the capsule (01h), or in the host's memory,
 * which H2CData and C2HData carry (5Ah).
 *
 * @param sqe         the command
 * @param in_capsule  the data that came with it; its length is 0 if there is
 *                    none
 */
void tcp_sgl_read(struct nvmf_data *data, const uint8_t *sqe,
                  const struct nvmf_piece *in_capsule);

#endif
