/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FPDUs in received bytes, and the trailer of sent ones: see mpa.h.
 * Spec: RFC 5044 sections 4 and 4.4 (CRC32c, as iSCSI has it).
 */
#include "net/mpa/mpa.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "net/wire/ddp.h"

enum { SHORTEST_ULPDU = DDP_TAGGED_LEN };

static uint32_t total_bytes(const struct rdma_stream_piece *in,
                            unsigned int count)
{
    uint32_t total = 0;

    for (unsigned int i = 0; i < count; i++) {
        total += in[i].len_bytes;
    }
    return total;
}

/*
 * Find bytes [at, at + len), which are there.
 *
 * @param copy  where they are put if they lie in several pieces
 */
static const uint8_t *whole_bytes(const struct rdma_stream_piece *in,
                                  uint32_t at, uint32_t len, uint8_t *copy)
{
    uint32_t done = 0;

    for (; at >= in->len_bytes; in++) {
        at -= in->len_bytes;
    }
    if (len <= in->len_bytes - at) {
        return in->data + at;
    }
    for (; done < len; in++) {
        uint32_t n = MIN(len - done, in->len_bytes - at);

        if (n != 0) {
            memcpy(copy + done, in->data + at, n);
        }
        done += n;
        at = 0;
    }
    return copy;
}

enum mpa_deframed mpa_deframe(const struct rdma_stream_piece *in,
                              unsigned int count, uint32_t skip,
                              uint32_t max_len, bool has_crc, uint8_t *scratch,
                              struct rdma_stream_piece *ulpdu)
{
    uint32_t available = total_bytes(in, count) - skip;
    uint8_t header[MPA_FPDU_HEADER];
    const uint8_t *fpdu;
    uint32_t len, bytes;

    if (available < MPA_FPDU_HEADER) {
        return MPA_FPDU_WAITS;
    }
    len = get_be16(whole_bytes(in, skip, MPA_FPDU_HEADER, header));
    bytes = mpa_fpdu_bytes(len);
    if (len < SHORTEST_ULPDU || bytes > max_len) {
        return MPA_FPDU_BAD_LENGTH;
    }
    if (available < bytes) {
        return MPA_FPDU_WAITS;
    }
    fpdu = whole_bytes(in, skip, bytes, scratch);
    if (has_crc && crc32c_update(0, fpdu, bytes - MPA_FPDU_CRC) !=
                       get_le32(fpdu + bytes - MPA_FPDU_CRC)) {
        return MPA_FPDU_BAD_CRC;
    }
    *ulpdu = (struct rdma_stream_piece){fpdu + MPA_FPDU_HEADER, len};
    return MPA_FPDU;
}

uint32_t mpa_trailer(const struct rdma_stream_piece *pieces, unsigned int count,
                     bool has_crc, uint8_t *buf)
{
    uint32_t ulpdu_len = total_bytes(pieces, count) - MPA_FPDU_HEADER;
    uint32_t pad = mpa_pad_bytes(ulpdu_len);
    uint32_t crc = 0;

    memset(buf, 0, pad);
    if (has_crc) {
        for (unsigned int i = 0; i < count; i++) {
            crc = crc32c_update(crc, pieces[i].data, pieces[i].len_bytes);
        }
        crc = crc32c_update(crc, buf, pad);
    }
    put_le32(buf + pad, crc);
    return pad + MPA_FPDU_CRC;
}
