/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults that are injected into a NAND array at an exact place and operation.
 */
#ifndef ESSD_HW_NAND_INJECT_H
#define ESSD_HW_NAND_INJECT_H

#include "lib/fault_trigger.h"
#include "lib/util.h"

enum { NAND_INJECTIONS = 16, NAND_ANYWHERE = -1 };

enum nand_effect {
    NAND_EFFECT_UNCORRECTABLE, /* a unit that is read */
    NAND_EFFECT_BITS,          /* a unit that is read has `bits` wrong bits */
    NAND_EFFECT_FAIL,          /* program or erase of one plane fails */
    NAND_EFFECT_DIE,           /* the die dies, and answers nothing from now */
    NAND_EFFECT_TRANSFER,      /* the transfer of a read or a program has a
                                * parity error */
    NAND_EFFECT_POWER_CUT,     /* the power fails during a program or an erase:
                                * see nand_fault_hook.power_cut */
};

/*
 * Where and when.  A place that is NAND_ANYWHERE matches all.  A read is an
 * event for each unit, a program and an erase for each plane; NAND_EFFECT_DIE
 * and NAND_EFFECT_TRANSFER see one event for each operation, with the place of
 * the first plane.
 */
struct nand_injection {
    uint8_t kind;   /* enum nand_op_kind */
    uint8_t effect; /* enum nand_effect */
    uint16_t bits;
    int32_t channel;
    int32_t die;
    int32_t plane;
    int32_t block;
    int32_t wordline;             /* read and program */
    int32_t page;                 /* read */
    int32_t unit;                 /* read */
    struct fault_trigger trigger; /* which of the matching events */
};

/* When the array asks whether there is a fault. */
enum nand_stage_of_fault {
    NAND_STAGE_BEGINS, /* an operation; the place is that of its first plane */
    NAND_STAGE_PLANE,  /* one plane of a program or an erasure */
    NAND_STAGE_UNIT,   /* a unit of a read */
};

enum { NAND_EVENT_PARTS = 7 };

struct nand_event {
    uint8_t kind;  /* enum nand_op_kind */
    uint8_t stage; /* enum nand_stage_of_fault */
    /* Channel, die, plane, block, wordline, page and unit; negative: the event
     * has no such part. */
    int32_t place[NAND_EVENT_PARTS];
};

/* What happens at an event. */
struct nand_fault {
    uint8_t effect; /* enum nand_effect */
    uint16_t bits;  /* of NAND_EFFECT_BITS */
    uint32_t rule;  /* of NAND_EFFECT_POWER_CUT */
};

/* Who decides about faults besides the injections. */
struct nand_fault_hook {
    const uint8_t *active; /* 0: `judge` would say nothing; NULL: no hook */
    /* @return whether there is a fault */
    bool (*judge)(void *ctx, const struct nand_event *event,
                  struct nand_fault *fault);
    /*
     * Cut the power, because of NAND_EFFECT_POWER_CUT.  Storage holds the
     * wordlines half programmed, or the blocks half erased, and the operation
     * has written nothing else.  If this returns, because capacitors supply the
     * drive, the operation goes on to its end.
     */
    void (*power_cut)(void *ctx, uint32_t rule);
    void *ctx;
};

#endif
