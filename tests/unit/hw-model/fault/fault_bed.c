/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/hw-model/fault/fault_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void fault_bed_init(struct fault_bed *bed)
{
    *bed = (struct fault_bed){.has_power = true, .deadline_ns = UINT64_MAX};
}

uint64_t fault_bed_now_ns(void *ctx)
{
    return ((struct fault_bed *)ctx)->now_ns;
}

void fault_bed_set_timer(void *ctx, uint64_t deadline_ns)
{
    ((struct fault_bed *)ctx)->deadline_ns = deadline_ns;
}

void fault_bed_power_cut(void *ctx, uint32_t id)
{
    assert_int_equal(id, 1);
    ((struct fault_bed *)ctx)->has_power = false;
}

void fault_bed_add_rule(struct fault_bed *bed, const char *text)
{
    struct fault_rule rule;
    const char *wrong = NULL;

    assert_true(fault_rule_parse(text, &rule, &wrong));
    assert_true(fault_table_add(&bed->table, &rule));
}

void fault_bed_wait_ns(struct fault_bed *bed, uint64_t ns,
                       void (*expire)(void *adapter), void *adapter)
{
    uint64_t end_ns = bed->now_ns + ns;

    while (bed->deadline_ns <= end_ns) {
        bed->now_ns = MAX(bed->now_ns, bed->deadline_ns);
        expire(adapter);
    }
    bed->now_ns = end_ns;
}
