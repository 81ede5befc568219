/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the RNIC driver share; nobody else includes it. */
#ifndef ESSD_FIRMWARE_DRIVERS_RNIC_INTERNAL_H
#define ESSD_FIRMWARE_DRIVERS_RNIC_INTERNAL_H

#include <string.h>

#include "firmware/drivers/rnic.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/mmio.h"
#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the driver writes the RNIC's little-endian words as they are");

enum {
    CMD_LOG2 = 4,
    DB_LOG2 = 12,
    EQ_LOG2 = 12, /* three events a QP and some more */
    SEND_CQ_LOG2 = 16,
    RECV_CQ_LOG2 = 16,

    SLOT_BITS = 11,
    SLOT_MASK = (1 << SLOT_BITS) - 1,
    MAD_SLOT = 1,             /* QPN 1 */
    GENERATION_MASK = 0x1fff, /* the rest of a QPN's 24 bits */

    PD = 0, /* the drive trusts itself: one is enough */
    RECORD_SQ = 0,
    RECORD_RQ = 4,
    RECORD_STRIDE = 64,

    DIRTY_SQ = 1,
    DIRTY_RQ = 2,
    DIRTY_LISTED = 4, /* the slot is in verbs.dirty */

    MAD_QKEY = 0x80010000,
};
_Static_assert(RNIC_QP_SLOTS <= 1 << SLOT_BITS, "a QPN's low bits are a slot");
_Static_assert((RNIC_SLOT_FIFO & (RNIC_SLOT_FIFO - 1)) == 0 &&
                   RNIC_SLOT_FIFO >= RNIC_QP_SLOTS,
               "counts may wrap; every slot has room");
_Static_assert(1 << DB_LOG2 >= RNIC_QP_SLOTS &&
                   1 << EQ_LOG2 > 3 * RNIC_QP_SLOTS,
               "a doorbell and three events a QP");

enum { CQ_SEND, CQ_RECV };

/* DRAM shared with the RNIC: whole aligned words, no pointer casts. */
static inline void dram_store8(uint8_t *p, size_t at, uint8_t v)
{
    p[at] = v;
}

static inline void dram_store16(uint8_t *p, size_t at, uint16_t v)
{
    memcpy(__builtin_assume_aligned(p + at, 2), &v, sizeof(v));
}

static inline void dram_store32(uint8_t *p, size_t at, uint32_t v)
{
    memcpy(__builtin_assume_aligned(p + at, 4), &v, sizeof(v));
}

static inline void dram_store64(uint8_t *p, size_t at, uint64_t v)
{
    memcpy(__builtin_assume_aligned(p + at, 8), &v, sizeof(v));
}

static inline uint16_t dram_load16(const uint8_t *p, size_t at)
{
    uint16_t v;

    memcpy(&v, __builtin_assume_aligned(p + at, 2), sizeof(v));
    return v;
}

static inline uint32_t dram_load32(const uint8_t *p, size_t at)
{
    uint32_t v;

    memcpy(&v, __builtin_assume_aligned(p + at, 4), sizeof(v));
    return v;
}

static inline uint64_t dram_load64(const uint8_t *p, size_t at)
{
    uint64_t v;

    memcpy(&v, __builtin_assume_aligned(p + at, 8), sizeof(v));
    return v;
}

/* Words that both sides look at while the other may write: one access each. */
static inline uint32_t shared_load32(const uint8_t *p, size_t at)
{
    return __atomic_load_n((const uint32_t *)(const void *)(p + at),
                           __ATOMIC_RELAXED);
}

static inline uint8_t shared_load8(const uint8_t *p, size_t at)
{
    return __atomic_load_n(p + at, __ATOMIC_RELAXED);
}

static inline void shared_store32(uint8_t *p, size_t at, uint32_t v)
{
    __atomic_store_n((uint32_t *)(void *)(p + at), v, __ATOMIC_RELAXED);
}

/* Of a number that names no slot: slot 0, where no QP ever is. */
static inline struct rnic_qp *qp_slot(struct verbs *verbs, uint32_t qpn)
{
    uint32_t slot = qpn & SLOT_MASK;

    return &verbs->qps[slot < RNIC_QP_SLOTS ? slot : 0];
}

/* The QP of that number: it exists, or a caller of ours is confused. */
static inline struct rnic_qp *qp_get(struct verbs *verbs, uint32_t qpn)
{
    struct rnic_qp *qp = qp_slot(verbs, qpn);

    ASSERT(qpn != 0 && qp->qpn == qpn);
    return qp;
}

/* The next command: zeroed but for opcode and index, for args to be stored. */
uint8_t *rnic_cmd_begin(struct verbs *verbs, enum rnic_opcode opcode,
                        uint32_t index);

/* Run the command just built; wait.  @return enum rnic_cmd_status */
MUST_USE enum rnic_cmd_status rnic_cmd_run(struct verbs *verbs);

/* The same for one that cannot be refused unless we are wrong. */
void rnic_cmd_must_run(struct verbs *verbs);

/* Write KICK if the RNIC sleeps; what it shall see is published. */
void rnic_kick_sleeper(struct verbs *verbs);

/*
 * Disown the entries of a destroyed QP that wait to be read.  For the one
 * number that is used again at once; others are told from newer ones by it.
 */
void rnic_forget(struct verbs *verbs, uint32_t qpn);

#endif
