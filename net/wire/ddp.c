/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of DDP and RDMAP: see ddp.h. */
#include "net/wire/ddp.h"

#include <string.h>

#include "lib/bytes.h"

_Static_assert(DDP_TO + 8 == DDP_TAGGED_LEN, "a tagged header is 14 bytes");
_Static_assert(DDP_MO + 4 == DDP_UNTAGGED_LEN,
               "an untagged header is 18 bytes");
_Static_assert(RDMAP_READ_SOURCE_TO + 8 == RDMAP_READ_LEN,
               "a READ request is 28 bytes");

enum { FLAG_TAGGED = 0x80, FLAG_LAST = 0x40 };

uint32_t ddp_parse(struct ddp *ddp, const uint8_t *buf, size_t len)
{
    bool is_tagged = len != 0 && (buf[DDP_CONTROL] & FLAG_TAGGED);

    if (len < ddp_header_bytes(is_tagged)) {
        return 0;
    }
    *ddp = (struct ddp){
        .is_tagged = is_tagged,
        .is_last = buf[DDP_CONTROL] & FLAG_LAST,
        .version = buf[DDP_CONTROL] & 3,
        .rdmap_version = buf[DDP_RDMAP] >> 6,
        .opcode = buf[DDP_RDMAP] & 0x0f,
        .stag = get_be32(buf + DDP_STAG),
    };
    if (is_tagged) {
        ddp->to = get_be64(buf + DDP_TO);
    } else {
        ddp->qn = get_be32(buf + DDP_QN);
        ddp->msn = get_be32(buf + DDP_MSN);
        ddp->mo = get_be32(buf + DDP_MO);
    }
    return ddp_header_bytes(is_tagged);
}

uint32_t ddp_emit(const struct ddp *ddp, uint8_t *buf)
{
    buf[DDP_CONTROL] =
        (uint8_t)((ddp->is_tagged ? FLAG_TAGGED : 0) |
                  (ddp->is_last ? FLAG_LAST : 0) | (ddp->version & 3));
    buf[DDP_RDMAP] =
        (uint8_t)((ddp->rdmap_version & 3) << 6 | (ddp->opcode & 0x0f));
    put_be32(buf + DDP_STAG, ddp->stag);
    if (ddp->is_tagged) {
        put_be64(buf + DDP_TO, ddp->to);
    } else {
        put_be32(buf + DDP_QN, ddp->qn);
        put_be32(buf + DDP_MSN, ddp->msn);
        put_be32(buf + DDP_MO, ddp->mo);
    }
    return ddp_header_bytes(ddp->is_tagged);
}

bool rdmap_read_parse(struct rdmap_read *read, const uint8_t *buf, size_t len)
{
    if (len != RDMAP_READ_LEN) {
        return false;
    }
    *read = (struct rdmap_read){
        .sink_stag = get_be32(buf + RDMAP_READ_SINK_STAG),
        .sink_to = get_be64(buf + RDMAP_READ_SINK_TO),
        .len_bytes = get_be32(buf + RDMAP_READ_SIZE),
        .source_stag = get_be32(buf + RDMAP_READ_SOURCE_STAG),
        .source_to = get_be64(buf + RDMAP_READ_SOURCE_TO),
    };
    return true;
}

void rdmap_read_emit(const struct rdmap_read *read, uint8_t *buf)
{
    put_be32(buf + RDMAP_READ_SINK_STAG, read->sink_stag);
    put_be64(buf + RDMAP_READ_SINK_TO, read->sink_to);
    put_be32(buf + RDMAP_READ_SIZE, read->len_bytes);
    put_be32(buf + RDMAP_READ_SOURCE_STAG, read->source_stag);
    put_be64(buf + RDMAP_READ_SOURCE_TO, read->source_to);
}

bool rdmap_terminate_parse(struct rdmap_terminate *terminate,
                           const uint8_t *buf, size_t len)
{
    if (len < RDMAP_TERM_LEN) {
        return false;
    }
    *terminate = (struct rdmap_terminate){
        .error = get_be16(buf + RDMAP_TERM_CONTROL),
        .headers = buf[RDMAP_TERM_HEADERS],
    };
    if (len >= RDMAP_TERM_HEADER) {
        terminate->segment_len = get_be16(buf + RDMAP_TERM_SEGMENT);
        terminate->header = buf + RDMAP_TERM_HEADER;
        terminate->header_len = (uint32_t)(len - RDMAP_TERM_HEADER);
    }
    return true;
}

uint32_t rdmap_terminate_emit(const struct rdmap_terminate *terminate,
                              uint8_t *buf)
{
    put_be16(buf + RDMAP_TERM_CONTROL, terminate->error);
    buf[RDMAP_TERM_HEADERS] = terminate->headers;
    buf[RDMAP_TERM_HEADERS + 1] = 0;
    if ((terminate->headers & RDMAP_TERM_M) == 0) {
        return RDMAP_TERM_LEN;
    }
    put_be16(buf + RDMAP_TERM_SEGMENT, terminate->segment_len);
    memcpy(buf + RDMAP_TERM_HEADER, terminate->header, terminate->header_len);
    return RDMAP_TERM_HEADER + terminate->header_len;
}
