/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What engines of every RDMA protocol do with the entries of send queues:
 * check them, read them again, and find their memory.
 * Spec: docs/hardware/rnic.md, section 4.
 *
 * An engine keeps no copy of an entry between its start and its completion: it
 * reads the entry again for each packet, because firmware must not change it
 * until then.  If firmware has, the request fails.
 */
#ifndef ESSD_NET_VERBS_WORK_H
#define ESSD_NET_VERBS_WORK_H

#include "net/verbs/rings.h"

enum { RDMA_MSG_MAX = 0x80000000u }; /* bytes of the largest message: 2 GiB */

/* Memory of a request, in DRAM. */
struct rdma_piece {
    uint8_t *data;
    uint32_t len_bytes;
};

/** The bytes of a request's message; an invalid one exceeds RDMA_MSG_MAX. */
uint64_t rdma_wr_length(const struct rdma_wr *wr);

/** The checks of an entry that apply to every opcode and protocol. */
enum verbs_wc_status rdma_wr_check(const struct rdma_wr *wr);

/**
 * Read the entry of a started request again.
 *
 * @param wqe        its number, as for rdma_sq_read()
 * @param opcode     what the entry had when the request was started
 * @param len_bytes  the same
 * @return false when firmware has changed the entry, or when the ring is not
 *         in DRAM
 */
MUST_USE bool rdma_wr_read_again(const struct rdma_qp *qp,
                                 const struct rdma_dram *dram, uint16_t wqe,
                                 uint8_t opcode, uint32_t len_bytes,
                                 struct rdma_wr *wr);

/**
 * Find bytes [offset, offset + len) of a request whose data is not inline.
 *
 * @param rights  of enum verbs_access; 0 to read the memory
 * @param pieces  RDMA_SGES of them
 * @return the number of pieces; -1 when a key, bounds or rights are invalid
 */
int rdma_wr_map(const struct rdma_objects *o, const struct rdma_dram *dram,
                uint16_t pd, const struct rdma_wr *wr, unsigned int rights,
                uint32_t offset, uint32_t len, struct rdma_piece *pieces);

#endif
