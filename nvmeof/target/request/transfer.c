/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a command: what its transport sees of it, and its data.
 */
#include "nvmeof/target/request/request.h"

#include <string.h>

size_t nvmf_request_bytes(void)
{
    return sizeof(struct nvmf_request);
}

struct nvmf_transfer *nvmf_request_init(void *memory, uint32_t number,
                                        void *owner)
{
    struct nvmf_request *req = memory;

    *req = (struct nvmf_request){
        .transfer = {.owner = owner, .number = number},
    };
    return &req->transfer;
}

/* Copy `len` bytes at `offset` of the data to or from the request's pieces. */
static void copy_data(const struct nvmf_request *req, uint32_t offset,
                      uint8_t *to, const uint8_t *from, uint32_t len)
{
    for (uint8_t i = 0; i < req->transfer.piece_count && len > 0; i++) {
        uint32_t piece_len = req->transfer.pieces[i].len_bytes;
        uint8_t *piece = req->transfer.pieces[i].ptr;
        uint32_t n;

        if (offset >= piece_len) {
            offset -= piece_len;
            continue;
        }
        n = MIN(piece_len - offset, len);
        if (from != NULL) {
            memcpy(piece + offset, from, n);
            from += n;
        } else if (to != NULL) {
            memcpy(to, piece + offset, n);
            to += n;
        } else {
            memset(piece + offset, 0, n);
        }
        offset = 0;
        len -= n;
    }
    ASSERT(len == 0);
}

/* Write to the data for the host; write zeroes if `data` is NULL. */
void request_write_data(struct nvmf_request *req, uint32_t offset,
                        const uint8_t *data, uint32_t len)
{
    copy_data(req, offset, NULL, data, len);
}

void request_read_data(const struct nvmf_request *req, uint32_t offset,
                       uint8_t *data, uint32_t len)
{
    copy_data(req, offset, data, NULL, len);
}
