/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of the array: see ftl_faults.h. */
#include "tests/unit/storage/ftl/ftl_faults.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct nand_injection fault_once(enum nand_op_kind kind,
                                 enum nand_effect effect, uint32_t after)
{
    struct nand_injection fault = fault_anywhere(kind, effect);

    fault.trigger.after = after;
    fault.trigger.times = 1;
    return fault;
}

void inject_fault(struct bed *bed, const struct nand_injection *fault)
{
    assert_true(nand_array_inject(bed->array, fault));
}

void fail_operations(struct bed *bed, enum nand_op_kind kind, uint32_t times,
                     uint32_t every)
{
    struct nand_injection failure = fault_anywhere(kind, NAND_EFFECT_FAIL);

    failure.trigger.times = times;
    failure.trigger.every = every;
    inject_fault(bed, &failure);
}

void inject_death(struct bed *bed, enum nand_op_kind kind, unsigned int die,
                  uint32_t after)
{
    struct nand_injection death = fault_once(kind, NAND_EFFECT_DIE, after);

    death.die = (int32_t)die;
    inject_fault(bed, &death);
}
