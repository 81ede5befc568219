/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/lba_status.h"

#include <string.h>

#include "lib/bytes.h"

void lba_status_header_emit(uint8_t *buf, uint32_t descriptors, uint8_t cmpc)
{
    memset(buf, 0, LBA_STATUS_HEADER_LEN);
    put_le32(buf + LBA_STATUS_NLSD, descriptors);
    buf[LBA_STATUS_CMPC] = cmpc;
}

void lba_descriptor_emit(uint8_t *buf, uint64_t first_lba,
                         uint32_t count_blocks, uint8_t status)
{
    memset(buf, 0, LBA_DESCRIPTOR_LEN);
    put_le64(buf + LBA_DESCRIPTOR_DSLBA, first_lba);
    put_le32(buf + LBA_DESCRIPTOR_NLB, count_blocks - 1);
    buf[LBA_DESCRIPTOR_STATUS] = status;
}

void lba_log_header_emit(uint8_t *buf, uint32_t len, uint32_t elements,
                         uint32_t blocks, uint16_t generation)
{
    memset(buf, 0, LBA_LOG_HEADER_LEN);
    put_le32(buf + LBA_LOG_LSLPLEN, len);
    put_le32(buf + LBA_LOG_NLSLNE, elements);
    put_le32(buf + LBA_LOG_ESTULB, blocks);
    put_le16(buf + LBA_LOG_LSGC, generation);
}

void lba_element_emit(uint8_t *buf, uint32_t nsid, uint32_t ranges,
                      uint8_t action)
{
    memset(buf, 0, LBA_ELEMENT_LEN);
    put_le32(buf + LBA_ELEMENT_NEID, nsid);
    put_le32(buf + LBA_ELEMENT_NLRD, ranges);
    buf[LBA_ELEMENT_RATYPE] = action;
}

void lba_range_emit(uint8_t *buf, uint64_t first_lba, uint32_t count_blocks)
{
    memset(buf, 0, LBA_RANGE_LEN);
    put_le64(buf + LBA_RANGE_RSLBA, first_lba);
    put_le32(buf + LBA_RANGE_RNLB, count_blocks - 1);
}
