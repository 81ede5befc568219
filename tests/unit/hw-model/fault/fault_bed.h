/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the adapters of faults share: a table of rules, the virtual
 * time and the power.  A test bed has a struct fault_bed as its first member,
 * so that its address can be the ctx of these functions.
 */
#ifndef ESSD_TESTS_FAULT_BED_H
#define ESSD_TESTS_FAULT_BED_H

#include "hw-model/fault/fault_rule.h"

struct fault_bed {
    struct fault_table table;
    bool has_power;
    uint64_t now_ns;
    uint64_t deadline_ns; /* of the timer; UINT64_MAX: it is off */
};

void fault_bed_init(struct fault_bed *bed);

/* Functions for the adapter's config. */
uint64_t fault_bed_now_ns(void *ctx);
void fault_bed_set_timer(void *ctx, uint64_t deadline_ns);
/* Only rule 1 may cut the power. */
void fault_bed_power_cut(void *ctx, uint32_t id);

void fault_bed_add_rule(struct fault_bed *bed, const char *text);

/* Let time pass, and call `expire(adapter)` whenever the timer expires. */
void fault_bed_wait_ns(struct fault_bed *bed, uint64_t ns,
                       void (*expire)(void *adapter), void *adapter);

#endif
