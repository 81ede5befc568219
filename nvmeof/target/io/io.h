/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The I/O commands of the NVM command set, and the order of writes.
 */
#ifndef ESSD_NVMEOF_TARGET_IO_IO_H
#define ESSD_NVMEOF_TARGET_IO_IO_H

#include "nvmeof/target/request/request.h"

/* The blocks that a command names. */
static inline uint64_t io_first_lba(const struct nvme_sqe *sqe)
{
    return (uint64_t)sqe->cdw11 << 32 | sqe->cdw10;
}

static inline uint32_t io_count_blocks(const struct nvme_sqe *sqe)
{
    return (sqe->cdw12 & 0xffff) + 1;
}

/* A bit of dword 11 of Dataset Management. */
enum { DSM_ATTRIBUTE_DEALLOCATE = 0x4 };

/* order.c */
MUST_USE bool order_enter_list(struct nvmf_target *target,
                               struct nvmf_request *req, uint64_t first_lba,
                               uint64_t count_blocks);
MUST_USE bool order_enter_exclusive(struct nvmf_target *target,
                                    struct nvmf_request *req,
                                    uint64_t first_lba, uint64_t count_blocks);
void order_leave(struct nvmf_target *target, struct nvmf_request *req);
void order_keep(struct nvmf_target *target);
void order_count_ctrl(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                      bool is_there);
MUST_USE bool order_arrive(struct nvmf_target *target,
                           struct nvmf_request *req);
void order_depart(struct nvmf_target *target, struct nvmf_request *req);
void order_wake_arrivals(struct nvmf_target *target);
void order_end_silent(struct nvmf_target *target,
                      const struct nvmf_request *req, uint64_t before_us);

/* Whether the request must call order_enter_list() before it writes. */
static inline bool order_is_due(const struct nvmf_target *target,
                                const struct nvmf_request *req)
{
    return __builtin_expect(target->order.is_kept, 0) &&
           !(req->holds & HOLDS_ORDER);
}

/* scratch.c */
void scratch_init(struct nvmf_scratch *scratch);
MUST_USE bool scratch_take(struct nvmf_target *target,
                           struct nvmf_request *req);
void scratch_give(struct nvmf_target *target, struct nvmf_request *req);
uint32_t scratch_blocks(const struct nvmf_request *req, uint32_t rest_blocks);
uint16_t scratch_media(struct nvmf_target *target, struct nvmf_request *req,
                       struct media_io *io);

/* A chunk is complete: let the next request have the buffer if one waits. */
static inline void scratch_share(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    if (target->scratch.waiting.head != NULL) {
        scratch_give(target, req);
    }
}

static inline const uint8_t *scratch_data(const struct nvmf_target *target,
                                          const struct nvmf_request *req)
{
    return target->scratch.memory[req->scratch];
}

/* fused.c */
MUST_USE bool fused_capsule(struct nvmf_target *target,
                            struct nvmf_request *req);
void fused_begin(struct nvmf_target *target, struct nvmf_request *second);
void fused_first_ended(struct nvmf_target *target, struct nvmf_request *second,
                       uint16_t status);
void fused_abort_first(struct nvmf_target *target, struct nvmf_request *second);
void fused_end_waiting(struct nvmf_target *target, const struct nvmf_ns *ns);
void fused_drop_first(struct nvmf_target *target, struct nvmf_qpair *qpair);

extern const struct nvmf_command io_dsm_row;
extern const struct nvmf_command io_flush_row;
extern const struct nvmf_command io_read_row;
extern const struct nvmf_command io_write_row;
extern const struct nvmf_command io_write_zeroes_row;

/* io_check.c */
bool io_is_in_range(const struct nvmf_ns *ns, uint64_t lba, uint32_t count);
uint16_t io_check_writable(const struct nvmf_request *req);
uint16_t io_check_range(struct nvmf_request *req);
uint16_t io_check_directive(struct nvmf_request *req);
uint16_t io_check_level(const struct nvmf_target *target,
                        struct nvmf_request *req);
uint16_t io_transfer_check(struct nvmf_target *target,
                           struct nvmf_request *req);
uint16_t io_write_check(struct nvmf_target *target, struct nvmf_request *req);

/* io.c */
uint16_t io_submit(struct nvmf_target *target, struct nvmf_request *req,
                   enum media_op op);
void io_write_finish(struct nvmf_target *target, struct nvmf_request *req);
void io_note_written(struct nvmf_target *target, const struct nvmf_request *req,
                     const struct nvmf_ns *ns, uint16_t status);

extern const struct nvmf_command compare_row;
extern const struct nvmf_command copy_row;
extern const struct nvmf_command uncorrectable_row;
extern const struct nvmf_command verify_row;

/* compare.c */
uint16_t compare_execute(struct nvmf_target *target, struct nvmf_request *req);
uint16_t verify_check(struct nvmf_target *target, struct nvmf_request *req);

/* Whether a chunk has arrived in the scratch buffer since the last call. */
MUST_USE bool compare_chunk_arrived(struct nvmf_request *req);

