/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive with NVMe/TCP and one host on a cable, in one process and in virtual
 * time, and a load that keeps a number of reads or writes outstanding.  The
 * host makes its segments and PDUs itself: nothing is lost on this cable.
 */
#ifndef ESSD_TESTS_BENCH_TCP_LOAD_H
#define ESSD_TESTS_BENCH_TCP_LOAD_H

#include "tests/bench/load.h"

enum tcp_load_kind {
    TCP_LOAD_PLAIN,
    TCP_LOAD_DIGESTS, /* of headers and data */
    TCP_LOAD_TLS,
};

/**
 * Run `commands` commands of the workload, which are of 4096 bytes.
 *
 * @param ended  is called for each command that has ended
 */
void tcp_load_run(const struct load_workload *workload, uint32_t commands,
                  enum tcp_load_kind kind, void (*ended)(void *ctx), void *ctx);

#endif
