/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same as tcp_load.h for NVMe over iWARP: the host makes FPDUs itself,
 * answers the drive's READs and takes its WRITEs.  FPDUs have CRCs.
 */
#ifndef ESSD_TESTS_BENCH_IWARP_LOAD_H
#define ESSD_TESTS_BENCH_IWARP_LOAD_H

#include "tests/bench/load.h"

/**
 * Run `commands` commands of the workload, which has one host.
 *
 * @param ended  is called for each command that has ended
 */
void iwarp_load_run(const struct load_workload *workload, uint32_t commands,
                    void (*ended)(void *ctx), void *ctx);

#endif
