/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checks that commands with a range of blocks share.
 */
#include "nvmeof/target/io/io.h"
#include "nvmeof/target/base/level.h"

enum { RW_DTYPE_SHIFT = 20 }; /* in dword 12 */

bool io_is_in_range(const struct nvmf_ns *ns, uint64_t lba, uint32_t count)
{
    return lba <= ns->geometry.size_blocks &&
           count <= ns->geometry.size_blocks - lba;
}

uint16_t io_check_writable(const struct nvmf_request *req)
{
    return req->ns->geometry.is_read_only
               ? refuse_status(NVME_SC_NS_WRITE_PROTECTED)
               : NVME_SC_SUCCESS;
}

uint16_t io_check_range(struct nvmf_request *req)
{
    if (!io_is_in_range(req->ns, io_first_lba(&req->sqe),
                        io_count_blocks(&req->sqe))) {
        return refuse_field(req, NVME_SC_LBA_RANGE, SQE_CDW10, 0);
    }
    return NVME_SC_SUCCESS;
}

uint16_t io_transfer_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint8_t shift = req->ns->geometry.block_shift;

    (void)target;
    req->data_len = io_count_blocks(&req->sqe) << shift;
    if (req->data_len > NVMF_MAX_TRANSFER) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12, 0);
    }
    return io_check_range(req);
}

/* Refuse a command that is newer than the target's level. */
uint16_t io_check_level(const struct nvmf_target *target,
                        struct nvmf_request *req)
{
    return level_has(target, LEVEL_IO, req->sqe.opcode)
               ? NVME_SC_SUCCESS
               : refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_OPCODE, 0);
}

/* Identify (OACS) says that the drive has no directives. */
uint16_t io_check_directive(struct nvmf_request *req)
{
    return (req->sqe.cdw12 >> RW_DTYPE_SHIFT & 0xf) == 0
               ? NVME_SC_SUCCESS
               : refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12 + 2, 4);
}

/* All checks of a Write, which stand here so that none of them is a call. */
uint16_t io_write_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t status = io_check_writable(req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    status = io_check_directive(req);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    return io_transfer_check(target, req);
}
