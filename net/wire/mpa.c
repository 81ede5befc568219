/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA setup frames: see mpa.h. */
#include "net/wire/mpa.h"

#include <string.h>

#include "lib/bytes.h"

static const uint8_t request_key[MPA_KEY_LEN + 1] = "MPA ID Req Frame";
static const uint8_t reply_key[MPA_KEY_LEN + 1] = "MPA ID Rep Frame";

enum { /* bits of MPA_FLAGS */
       FLAG_MARKERS = 0x80,
       FLAG_CRC = 0x40,
       FLAG_REJECT = 0x20,
       FLAG_ENHANCED = 0x10,
};

enum { ENHANCED_REVISION = 2 }; /* the first one that has IRD and ORD */

enum { /* the bits above IRD and ORD */
       IRD_PEER_TO_PEER = 0x8000,
       IRD_RTR_SEND = 0x4000,
       ORD_RTR_WRITE = 0x8000,
       ORD_RTR_READ = 0x4000,
       DEPTH_MASK = 0x3fff,
};

/* Whether these bytes begin a frame with one of the keys. */
static bool may_be_setup(const uint8_t *buf, size_t len)
{
    size_t n = MIN(len, (size_t)MPA_KEY_LEN);

    return memcmp(buf, request_key, n) == 0 || memcmp(buf, reply_key, n) == 0;
}

static void parse_depths(struct mpa_setup *setup, const uint8_t *buf)
{
    uint16_t ird = get_be16(buf + MPA_ENHANCED_IRD);
    uint16_t ord = get_be16(buf + MPA_ENHANCED_ORD);

    setup->ird = ird & DEPTH_MASK;
    setup->ord = ord & DEPTH_MASK;
    setup->peer_to_peer = ird & IRD_PEER_TO_PEER;
    setup->rtr = (uint8_t)((ird & IRD_RTR_SEND ? MPA_RTR_SEND : 0) |
                           (ord & ORD_RTR_WRITE ? MPA_RTR_WRITE : 0) |
                           (ord & ORD_RTR_READ ? MPA_RTR_READ : 0));
}

enum mpa_parsed mpa_setup_parse(struct mpa_setup *setup, const uint8_t *buf,
                                size_t len)
{
    uint16_t pd_length;
    uint8_t flags;

    if (!may_be_setup(buf, len)) {
        return MPA_MALFORMED;
    }
    if (len < MPA_SETUP_LEN) {
        return MPA_INCOMPLETE;
    }
    pd_length = get_be16(buf + MPA_PD_LENGTH);
    flags = buf[MPA_FLAGS];
    *setup = (struct mpa_setup){
        .is_reply = memcmp(buf, reply_key, MPA_KEY_LEN) == 0,
        .markers = flags & FLAG_MARKERS,
        .crc = flags & FLAG_CRC,
        .is_rejected = flags & FLAG_REJECT,
        /* The bit is reserved in RFC 5044, which is revision 1. */
        .is_enhanced =
            (flags & FLAG_ENHANCED) && buf[MPA_REVISION] >= ENHANCED_REVISION,
        .revision = buf[MPA_REVISION],
    };
    if (pd_length > MPA_PD_MAX ||
        (setup->is_enhanced && pd_length < MPA_ENHANCED_LEN)) {
        return MPA_MALFORMED;
    }
    if (len < MPA_SETUP_LEN + (size_t)pd_length) {
        return MPA_INCOMPLETE;
    }
    setup->private_len = pd_length;
    if (setup->is_enhanced) {
        setup->private_len = (uint16_t)(pd_length - MPA_ENHANCED_LEN);
        parse_depths(setup, buf);
    }
    return MPA_PARSED;
}

static void emit_depths(const struct mpa_setup *setup, uint8_t *buf)
{
    unsigned int ird = setup->ird & DEPTH_MASK;
    unsigned int ord = setup->ord & DEPTH_MASK;

    ird |= setup->peer_to_peer ? IRD_PEER_TO_PEER : 0;
    ird |= setup->rtr & MPA_RTR_SEND ? IRD_RTR_SEND : 0;
    ord |= setup->rtr & MPA_RTR_WRITE ? ORD_RTR_WRITE : 0;
    ord |= setup->rtr & MPA_RTR_READ ? ORD_RTR_READ : 0;
    put_be16(buf + MPA_ENHANCED_IRD, (uint16_t)ird);
    put_be16(buf + MPA_ENHANCED_ORD, (uint16_t)ord);
}

void mpa_setup_emit(const struct mpa_setup *setup, uint8_t *buf)
{
    memcpy(buf + MPA_KEY, setup->is_reply ? reply_key : request_key,
           MPA_KEY_LEN);
    buf[MPA_FLAGS] = (uint8_t)((setup->markers ? FLAG_MARKERS : 0) |
                               (setup->crc ? FLAG_CRC : 0) |
                               (setup->is_rejected ? FLAG_REJECT : 0) |
                               (setup->is_enhanced ? FLAG_ENHANCED : 0));
    buf[MPA_REVISION] = setup->revision;
    put_be16(buf + MPA_PD_LENGTH,
             (uint16_t)(mpa_setup_bytes(setup) - MPA_SETUP_LEN));
    if (setup->is_enhanced) {
        emit_depths(setup, buf);
    }
}
