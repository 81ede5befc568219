/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the NAND array: the rules of the table, as the array asks for them.
 * Reference: docs/faults.md.
 */
#ifndef ESSD_HW_FAULT_NAND_H
#define ESSD_HW_FAULT_NAND_H

#include "hw-model/fault/fault_rule.h"
#include "hw-model/nand/nand_inject.h"

struct fault_nand {
    struct fault_table *table;

    /* Cut the power; `id` is the rule's.  It returns if capacitors supply the
     * drive. */
    void (*power_cut)(void *ctx, uint32_t id);
    void *ctx;
};

/** The hook for nand_array_set_hook().  `nand` outlives the array. */
struct nand_fault_hook fault_nand_hook(struct fault_nand *nand);

#endif
