/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures how much garbage collection writes: see collect_model.h.
 *
 *   ftl_collect [PERCENT [BLOCKS [WRITES]]]
 *
 * For several workloads and all policies of victims and streams
 * (ftl_policies.h), it prints
 * how many units the flash programs for each unit that a host writes, without
 * parity, and how often blocks were erased.  The flash, without parity, is
 * PERCENT (7) larger than the medium, and has BLOCKS blocks (200) in each
 * plane.  The medium is overwritten WRITES times (6).  Only the second half is
 * counted.
 *
 * "theory" is what the formula of collect_model.h says for greedy collection
 * and uniform writes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/util.h"
#include "storage/ftl/base/ftl_policies.h"
#include "tests/bench/collect_model.h"

enum { LEVELLING = 32 };

static const struct collect_workload workloads[] = {
    {"uniform", 100, 100},
    {"80% of the writes to 20%", 20, 80},
    {"95% of the writes to 5%", 5, 95},
};

static void measure_setup(const struct collect_setup *setup)
{
    struct collect_result result;

    if (!collect_measure(setup, &result)) {
        fprintf(stderr, "ftl_collect: the sizes do not fit together\n");
        exit(2);
    }
    printf("%-26s %-12s %-9s spare %5.1f%%  writes %5.2f  theory %5.2f  "
           "erasures %5.2f (from writes %5.2f, theory %5.2f), in all %u to "
           "%u\n",
           setup->workload.name, setup->victims, setup->streams, result.spare,
           result.cost, result.theory, result.erasures,
           result.erasures_from_cost, result.erasures_from_theory, result.least,
           result.most);
    fflush(stdout);
}

static void measure_workload(struct collect_setup *setup)
{
    for (unsigned int row = 0; ftl_victim_policy(row) != NULL; row++) {
        setup->victims = ftl_victim_policy(row)->name;
        for (unsigned int i = 0; ftl_stream_policy(i) != NULL; i++) {
            setup->streams = ftl_stream_policy(i)->name;
            measure_setup(setup);
        }
    }
}

int main(int argc, char **argv)
{
    struct collect_setup setup = {
        .percent = argc > 1 ? (unsigned int)atoi(argv[1]) : 7,
        .blocks = argc > 2 ? (unsigned int)atoi(argv[2]) : 200,
        .writes = argc > 3 ? (unsigned int)atoi(argv[3]) : 6,
        .wear_spread = LEVELLING,
    };

    for (unsigned int i = 0; i < ARRAY_LEN(workloads); i++) {
        setup.workload = workloads[i];
        measure_workload(&setup);
    }
    return 0;
}
