/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults that the tests of the translation layer inject into the array. */
#ifndef ESSD_TEST_FTL_FAULTS_H
#define ESSD_TEST_FTL_FAULTS_H

#include "tests/nand_faults.h"
#include "tests/unit/storage/ftl/ftl_bed.h"

/* fault_anywhere(), but only once, after `after` of these operations. */
struct nand_injection fault_once(enum nand_op_kind kind,
                                 enum nand_effect effect, uint32_t after);
void inject_fault(struct bed *bed, const struct nand_injection *fault);

/* Make operations of a kind fail: `times` of them (0: no limit), one of every
 * `every` (0: each). */
void fail_operations(struct bed *bed, enum nand_op_kind kind, uint32_t times,
                     uint32_t every);
/* Let a die die at its operation of this kind after `after` others. */
void inject_death(struct bed *bed, enum nand_op_kind kind, unsigned int die,
                  uint32_t after);

#endif
