/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of chapter `nvmf` share. */
#ifndef ESSD_CONFORM_NVMF_LIB_H
#define ESSD_CONFORM_NVMF_LIB_H

#include "nvmeof/wire/opcode.h"
#include "rc.h"

enum { NVMF_QUIET_US = 50000, NVMF_RECORDS_MAX = 31 };

/* A Connect command that a test bends. */
struct nvmf_bent {
    struct rc *rc;
    struct connect_command command;
    struct connect_data data;
    struct sgl sgl;
};

/** A connected queue pair, and the Connect command that goes with it. */
struct nvmf_bent *nvmf_bent_new(struct conf *conf,
                                const struct rc_config *config);

/** Send it. @return status; *cqe is the response */
uint16_t nvmf_bent_run(struct nvmf_bent *bent, struct nvme_cqe *cqe);

/** Connect Invalid Parameters, naming that byte (CONNECT_IATTR_DATA). */
void nvmf_expect_invalid(struct nvmf_bent *bent, uint32_t field);

/** An I/O queue's Connect, of the controller whose admin queue is given. */
struct nvmf_bent *nvmf_bent_io(struct rc *admin, uint16_t qid);

/** Its Connect names the discovery subsystem. */
void nvmf_bent_to_discovery(struct nvmf_bent *bent);

/** Admin queue of a discovery controller; not enabled yet. */
struct rc *nvmf_connect_discovery(struct conf *conf,
                                  const struct rc_config *config);
/** The same, enabled. */
struct rc *nvmf_open_discovery(struct conf *conf,
                               const struct rc_config *config);

/** A part of the discovery log, into rc->mem. @return status */
uint16_t nvmf_read_discovery_log(struct rc *rc, uint64_t offset,
                                 uint32_t len_bytes);
/** Header and all records. @return how many, NVMF_RECORDS_MAX at most */
uint64_t nvmf_discovery_log(struct rc *rc);
/** One of them. */
const uint8_t *nvmf_record(const struct rc *rc, uint64_t i);

/** Property Get and Set. @return status */
uint16_t nvmf_get(struct rc *rc, uint32_t offset, uint8_t size_bytes,
                  uint64_t *value);
uint16_t nvmf_set(struct rc *rc, uint32_t offset, uint8_t size_bytes,
                  uint64_t value);

/** CC with EN and the queue entry sizes that NVMe-oF has. */
#define NVMF_CC_ENABLE (CC_EN | 6u << CC_IOSQES_SHIFT | 4u << CC_IOCQES_SHIFT)

/** Wait until a bit of CSTS is that; fails after CAP.TO. */
void nvmf_wait_csts(struct rc *rc, uint32_t mask, uint32_t value);

uint16_t nvmf_keep_alive(struct rc *rc);

/** An admin queue answers; it need not be enabled. */
void nvmf_expect_works(struct rc *rc);

/** The queue pair answers nothing any more. */
void nvmf_expect_gone(struct rc *rc);

/** A 512-byte Read or Write of block `lba` by that descriptor. */
struct nvme_sqe nvmf_io(struct conf *conf, uint8_t opcode, uint64_t lba,
                        uint16_t blocks);

/** Admin queue, enabled, and one I/O queue. */
struct nvmf_pair {
    struct rc *admin, *io;
};
struct nvmf_pair nvmf_open_pair(struct conf *conf,
                                const struct rc_config *config);
void nvmf_close_pair(struct nvmf_pair *pair);

#endif
