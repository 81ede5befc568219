/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the chapter `nvme` share: a controller that the test drives
 * by hand, with its admin queue and one I/O queue, and its Identify data.
 */
#ifndef ESSD_CONFORM_NVME_LIB_H
#define ESSD_CONFORM_NVME_LIB_H

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/persistent_event.h"
#include "nvmf_lib.h"

enum {
    /* The bytes after the data that must not be overwritten. */
    NVME_GUARD = 256,
    NVME_GUARD_BYTE = 0xa5,
    NVME_OTHERS = 16,
    NVME_CAPSULE_MAX = NVME_SQE_LEN + 8192,
    NVME_IDENTIFY_CNTID_SHIFT = 16,

    FEATURE_SELECT_CURRENT = 0,
    FEATURE_SELECT_DEFAULT = 1,
    FEATURE_SELECT_SAVED = 2,
    FEATURE_SELECT_CAPABILITIES = 3,
    FEATURE_SAVEABLE = 0x1,
    FEATURE_NS_SPECIFIC = 0x2,
    FEATURE_CHANGEABLE = 0x4,

    LOG_RAE = 0x8000, /* A bit in dword 10 of Get Log Page. */
    SGLS_LONGER = 0x40000,
};

struct nvme {
    struct conf *conf;
    struct nvmf_pair pair;
    struct rc *admin, *io;
    uint8_t ctrl[NVME_IDENTIFY_LEN]; /* Identify Controller data. */
    uint8_t ns[NVME_IDENTIFY_LEN];   /* Identify Namespace data of nsid. */
    uint32_t nsid;
    uint32_t num_ns; /* NN. */
    uint64_t size_blocks;
    uint32_t block_bytes;
    /* The most blocks of one Read or Write, by MDTS, NLB, and our memory. */
    uint32_t max_blocks;
    /* Responses that came while the test waited for another. */
    struct nvme_cqe others[NVME_OTHERS];
    unsigned int num_others;
};

/**
 * Connect and enable a controller with one I/O queue, and read its Identify
 * data.
 */
struct nvme *nvme_open(struct conf *conf);
/** The same for another host, which has that number, 1 or 2. */
struct nvme *nvme_open_host(struct conf *conf, uint8_t host);
/** nvme_open() without the I/O queue. */
struct nvme *nvme_open_admin(struct conf *conf);
void nvme_close(struct nvme *nvme);

/**
 * Reset the controller and enable it again; only for a controller without an
 * I/O queue.
 */
void nvme_reset(struct nvme *nvme);

/**
 * Run a command whose data, `len_bytes` long, is at the start of rc->mem; the
 * bytes after it must not change. Responses to other commands are kept for
 * nvme_take_other().
 *
 * @param cqe  may be NULL
 * @return status without DNR and MORE
 */
uint16_t nvme_run(struct nvme *nvme, struct rc *rc, const struct nvme_sqe *sqe,
                  uint32_t len_bytes, struct nvme_cqe *cqe);

/** The same with a data descriptor that the test supplies. */
uint16_t nvme_run_sgl(struct nvme *nvme, struct rc *rc,
                      const struct nvme_sqe *sqe, const struct sgl *sgl,
                      struct nvme_cqe *cqe);

/**
 * The same with all 64 bytes of the command, except the CID, supplied by the
 * test; data may follow in the capsule.
 */
uint16_t nvme_run_capsule(struct nvme *nvme, struct rc *rc, uint8_t *capsule,
                          size_t len_bytes, struct nvme_cqe *cqe);

/** Wait for the response with that CID. */
void nvme_take(struct nvme *nvme, struct rc *rc, uint16_t cid,
               struct nvme_cqe *cqe);

/**
 * Return whether the response to an earlier admin command has come, or comes
 * within that time.
 */
bool nvme_take_other(struct nvme *nvme, uint16_t cid, uint64_t timeout_us,
                     struct nvme_cqe *cqe);

/** Send Identify; 4096 bytes of data go to admin->mem. @return status */
uint16_t nvme_identify(struct nvme *nvme, uint8_t cns, uint32_t nsid);

/** Send Get Log Page. @param dword10  LID and LOG_RAE @return status */
uint16_t nvme_get_log(struct nvme *nvme, uint32_t dword10, uint64_t offset,
                      uint32_t len_bytes);