/* Whether no word of the host's data, or of the chunk in the scratch buffer, is
 * lost.  Otherwise no hart may read them, and the command has to fail. */
MUST_USE bool compare_memory_is_intact(const struct nvmf_target *target,
                                       const struct nvmf_request *req);

/* Whether the host's data at `offset` of this window equal `data`. */
MUST_USE bool compare_data(const struct nvmf_request *req, uint32_t offset,
                           const uint8_t *data, uint32_t len);

extern const struct nvmf_command protection_compare_row;
extern const struct nvmf_command protection_copy_row;
extern const struct nvmf_command protection_read_row;
extern const struct nvmf_command protection_verify_row;
extern const struct nvmf_command protection_write_row;
extern const struct nvmf_command protection_zeroes_row;

/* copy.c */
uint16_t copy_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t copy_execute(struct nvmf_target *target, struct nvmf_request *req);
void copy_fail(struct nvmf_target *target, struct nvmf_request *req);
void copy_leave_sources(struct nvmf_target *target, struct nvmf_request *req);
void copy_find_source(const struct nvmf_request *req, uint32_t *nsid,
                      uint64_t *first_lba);

/* protection.c */
uint16_t protection_compare(struct nvmf_target *target,
                            struct nvmf_request *req);
uint16_t protection_write_fused(struct nvmf_target *target,
                                struct nvmf_request *req);

/* Check the tags of a source range of Copy. */
uint16_t protection_check_copy_range(struct nvmf_request *req,
                                     uint64_t first_lba, uint32_t ref_tag);

/* Blocks of a chunk of Copy. */
uint32_t protection_copy_room(const struct nvmf_request *req);

/* Read or write a chunk of Copy.
 * @param ref_tag, app_tags  of its source range, or of the destination
 * @param done  blocks of that before the chunk */
uint16_t protection_copy_chunk(struct nvmf_target *target,
                               struct nvmf_request *req, struct media_io *io,
                               uint32_t ref_tag, uint32_t app_tags,
                               uint32_t done);

/* The blocks that so many bytes of a command's data are. */
static inline uint32_t io_blocks_in(const struct nvmf_ns *ns,
                                    const struct nvmf_request *req,
                                    uint32_t bytes)
{
    return ns->geometry.has_metadata ? protection_blocks_in(ns, req, bytes)
                                     : bytes >> ns->geometry.block_shift;
}

/* lba_status.c */
uint16_t lba_status_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t lba_status_execute(struct nvmf_target *target,
                            struct nvmf_request *req);

/* A command could not read blocks. */
void lba_status_note_error(struct nvmf_target *target,
                           const struct nvmf_request *req);

/* Blocks were written or deallocated, so that they can be read again. */
void lba_status_written(struct nvmf_target *target, const struct nvmf_ns *ns,
                        uint64_t first_lba, uint64_t count_blocks);

/* A namespace was attached: its tracked blocks are news to that controller. */
void lba_status_attached(struct nvmf_target *target, uint32_t nsid);

/* The blocks of a namespace are gone. */
void lba_status_forget(struct nvmf_target *target, uint32_t nsid);
MUST_USE bool lba_scan_takes_error(struct nvmf_target *target,
                                   struct nvmf_request *req, bool is_mark);

/* A scan gives its turn back. */
void lba_scan_give(struct nvmf_target *target, struct nvmf_request *req);

/* lba_status_log.c */
void lba_log_check_read(struct nvmf_target *target,
                        const struct nvmf_request *req);
void lba_log_begin_read(struct nvmf_target *target,
                        const struct nvmf_request *req);

/* The host has read the page without Retain Asynchronous Event. */
void lba_log_end_read(struct nvmf_target *target, const struct nvmf_ctrl *ctrl);
uint32_t lba_log_len(struct nvmf_target *target, const struct nvmf_ctrl *ctrl);
void lba_log_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                   uint32_t part);
void lba_log_reset_ctrl(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl);

/* Send the alerts that are due.  @return when the next one is */
uint64_t lba_log_timer(struct nvmf_target *target);
void lba_log_withdraw_alerts(struct nvmf_target *target);
uint32_t lba_attributes_get(const struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl,
                            struct nvmf_request *req);
uint16_t lba_attributes_set(struct nvmf_target *target,
                            struct nvmf_request *req);

/* patience.c */

/* Look at what has waited too long.  @return when to look again */
uint64_t patience_timer(struct nvmf_target *target);

/* A namespace refuses commands from now on: refuse those that wait for buffers
 * or for other commands of their host, too. */
void patience_abort_waiting(struct nvmf_target *target,
                            const struct nvmf_ns *ns);

enum {                        /* limits of commands, which Identify reports */
       FUSED_MAX_BLOCKS = 1,  /* ACWU */
       COPY_MAX_RANGES = 128, /* MSRC */
       COPY_MAX_RANGE_BLOCKS = 32768, /* MSSRL */
       COPY_MAX_BLOCKS = 65536,       /* MCL */
       LBA_POLL_INTERVAL = 10,        /* LSIPI, in units of 100 ms */
};

#endif
