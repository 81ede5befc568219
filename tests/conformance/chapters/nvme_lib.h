/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of chapter `nvme` share: a controller with its admin queue
 * and one I/O queue by hand, and what it said of itself.
 */
#ifndef ESSD_CONFORM_NVME_LIB_H
#define ESSD_CONFORM_NVME_LIB_H

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmf_lib.h"

enum {
    NVME_GUARD = 256, /* bytes behind the data, watched */
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

    LOG_RAE = 0x8000, /* in dword 10 of Get Log Page */
    SGLS_LONGER = 0x40000,
};

struct nvme {
    struct conf *conf;
    struct nvmf_pair pair;
    struct rc *admin, *io;
    uint8_t ctrl[NVME_IDENTIFY_LEN]; /* Identify Controller */
    uint8_t ns[NVME_IDENTIFY_LEN];   /* Identify Namespace of nsid */
    uint32_t nsid;
    uint32_t num_ns; /* NN */
    uint64_t size_blocks;
    uint32_t block_bytes;
    uint32_t max_blocks; /* of one Read or Write: MDTS, NLB, our memory */
    /* Responses that came while waiting for another. */
    struct nvme_cqe others[NVME_OTHERS];
    unsigned int num_others;
};

/** Connected, enabled, one I/O queue; identified. */
struct nvme *nvme_open(struct conf *conf);
/** Without the I/O queue. */
struct nvme *nvme_open_admin(struct conf *conf);
void nvme_close(struct nvme *nvme);

/** A controller reset, and enabled again: not with an I/O queue. */
void nvme_reset(struct nvme *nvme);

/**
 * A command whose data, `len_bytes` of it, is at the start of rc->mem; what
 * lies behind must stay as it is.  Responses to others are kept for
 * nvme_take_other().
 *
 * @param cqe  may be NULL
 * @return status without DNR and MORE
 */
uint16_t nvme_run(struct nvme *nvme, struct rc *rc, const struct nvme_sqe *sqe,
                  uint32_t len_bytes, struct nvme_cqe *cqe);

/** The same with a descriptor of the test's. */
uint16_t nvme_run_sgl(struct nvme *nvme, struct rc *rc,
                      const struct nvme_sqe *sqe, const struct sgl *sgl,
                      struct nvme_cqe *cqe);

/** The same with all 64 bytes, but for the CID, in the test's hand; data may
 *  follow in the capsule. */
uint16_t nvme_run_capsule(struct nvme *nvme, struct rc *rc, uint8_t *capsule,
                          size_t len_bytes, struct nvme_cqe *cqe);

/** Wait for the response to that CID. */
void nvme_take(struct nvme *nvme, struct rc *rc, uint16_t cid,
               struct nvme_cqe *cqe);

/** Whether the response to an admin command sent before has come, or comes in
 *  that time. */
bool nvme_take_other(struct nvme *nvme, uint16_t cid, uint64_t timeout_us,
                     struct nvme_cqe *cqe);

/** Identify: 4096 bytes into admin->mem. @return status */
uint16_t nvme_identify(struct nvme *nvme, uint8_t cns, uint32_t nsid);

/** Get Log Page. @param dword10  LID and LOG_RAE @return status */
uint16_t nvme_get_log(struct nvme *nvme, uint32_t dword10, uint64_t offset,
                      uint32_t len_bytes);

/** Get Log Page that must work. @return admin->mem */
const uint8_t *nvme_log(struct nvme *nvme, uint8_t lid, uint32_t len_bytes);

/** Bytes of the error log: Identify's ELPE. */
uint32_t nvme_error_log_len(const struct nvme *nvme);

uint32_t nvme_page_len(const struct nvme *nvme, uint8_t lid);
/** nvme_open_admin(), where there is such a page. */
struct nvme *nvme_open_page(struct conf *conf, uint8_t lid);
/** A copy of a page, until the test's end. */
uint8_t *nvme_whole_page(struct nvme *nvme, uint8_t lid);

/** Get and Set Features. @return status; *value is dword 0 */
uint16_t nvme_get_feature(struct nvme *nvme, uint8_t fid, uint8_t select,
                          uint32_t dword11, uint32_t *value);
uint16_t nvme_set_feature(struct nvme *nvme, uint8_t fid, uint32_t dword11);

/** nvme_open_admin(), where there is a Timestamp. */
struct nvme *nvme_open_clock(struct conf *conf);
/** Get or Set Features of it, `len_bytes` at admin->mem. @return status */
uint16_t nvme_timestamp(struct nvme *nvme, uint8_t opcode, uint32_t len_bytes);
/** The time in ms since 1970, and its origin. */
uint64_t nvme_get_time(struct nvme *nvme, unsigned int *origin);

/** Read, Write or the like, its data exactly right. @return status */
uint16_t nvme_rw(struct nvme *nvme, uint8_t opcode, uint64_t lba,
                 uint32_t blocks);

struct nvme_sqe nvme_rw_sqe(const struct nvme *nvme, uint8_t opcode,
                            uint64_t lba, uint32_t blocks);

/** A Read or the like of block 16, right in every field; what it moves. */
struct nvme_sqe nvme_right(const struct nvme *nvme, uint8_t opcode);
uint32_t nvme_data_len(const struct nvme *nvme, uint8_t opcode);

/** NVME_CAPSULE_MAX bytes for nvme_run_capsule(); the descriptor is of `len`
 *  bytes of rc->mem. */
uint8_t *nvme_capsule_of(struct rc *rc, const struct nvme_sqe *sqe,
                         uint32_t len);

/** io->mem: what numbers of blocks and `version` say. */
void nvme_fill(struct nvme *nvme, uint64_t lba, uint32_t blocks,
               uint32_t version);
/** Fill blocks with that, write them. */
void nvme_write(struct nvme *nvme, uint64_t lba, uint32_t blocks,
                uint32_t version);
/** Read, and compare with that; with zeroes. */
void nvme_verify(struct nvme *nvme, uint64_t lba, uint32_t blocks,
                 uint32_t version);
void nvme_verify_zeroes(struct nvme *nvme, uint64_t lba, uint32_t blocks);

/** A number 1..NN that names no active namespace; 0 if all are. */
uint32_t nvme_inactive_nsid(struct nvme *nvme);

/** The target's queues work. */
void nvme_expect_works(struct nvme *nvme);

/* A test of an admin queue: name_of() between opening and closing it. */
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
