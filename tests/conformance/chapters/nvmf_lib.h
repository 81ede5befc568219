/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the chapter `nvmf` share. */
#ifndef ESSD_CONFORM_NVMF_LIB_H
#define ESSD_CONFORM_NVMF_LIB_H

#include "nvmeof/wire/opcode.h"
#include "rc.h"

enum { NVMF_QUIET_US = 50000, NVMF_RECORDS_MAX = 31 };

/* A Connect command that a test changes before it is sent. */
struct nvmf_attempt {
    struct rc *rc;
    struct connect_command command;
    struct connect_data data;
    struct sgl sgl;
};

/** Connect a queue pair, and make the Connect command for it. */
struct nvmf_attempt *nvmf_attempt_new(struct conf *conf,
                                      const struct rc_config *config);

/** Send the Connect. @return status; *cqe is the response */
uint16_t nvmf_attempt_run(struct nvmf_attempt *attempt, struct nvme_cqe *cqe);

/**
 * Send the Connect; it must be refused with Connect Invalid Parameters, with
 * `field` as the location (CONNECT_IATTR_DATA).
 */
void nvmf_expect_invalid(struct nvmf_attempt *attempt, uint32_t field);

/** The same for an I/O queue of the controller with this admin queue. */
struct nvmf_attempt *nvmf_attempt_io(struct rc *admin, uint16_t qid);

/** Change the Connect so that it names the discovery subsystem. */
void nvmf_attempt_to_discovery(struct nvmf_attempt *attempt);

/**
 * Connect the admin queue of a discovery controller, which is not enabled yet.
 */
struct rc *nvmf_connect_discovery(struct conf *conf,
                                  const struct rc_config *config);
/** The same, enabled. */
struct rc *nvmf_open_discovery(struct conf *conf,
                               const struct rc_config *config);

/** Read a part of the discovery log into rc->mem. @return status */
uint16_t nvmf_read_discovery_log(struct rc *rc, uint64_t offset,
                                 uint32_t len_bytes);
/**
 * Read the header and all records. @return the number of records, at most
 * NVMF_RECORDS_MAX
 */
uint64_t nvmf_discovery_log(struct rc *rc);
/** One of these records. */
const uint8_t *nvmf_record(const struct rc *rc, uint64_t i);

/** Run Property Get or Property Set. @return status */
uint16_t nvmf_get(struct rc *rc, uint32_t offset, uint8_t size_bytes,
                  uint64_t *value);
uint16_t nvmf_set(struct rc *rc, uint32_t offset, uint8_t size_bytes,
                  uint64_t value);

/** CC with EN and the queue entry sizes of NVMe-oF. */
#define NVMF_CC_ENABLE (CC_EN | 6u << CC_IOSQES_SHIFT | 4u << CC_IOCQES_SHIFT)

/** Wait until the bits `mask` of CSTS have this value; fails after CAP.TO. */
void nvmf_wait_csts(struct rc *rc, uint32_t mask, uint32_t value);

uint16_t nvmf_keep_alive(struct rc *rc);

/**
 * Let time pass.  @return whether a Keep Alive timer that was started at
 * `since_us` or later still runs, so that the tester is not late
 */
MUST_USE bool nvmf_pass_in_time(struct conf *conf, uint64_t us,
                                uint64_t since_us, uint32_t kato_ms);

/** Check that an admin queue answers; it need not be enabled. */
void nvmf_expect_works(struct rc *rc);

/** Check that the queue pair answers nothing. */
void nvmf_expect_gone(struct rc *rc);

/** A Read or Write of 512 bytes at block `lba`. */
struct nvme_sqe nvmf_io(struct conf *conf, uint8_t opcode, uint64_t lba,
                        uint16_t blocks);

/** An enabled admin queue and one I/O queue. */
struct nvmf_pair {
    struct rc *admin, *io;
};
struct nvmf_pair nvmf_open_pair(struct conf *conf,
                                const struct rc_config *config);
void nvmf_close_pair(struct nvmf_pair *pair);

#endif
