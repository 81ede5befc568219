/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write Uncorrectable: marks blocks, so that reads of them end with Unrecovered
 * Read Error until the blocks are written or deallocated.  Only media that keep
 * such marks over power cycles have the command.
 * Spec: NVM Express NVM Command Set 1.0 section 3.2.7.
 *
 * A mark is not an error of the medium: neither SMART's media errors nor the
 * persistent event log count reads of marked blocks, and no LBA is tracked.
 */
#include "nvmeof/target/io/io.h"

static uint16_t uncorrectable_check(struct nvmf_target *target,
                                    struct nvmf_request *req)
{
    uint16_t status = io_check_writable(req);

    (void)target;
    return status != NVME_SC_SUCCESS ? status : io_check_range(req);
}

static uint16_t uncorrectable_execute(struct nvmf_target *target,
                                      struct nvmf_request *req)
{
    struct media_io io = {
        .op = MEDIA_WRITE_UNCORRECTABLE,
        .ns = req->ns->config.media_ns,
        .first_lba = io_first_lba(&req->sqe),
        .count_blocks = io_count_blocks(&req->sqe),
    };

    if (order_is_due(target, req) &&
        !order_enter_list(target, req, io.first_lba, io.count_blocks)) {
        return NVMF_PENDING;
    }
    return request_media(target, req, &io);
}

const struct nvmf_command uncorrectable_row = {
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_HAS_LBA,
    .check = uncorrectable_check,
    .execute = uncorrectable_execute,
};
