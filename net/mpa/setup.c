/* SPDX-License-Identifier: BSD-2-Clause */
/* The setup of a stream for RDMA, as responder: see mpa.h. */
#include "net/mpa/mpa.h"

#include <string.h>

enum { REVISION_MAX = 2 }; /* RFC 6581; revision 0 is an older draft's */

enum mpa_verdict mpa_request_judge(struct mpa_request *request,
                                   const uint8_t *buf, size_t len)
{
    const struct mpa_setup *setup = &request->setup;

    switch (mpa_setup_parse(&request->setup, buf, len)) {
    case MPA_INCOMPLETE:
        return MPA_WAITS;
    case MPA_MALFORMED:
        return MPA_NOT_MPA;
    default:
        break;
    }
    if (setup->is_reply || setup->is_rejected ||
        setup->revision > REVISION_MAX || len != mpa_setup_bytes(setup)) {
        return MPA_NOT_MPA;
    }
    request->private_data = buf + mpa_private_at(setup);
    return setup->markers ? MPA_REFUSED : MPA_ACCEPTABLE;
}

/* The first message that both sides can handle: a WRITE needs nothing of the
 * responder, a READ one of its READs, a SEND a number of the queue. */
static uint8_t choose_rtr(const struct mpa_setup *setup,
                          const struct mpa_limits *limits)
{
    if (!setup->is_enhanced || !setup->peer_to_peer) {
        return 0;
    }
    if (setup->rtr & MPA_RTR_WRITE) {
        return MPA_RTR_WRITE;
    }
    if ((setup->rtr & MPA_RTR_READ) && limits->max_ird != 0) {
        return MPA_RTR_READ;
    }
    return setup->rtr & MPA_RTR_SEND;
}

/* The smaller one of our limit and what the peer says. */
static uint8_t choose_depth(uint8_t limit, uint16_t said)
{
    return said < limit ? (uint8_t)said : limit;
}

void mpa_choose(const struct mpa_request *request,
                const struct mpa_limits *limits, struct mpa_terms *terms)
{
    const struct mpa_setup *setup = &request->setup;

    *terms = (struct mpa_terms){
        .crc = setup->crc || limits->wants_crc,
        .ird = limits->max_ird,
        .ord = limits->max_ord,
        .rtr = choose_rtr(setup, limits),
    };
    if (setup->is_enhanced) {
        terms->ird = choose_depth(limits->max_ird, setup->ord);
        terms->ord = choose_depth(limits->max_ord, setup->ird);
    }
    if (terms->rtr == MPA_RTR_READ && terms->ird == 0) {
        terms->ird = 1;
    }
}

size_t mpa_reply(const struct mpa_request *request,
                 const struct mpa_terms *terms, bool is_rejected,
                 const void *private_data, size_t len, uint8_t *buf)
{
    const struct mpa_setup *asked = &request->setup;
    struct mpa_setup setup = {
        .is_reply = true,
        .crc = terms->crc,
        .is_rejected = is_rejected,
        .is_enhanced = asked->is_enhanced,
        .peer_to_peer = terms->rtr != 0,
        .rtr = terms->rtr,
        .ird = terms->ird,
        .ord = terms->ord,
        .revision = asked->revision,
        .private_len = (uint16_t)len,
    };

    ASSERT(len <= MPA_PD_MAX - MPA_ENHANCED_LEN);
    mpa_setup_emit(&setup, buf);
    if (len != 0) {
        memcpy(buf + mpa_private_at(&setup), private_data, len);
    }
    return mpa_setup_bytes(&setup);
}
