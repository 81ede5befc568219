/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations seam: what the drive does in the background for a long time,
 * because a host has asked for it once.  The target checks the commands and
 * reports progress; the seam's owner does the work and keeps its state over
 * power cycles.
 * Spec: NVM Express Base 1.4 sections 5.8 and 8.11 (self-test), 5.24 and 8.15
 * (sanitize).
 */
#ifndef ESSD_NVMEOF_TARGET_OPERATIONS_H
#define ESSD_NVMEOF_TARGET_OPERATIONS_H

#include "lib/util.h"
#include "nvmeof/limits.h"
#include "nvmeof/target/volume.h"

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

/* ---- Sanitize. */

enum nvmf_sanitize_action { /* the values of SANACT */
                            NVMF_SANITIZE_EXIT_FAILURE = 1,
                            NVMF_SANITIZE_BLOCK_ERASE = 2,
                            NVMF_SANITIZE_OVERWRITE = 3,
                            NVMF_SANITIZE_CRYPTO_ERASE = 4,
};

struct nvmf_sanitize {
    enum nvmf_sanitize_action action;
    bool allows_exit;  /* AUSE: a failure may be left without a success */
    uint8_t passes;    /* OVERWRITE: 1..16 */
    bool inverts;      /* OVERWRITE: the pattern alternates with its inverse,
                        * so that the last pass writes the pattern */
    bool keeps_blocks; /* blocks are not deallocated afterwards */
    uint32_t pattern;  /* OVERWRITE */
    uint32_t cdw10;    /* of the command, for the log page */
};

enum nvmf_sanitize_outcome { /* as the log page has it */
                             NVMF_SANITIZE_NEVER = 0,
                             NVMF_SANITIZE_DONE = 1,
                             NVMF_SANITIZE_IN_PROGRESS = 2,
                             NVMF_SANITIZE_FAILED = 3,
};

enum { /* indices of estimates */
       NVMF_SANITIZE_OVERWRITE_TIME,
       NVMF_SANITIZE_ERASE_TIME,
       NVMF_SANITIZE_OVERWRITE_KEEP_TIME,
       NVMF_SANITIZE_ERASE_KEEP_TIME,
       NVMF_SANITIZE_TIMES
};

struct nvmf_sanitize_now {
    enum nvmf_sanitize_outcome outcome;
    bool is_blocking;         /* FAILED: no recovery has taken place */
    bool is_erased;           /* nobody has written since the last success */
    uint16_t progress;        /* IN_PROGRESS: in 1/65536 */
    uint8_t passes;           /* OVERWRITE: completed ones */
    struct nvmf_sanitize job; /* the last one, if there was one */
    uint32_t seconds[NVMF_SANITIZE_TIMES]; /* estimates; 16 passes */
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

    /**
     * Start to sanitize the whole medium.  No command uses a namespace until
     * nvmf_sanitize_ended().  When this returns, a power cut does not end the
     * operation any more.  NULL: the drive cannot be sanitized.
     *
     * @return NVMF_VOLUME_OK, NVMF_VOLUME_TOO_OFTEN or NVMF_VOLUME_FAILED
     */
    enum nvmf_volume_result (*start_sanitize)(void *ctx,
                                              const struct nvmf_sanitize *job);

    /** Leave the failure mode: the namespaces can be used again.
     * @return false when the flash cannot be written; nothing has changed */
    bool (*exit_sanitize_failure)(void *ctx);

    void (*sanitize_now)(void *ctx, struct nvmf_sanitize_now *now);
};

#endif
