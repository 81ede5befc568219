/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations shared by the files of the RNIC driver.  No other file includes
 * this.
 */
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
    EQ_LOG2 = 12, /* three events for each QP, and some spare */
    SEND_CQ_LOG2 = 16,
    RECV_CQ_LOG2 = 16,

    SLOT_BITS = 11,
    SLOT_MASK = (1 << SLOT_BITS) - 1,
    MAD_SLOT = 1, /* the slot of QP 1 */
    /* The bits of a 24-bit QPN above the slot number. */
    GENERATION_MASK = 0x1fff,

    PD = 0, /* one protection domain serves the whole drive */
    RECORD_SQ = 0,
    RECORD_RQ = 4,
    RECORD_STRIDE = 64,

    DIRTY_SQ = 1,
    DIRTY_RQ = 2,
    DIRTY_LISTED = 4, /* the slot is in verbs.dirty */

    MAD_QKEY = 0x80010000,
};
_Static_assert(RNIC_QP_SLOTS <= 1 << SLOT_BITS,
               "the low bits of a QPN are its slot");
_Static_assert((RNIC_SLOT_FIFO & (RNIC_SLOT_FIFO - 1)) == 0 &&
                   RNIC_SLOT_FIFO >= RNIC_QP_SLOTS,
               "indices may wrap, and every slot has room");
_Static_assert(1 << DB_LOG2 >= RNIC_QP_SLOTS &&
                   1 << EQ_LOG2 > 3 * RNIC_QP_SLOTS,
               "the rings hold a doorbell and three events for each QP");

enum { CQ_SEND, CQ_RECV };

/*
 * Access DRAM that the RNIC shares, in whole aligned words without pointer
 * casts.
 */
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

/*
 * Access words that the other side may change at the same time, in one access
 * each.
 */
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

/*
 * Find the slot of a QPN.  A number beyond the last slot gives slot 0, which
 * never holds a QP.
 */
static inline struct rnic_qp *qp_slot(struct verbs *verbs, uint32_t qpn)
{
    uint32_t slot = qpn & SLOT_MASK;

    return &verbs->qps[slot < RNIC_QP_SLOTS ? slot : 0];
}

/*
 * Find a QP that must exist: a QPN that names none is an error of the caller.
 */
static inline struct rnic_qp *qp_get(struct verbs *verbs, uint32_t qpn)
{
    struct rnic_qp *qp = qp_slot(verbs, qpn);

    ASSERT(qpn != 0 && qp->qpn == qpn);
    return qp;
}

/*
 * Begin the next command: all zero except opcode and index.  The caller stores
 * the arguments.
 */
uint8_t *rnic_cmd_begin(struct verbs *verbs, enum rnic_opcode opcode,
                        uint32_t index);

/*
 * Run the command just built and wait for its result.
 * @return enum rnic_cmd_status
 */
MUST_USE enum rnic_cmd_status rnic_cmd_run(struct verbs *verbs);

/* Run a command that the RNIC refuses only if the driver is wrong. */
void rnic_cmd_must_run(struct verbs *verbs);

/*
 * Write KICK if the RNIC sleeps.  The caller has published before what the RNIC
 * must see.
 */
void rnic_kick_sleeper(struct verbs *verbs);

/*
 * Clear the QPN in the unread CQ and event entries of a destroyed QP.  Only QP
 * 1 needs this, because its number is used again at once; the entries of other
 * QPs are recognised as stale by their number.
 */
void rnic_forget(struct verbs *verbs, uint32_t qpn);

#endif