/** Send a Get Log Page that must succeed. @return admin->mem */
const uint8_t *nvme_log(struct nvme *nvme, uint8_t lid, uint32_t len_bytes);

/** The length of the error log, by ELPE. */
uint32_t nvme_error_log_len(const struct nvme *nvme);

uint32_t nvme_page_len(const struct nvme *nvme, uint8_t lid);
/** nvme_open_admin(); not applicable when the target has no such page. */
struct nvme *nvme_open_page(struct conf *conf, uint8_t lid);
/** A copy of a whole page, which lives until the test ends. */
uint8_t *nvme_whole_page(struct nvme *nvme, uint8_t lid);

/** nvme_open_admin(); not applicable without the persistent event log. */
struct nvme *nvme_open_events(struct conf *conf);
/**
 * Establish a reporting context and read the whole log.  The context stays.
 * @return a copy, which lives until the test ends; *len is TLL
 */
const uint8_t *nvme_events_page(struct nvme *nvme, uint32_t *len);
/**
 * Read the log afresh, without leaving a context.
 * @return event `i`, counted from the newest; the test fails if it does not
 *         have this type
 */
const uint8_t *nvme_event(struct nvme *nvme, uint32_t i, uint8_t type);

/** Send Get or Set Features. @return status; *value is dword 0 */
uint16_t nvme_get_feature(struct nvme *nvme, uint8_t fid, uint8_t select,
                          uint32_t dword11, uint32_t *value);
uint16_t nvme_set_feature(struct nvme *nvme, uint8_t fid, uint32_t dword11);

/** nvme_open_admin(); not applicable when the target has no Timestamp. */
struct nvme *nvme_open_clock(struct conf *conf);
/**
 * Get or Set Features of the Timestamp, with `len_bytes` of data at admin->mem.
 * @return status
 */
uint16_t nvme_timestamp(struct nvme *nvme, uint8_t opcode, uint32_t len_bytes);
/** The Timestamp in ms since 1970, and its origin. */
uint64_t nvme_get_time(struct nvme *nvme, unsigned int *origin);

/**
 * Run a Read, Write or the like, with exactly as much data as it needs. @return
 * status
 */
uint16_t nvme_rw(struct nvme *nvme, uint8_t opcode, uint64_t lba,
                 uint32_t blocks);

struct nvme_sqe nvme_rw_sqe(const struct nvme *nvme, uint8_t opcode,
                            uint64_t lba, uint32_t blocks);

/**
 * A command on block 16 that is correct in every field; nvme_data_len() is the
 * length of its data.
 */
struct nvme_sqe nvme_right(const struct nvme *nvme, uint8_t opcode);
uint32_t nvme_data_len(const struct nvme *nvme, uint8_t opcode);

/**
 * Make NVME_CAPSULE_MAX bytes for nvme_run_capsule(); the descriptor is for
 * `len` bytes of rc->mem.
 */
uint8_t *nvme_capsule_of(struct rc *rc, const struct nvme_sqe *sqe,
                         uint32_t len);

/**
 * Fill io->mem with data that depends on the block numbers and on `version`.
 */
void nvme_fill(struct nvme *nvme, uint64_t lba, uint32_t blocks,
               uint32_t version);
/** Fill io->mem with that data and write it. */
void nvme_write(struct nvme *nvme, uint64_t lba, uint32_t blocks,
                uint32_t version);
/** Read blocks, and compare them with that data, or with zeroes. */
void nvme_verify(struct nvme *nvme, uint64_t lba, uint32_t blocks,
                 uint32_t version);
void nvme_verify_zeroes(struct nvme *nvme, uint64_t lba, uint32_t blocks);

/** An NSID from 1 to NN that is not active; 0 when all are. */
uint32_t nvme_inactive_nsid(struct nvme *nvme);

/** Check that the target's queues still work. */
void nvme_expect_works(struct nvme *nvme);

/* Define a test that opens an admin queue, runs name_of(), and closes the
 * queue. */
#define WITH_NVME(name)                                                        \
    static void name##_of(struct conf *conf, struct nvme *nvme);               \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvme *nvme = nvme_open_admin(conf);                             \
                                                                               \
        name##_of(conf, nvme);                                                 \
        nvme_close(nvme);                                                      \
    }                                                                          \
    static void name##_of(struct conf *conf, struct nvme *nvme)

#endif
