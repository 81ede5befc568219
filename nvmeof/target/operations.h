/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations seam: what the drive does in the background for a long time,
 * because a host has asked for it once.  The target checks the commands and
 * reports progress; the seam's owner does the work and keeps its state over
 * power cycles.
 * Spec: NVM Express Base 1.4 sections 5.8 and 8.11 (self-test).
 */
#ifndef ESSD_NVMEOF_TARGET_OPERATIONS_H
#define ESSD_NVMEOF_TARGET_OPERATIONS_H

#include "lib/util.h"
#include "nvmeof/limits.h"

/* ---- Device Self-test. */

enum nvmf_self_test_code { /* the values of STC */
                           NVMF_SELF_TEST_NONE = 0,
                           NVMF_SELF_TEST_SHORT = 1,
                           NVMF_SELF_TEST_EXTENDED = 2,
};

enum nvmf_self_test_end { /* how a self-test has ended, as the log reports it */
                          NVMF_SELF_TEST_PASSED = 0x0,
                          NVMF_SELF_TEST_BY_COMMAND = 0x1, /* aborted */
                          NVMF_SELF_TEST_BY_RESET = 0x2,
                          NVMF_SELF_TEST_NS_REMOVED = 0x3,
                          NVMF_SELF_TEST_BY_FORMAT = 0x4,
                          NVMF_SELF_TEST_FATAL = 0x5,  /* did not complete */
                          NVMF_SELF_TEST_FAILED = 0x7, /* in a known segment */
                          NVMF_SELF_TEST_BY_SANITIZE = 0x9,
                          NVMF_SELF_TEST_UNUSED = 0xf, /* no result */
};

enum { NVMF_SELF_TEST_RESULTS = 20 };

struct nvmf_self_test {
    enum nvmf_self_test_code code;
    uint32_t nsid; /* as in the command: 0, one, or FFFFFFFFh */
    /* Bit NSID - 1: the test reads this namespace. */
    uint32_t namespaces[NVMF_MAX_NAMESPACES / 32];
};

/* One result, for the log page. */
struct nvmf_self_test_result {
    uint8_t code;    /* enum nvmf_self_test_code */
    uint8_t end;     /* enum nvmf_self_test_end */
    uint8_t segment; /* the first one that failed; 0: none */
    bool has_lba;    /* nsid and lba are those of the failure */
    bool has_status; /* status is that of the failure */
    uint16_t status; /* status code type and code */
    uint32_t nsid;
    uint64_t lba;
    uint64_t power_on_hours;
};

struct nvmf_operations {
    void *ctx;

    /** Start a self-test while none is in progress.  NULL: the drive has no
     * self-test. */
    void (*start_self_test)(void *ctx, const struct nvmf_self_test *test);

    /** End the self-test that is in progress, and add a result to the log. */
    void (*end_self_test)(void *ctx, enum nvmf_self_test_end end);

    /** What is in progress.  @return per cent; *test is set */
    uint8_t (*self_test_now)(void *ctx, struct nvmf_self_test *test);

    /** Result `i` of the log, counted from the newest.  @return false when
     * there is none */
    bool (*self_test_result)(void *ctx, unsigned int i,
                             struct nvmf_self_test_result *result);

    /** The longest that an extended self-test takes: EDSTT. */
    uint16_t (*extended_minutes)(void *ctx);
};

#endif
