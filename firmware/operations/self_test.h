/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The self-test.  Its segments are:
 *
 *   1  memory: patterns are written to the test's buffer in DRAM and read back
 *   2  health: SMART reports no critical warning
 *   3  medium: blocks of the namespaces are read from the medium; a short test
 *      reads at most SELF_TEST_SHORT_CHUNKS pieces that are spread evenly, an
 *      extended one reads every block
 *
 * A test of no namespace (NSID 0) has no segment 3.  When a read fails, the
 * test reads smaller and smaller parts to find the failing block.
 *
 * One read is in progress at a time, and at most one starts in
 * SELF_TEST_READ_INTERVAL_US, so that I/O of hosts keeps its latency.
 *
 * Results and the test in progress are in flash.  A power cut ends a short test
 * and suspends an extended one, which goes on where it was recorded last.  When
 * hosts start so many tests that the flash must be spared
 * (operation_may_save()), the record is written later.
 * Spec: NVM Express Base 1.4 section 8.11; docs/hardware/flash.md,
 * "Self-tests"
 */
#ifndef ESSD_OPERATIONS_SELF_TEST_H
#define ESSD_OPERATIONS_SELF_TEST_H

#include "firmware/hal/log.h"
#include "firmware/operations/operation_store.h"
#include "storage/volume/volume.h"
#include "storage/block/media.h"
#include "nvmeof/target/operations.h"

enum {
    SELF_TEST_BUFFER_BYTES = 128 * 1024, /* also the length of one read */
    SELF_TEST_CHUNK_BLOCKS = SELF_TEST_BUFFER_BYTES / 512,
    SELF_TEST_READ_INTERVAL_US = 1000,
    SELF_TEST_SHORT_CHUNKS = 2048, /* 256 MiB in about two seconds */

    /* The longest record: see self_test_record.c. */
    SELF_TEST_RECORD_MAX = 64 + NVMF_SELF_TEST_RESULTS * 32,
};

/* The state that a power cut must not destroy. */
struct self_test_state {
    struct nvmf_self_test test; /* code NONE: no test is in progress */
    /* The next chunk to read: its namespace, by NSID - 1, and its number in
     * that namespace. */
    uint32_t ns;
    uint64_t chunk;
    uint64_t done; /* chunks that are read or skipped */
    uint16_t results;
    struct nvmf_self_test_result result[NVMF_SELF_TEST_RESULTS]; /* newest
                                                                  * first */
};

struct self_test_config {
    struct log *log;
    const struct volume *volume;
    uint64_t medium_blocks; /* of 512 bytes */
    uint8_t *buffer;        /* SELF_TEST_BUFFER_BYTES that the medium can use */
    struct operation_store store;

    /* Start an operation at the medium, in blocks of 512 bytes. */
    bool (*submit)(void *ctx, const struct media_io *io);
    void *submit_ctx;

    uint64_t (*power_on_hours)(void *ctx);
    uint8_t (*critical_warning)(void *ctx);
    /* The test has found a block that cannot be read.  May be NULL. */
    void (*found_unreadable)(void *ctx, uint32_t nsid, uint64_t lba);
    void *ctx;
};

enum self_test_phase {
    SELF_TEST_IDLE,
    SELF_TEST_MEMORY,  /* Tests a part of the buffer in each step. */
    SELF_TEST_HEALTH,  /* Looks at the critical warnings. */
    SELF_TEST_READING, /* Reads chunks. */
    /* Looks for the block that made a chunk's read fail. */
    SELF_TEST_LOCATING,
};

/* Treat as opaque. */
struct self_test {
    struct self_test_config config;
    struct self_test_state state;
    enum self_test_phase phase;
    uint32_t memory_at;       /* SELF_TEST_MEMORY: bytes that are tested */
    uint64_t stride;          /* one chunk in so many is read */
    uint64_t total;           /* chunks of all namespaces of the test */
    bool is_reading;          /* an operation is in progress at the medium */
    struct media_owner owner; /* of that operation */
    struct nvmf_piece piece;  /* of that operation */
    bool is_stale;            /* the test that started it has ended meanwhile */
    bool has_status;          /* it has ended with `status` */
    enum media_status status;
    uint64_t read_us; /* when the last operation was started */
    /* SELF_TEST_LOCATING: the failing block is in this range of the namespace,
     * in blocks of 512 bytes. */
    uint64_t bad_first, bad_count;
    uint32_t io_count; /* blocks of the operation in progress */
    bool is_dirty;     /* the record in flash is not up to date */
    uint32_t writes;   /* of the record, ever */
    uint8_t record[SELF_TEST_RECORD_MAX];
};

/** Start with what is in flash. */
void self_test_init(struct self_test *test,
                    const struct self_test_config *config);

/** The functions of the target's seam. */
void self_test_start(struct self_test *test,
                     const struct nvmf_self_test *command);
void self_test_stop(struct self_test *test, enum nvmf_self_test_end end);
uint8_t self_test_now(const struct self_test *test,
                      struct nvmf_self_test *command);
bool self_test_result(const struct self_test *test, unsigned int i,
                      struct nvmf_self_test_result *result);
uint16_t self_test_extended_minutes(const struct self_test *test);

/**
 * Do what is due.
 *
 * @return when to call again at the latest; UINT64_MAX: only when a test has
 *         started
 */
uint64_t self_test_step(struct self_test *test, uint64_t now_us);

/** @return the length of the record, at most SELF_TEST_RECORD_MAX */
size_t self_test_record_emit(const struct self_test_state *state, uint8_t *buf);
MUST_USE bool self_test_record_parse(struct self_test_state *state,
                                     const uint8_t *buf, size_t len);

#endif
