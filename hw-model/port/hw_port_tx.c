/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port's transmit path: the raw ring and the RNIC share the link.
 * Reference: docs/hardware/port.md, section 6.
 *
 * The RNIC keeps its frames until the port takes them.  The port only knows the
 * priority of the first RNIC frame that it refused.
 */
#include "hw-model/port/hw_port_internal.h"

#include <string.h>

#include "net/wire/eth.h"

enum {
    RAW_QUANTUM = 8,   /* raw frames sent in a turn while the RNIC waits */
    RNIC_QUANTUM = 32, /* RNIC frames sent in a turn while the raw ring waits */
    TURNS_A_RUN = 32,  /* turns before other devices run */
};

/* Copy a frame of less than 60 bytes to one part and pad it with zeros. */
static void pad_frame(struct frame_tx *padded, const struct frame_tx *frame)
{
    *padded = (struct frame_tx){
        .departure_ns = frame->departure_ns,
        .priority = frame->priority,
        .head_len = PORT_FRAME_MIN,
    };
    (void)frame_tx_copy(padded->head, frame);
}

static void count_sent(struct hw_port *port, const struct frame_tx *frame,
                       uint32_t len)
{
    port_count(port, PORT_COUNT_FRAMES_TRANSMITTED_OK, 1);
    port_count(port, PORT_COUNT_OCTETS_TRANSMITTED_OK,
               MAX(len, PORT_FRAME_MIN) - ETH_LEN);
    if (frame->head_len >= ETH_LEN && (frame->head[ETH_DST] & 1)) {
        static const uint8_t broadcast[6] = {0xff, 0xff, 0xff,
                                             0xff, 0xff, 0xff};
        bool is_broadcast =
            memcmp(frame->head + ETH_DST, broadcast, sizeof(broadcast)) == 0;

        port_count(port,
                   is_broadcast ? PORT_COUNT_BROADCAST_TRANSMITTED_OK
                                : PORT_COUNT_MULTICAST_TRANSMITTED_OK,
                   1);
    }
}

/*
 * @return whether bit errors destroy the next frame on its way to the partner
 */
static bool is_lost(struct hw_port *port, const struct frame_tx *frame)
{
    uint32_t len = MAX(frame_tx_len(frame), PORT_FRAME_MIN) + PORT_FCS_LEN;

    /* Draw once for each frame, even if the link refuses it the first time. */
    port->tx_is_sound =
        port->tx_is_sound ||
        !fec_frame(&port->lane_tx, hw_port_link(port).fec, len).is_lost;
    return !port->tx_is_sound;
}

/* emit_frames() for a cable with bit errors: handles one frame at a time. */
static unsigned int emit_lossy(struct hw_port *port,
                               const struct frame_tx *burst, unsigned int count)
{
    const struct frame_sink *link = &port->config.link;
    unsigned int sent;

    for (sent = 0; sent < count && !port->link_blocked; sent++) {
        const struct frame_tx *frame = &burst[sent];
        struct frame_tx padded;

        if (is_lost(port, frame)) {
            port->partner_lost++;
        } else {
            if (frame_tx_len(frame) < PORT_FRAME_MIN) {
                pad_frame(&padded, frame);
                frame = &padded;
            }
            if (link->send(link->ctx, frame, 1) == 0) {
                port_link_refused(port);
                break;
            }
            port->tx_is_sound = 0;
        }
        count_sent(port, &burst[sent], frame_tx_len(&burst[sent]));
    }
    return sent;
}

/*
 * Offer frames to the link.
 * @return how many it took; if fewer than offered, the link is blocked
 */
static unsigned int emit_frames(struct hw_port *port,
                                const struct frame_tx *burst,
                                unsigned int count)
{
    const struct frame_sink *link = &port->config.link;
    unsigned int sent = 0;

    if (port->lane_tx.ber_atto != 0) {
        return emit_lossy(port, burst, count);
    }
    while (sent < count && !port->link_blocked) {
        unsigned int run = sent, taken;
        struct frame_tx padded;

        while (run < count && frame_tx_len(&burst[run]) >= PORT_FRAME_MIN) {
            run++;
        }
        if (run > sent) {
            run -= sent;
            taken = link->send(link->ctx, burst + sent, run);
        } else {
            run = 1;
            pad_frame(&padded, &burst[sent]);
            taken = link->send(link->ctx, &padded, 1);
        }
        if (taken < run) {
            port_link_refused(port);
        }
        for (unsigned int i = 0; i < taken; i++, sent++) {
            count_sent(port, &burst[sent], frame_tx_len(&burst[sent]));
        }
    }
    return sent;
}

/* ---- Raw ring */

/* The number of frames in the ring; 0 if firmware's index is invalid. */
static uint32_t raw_pending(struct hw_port *port, const uint8_t *page)
{
    uint32_t pending = shared_load32(page + PORT_PAGE_TX_PI) - port->tx_ci;

    dev_rmb();
    if (pending > port->tx_mask + 1) {
        port_irq_raise(port, R_PORT_IRQ_STATUS_DMA_ERROR_MASK);
        return 0;
    }
    return pending;
}

static const uint8_t *raw_slot(const struct hw_port *port, uint32_t index)
{
    return port_dma(
        port, port->tx_addr + (uint64_t)(index & port->tx_mask) * PORT_TXD_LEN,
        PORT_TXD_LEN);
}

static uint8_t raw_priority(const struct hw_port *port, uint32_t ahead)
{
    const uint8_t *slot = raw_slot(port, port->tx_ci + ahead);

    return slot != NULL ? slot[PORT_TXD_PRIORITY] & 7 : 0;
}

static bool is_paused(const struct hw_port *port, uint8_t priority)
{
    return port->held >> (priority & 7) & 1;
}

/*
 * Find the next of `pending` raw frames that may be sent.  A frame overtakes
 * paused frames before it unless it has the same priority.
 * @return its offset from tx_ci; -1 when there is none
 */
static int raw_next(const struct hw_port *port, uint32_t pending)
{
    if (port->held == 0 && port->tx_ahead == 0) {
        return pending > 0 ? 0 : -1;
    }
    pending = MIN(pending, (uint32_t)HW_PORT_TX_AHEAD);
    for (uint32_t i = 0; i < pending; i++) {
        if (!(port->tx_ahead >> i & 1) &&
            !is_paused(port, raw_priority(port, i))) {
            return (int)i;
        }
    }
    return -1;
}

/* @return false when the descriptor is malformed */
static bool raw_frame(const struct hw_port *port, uint32_t index,
                      struct frame_tx *frame)
{
    const uint8_t *slot = raw_slot(port, index);
    const uint8_t *data;
    uint32_t len;

    if (slot == NULL) {
        return false;
    }
    len = get_le32(slot + PORT_TXD_LENGTH);
    if (len < ETH_LEN || len > port->mtu + ETH_TAGGED_LEN) {
        return false;
    }
    data = port_dma(port, get_le64(slot + PORT_TXD_ADDR), len);
    if (data == NULL) {
        return false;
    }
    frame->departure_ns = 0;
    frame->priority = slot[PORT_TXD_PRIORITY] & 7;
    frame->flags = 0;
    frame->tail_len = 0;
    frame->head_len = (uint16_t)MIN(len, (uint32_t)ETH_TAGGED_LEN);
    memcpy(frame->head, data, frame->head_len);
    frame->num_pieces = len > frame->head_len;
    frame->pieces[0] = (struct frame_piece){
        .data = data + frame->head_len,
        .len_bytes = len - frame->head_len,
    };
    return true;
}

static void raw_publish(struct hw_port *port, uint8_t *page)
{
    dev_wmb(); /* read the buffers before they are given back */
    shared_store32(page + PORT_PAGE_TX_CI, port->tx_ci);
    port_ring_moved(port, page, PORT_ARMED_TX);
}

/* Send raw frames one by one, while some priorities are paused. */
static void raw_send_ahead(struct hw_port *port, uint8_t *page,
                           uint32_t pending)
{
    uint32_t first = port->tx_ci;
    int i;

    for (unsigned int n = 0;
         n < RAW_QUANTUM && (i = raw_next(port, pending)) >= 0; n++) {
        struct frame_tx frame;

        if (!raw_frame(port, port->tx_ci + (uint32_t)i, &frame)) {
            port_count(port, PORT_COUNT_TX_DROPPED_ERROR, 1);
            port_irq_raise(port, R_PORT_IRQ_STATUS_DMA_ERROR_MASK);
        } else if (!port->link_up) {
            port_count(port, PORT_COUNT_TX_DROPPED_LINK, 1);
        } else if (port_is_lost(port, frame.priority)) {
            port_count(port, PORT_COUNT_TX_DROPPED_TIMEOUT, 1);
        } else if (emit_frames(port, &frame, 1) == 1) {
            port_count(port, PORT_COUNT_TX_RAW, 1);
        } else {
            break;
        }
        port->tx_ahead |= UINT64_C(1) << i;
        for (; port->tx_ahead & 1; port->tx_ahead >>= 1) {
            port->tx_ci++;
            pending--;
        }
    }
    if (port->tx_ci != first) {
        raw_publish(port, page);
    }
}

/* Send up to RAW_QUANTUM of the `pending` frames. */
static void raw_send(struct hw_port *port, uint8_t *page, uint32_t pending)
{
    struct frame_tx burst[RAW_QUANTUM];
    uint32_t count = MIN(pending, (uint32_t)RAW_QUANTUM);
    uint32_t first = port->tx_ci;
    unsigned int n = 0, sent = 0;
    bool is_bad = false;

    if (port->paused != 0 || port->tx_ahead != 0) {
        raw_send_ahead(port, page, pending);
        return;
    }
    while (n < count && !is_bad) {
        if (raw_frame(port, port->tx_ci + n, &burst[n])) {
            n++;
        } else {
            is_bad = true;
        }
    }
    if (!port->link_up) {
        sent = n;
        port_count(port, PORT_COUNT_TX_DROPPED_LINK, n);
    } else if (port_is_lost(port, 0)) { /* no priority is paused here */
        sent = n;
        port_count(port, PORT_COUNT_TX_DROPPED_TIMEOUT, n);
    } else {
        sent = emit_frames(port, burst, n);
        port_count(port, PORT_COUNT_TX_RAW, sent);
    }
    port->tx_ci += sent;
    if (is_bad && sent == n) {
        port->tx_ci++;
        port_count(port, PORT_COUNT_TX_DROPPED_ERROR, 1);
        port_irq_raise(port, R_PORT_IRQ_STATUS_DMA_ERROR_MASK);
    }
    if (port->tx_ci != first) {
        raw_publish(port, page);
    }
}

/*
 * Fall asleep because nothing may be sent, unless firmware has just published
 * frames.
 */
static uint32_t raw_sleep(struct hw_port *port, uint8_t *page)
{
    uint32_t pending;

    shared_store32(page + PORT_PAGE_ASLEEP, 1);
    dev_mb();
    pending = raw_pending(port, page);
    if (raw_next(port, pending) >= 0) {
        shared_store32(page + PORT_PAGE_ASLEEP, 0);
    }
    return pending;
}

/* ---- Sharing the link. */

/* Whether the RNIC has a frame that is not paused. */
static bool has_rnic(const struct hw_port *port)
{
    return port->rnic_waiting && !is_paused(port, port->rnic_priority);
}

/* @param raw  the result of raw_next() */
static bool rnic_is_next(const struct hw_port *port, int raw)
{
    uint8_t priority;

    if (!has_rnic(port) || raw < 0) {
        return has_rnic(port);
    }
    priority = raw_priority(port, (uint32_t)raw);
    return port->rnic_priority != priority ? port->rnic_priority > priority
                                           : port->rnic_turn;
}

void port_tx_serve(struct hw_port *port)
{
    uint8_t *page = port_page(port);
    uint32_t pending;

    if (!FIELD_GET(port->ctrl, PORT_CTRL, TX_ENABLE)) {
        if (!port->link_up && port->rnic_waiting) {
            port->rnic_waiting = 0;
            port->config.ops.rnic_ready(port->config.ops.ctx);
        }
        return;
    }
    if (page != NULL) {
        shared_store32(page + PORT_PAGE_ASLEEP, 0);
    }
    for (unsigned int turns = 0; turns < TURNS_A_RUN; turns++) {
        int next;

        pending = page != NULL ? raw_pending(port, page) : 0;
        if (port->link_blocked && port->link_up && !port->block_expired) {
            port->raw_waiting = raw_next(port, pending) >= 0;
            return;
        }
        next = raw_next(port, pending);
        if (next < 0 && !has_rnic(port) && page != NULL) {
            pending = raw_sleep(port, page);
            next = raw_next(port, pending);
        }
        port->raw_waiting = next >= 0;
        if (next < 0 && !has_rnic(port)) {
            return;
        }
        if (rnic_is_next(port, next)) {
            port->rnic_waiting = 0;
            port->rnic_turn = 0;
            port->config.ops.rnic_ready(port->config.ops.ctx);
        } else {
            raw_send(port, page, pending);
            port->rnic_turn = 1;
        }
    }
    port->config.env.defer(port->config.env.ctx);
}

static unsigned int refuse_frames(struct hw_port *port,
                                  const struct frame_tx *first)
{
    port->rnic_waiting = 1;
    port->rnic_priority = first->priority & 7;
    return 0;
}

/* The number of frames that precede the first paused one. */
static unsigned int before_paused(const struct hw_port *port,
                                  const struct frame_tx *burst,
                                  unsigned int count)
{
    unsigned int n = 0;

    while (n < count && !is_paused(port, burst[n].priority)) {
        n++;
    }
    return n;
}

/*
 * Find the priority of the next raw frame.
 * @return false when none may be sent
 */
static bool raw_waits(struct hw_port *port, uint8_t *priority)
{
    const uint8_t *page = port_page(port);
    int next = page != NULL ? raw_next(port, raw_pending(port, page)) : -1;

    if (next < 0) {
        return false;
    }
    *priority = raw_priority(port, (uint32_t)next);
    return true;
}

/* hw_port_tx() while the frames of a priority are dropped. */
static unsigned int tx_some_lost(struct hw_port *port,
                                 const struct frame_tx *burst,
                                 unsigned int count)
{
    unsigned int n;

    for (n = 0; n < count; n++) {
        if (port_is_lost(port, burst[n].priority)) {
            port_count(port, PORT_COUNT_TX_DROPPED_TIMEOUT, 1);
        } else if (is_paused(port, burst[n].priority) ||
                   emit_frames(port, &burst[n], 1) == 0) {
            refuse_frames(port, &burst[n]);
            break;
        } else {
            port_count(port, PORT_COUNT_TX_RNIC, 1);
        }
    }
    return n;
}

unsigned int hw_port_tx(void *ctx, const struct frame_tx *burst,
                        unsigned int count)
{
    struct hw_port *port = ctx;
    unsigned int offered = count, sent;
    uint8_t priority;

    if (count == 0) {
        return 0;
    }
    if (!port->link_up) {
        port_count(port, PORT_COUNT_TX_DROPPED_LINK, count);
        return count;
    }
    if (!FIELD_GET(port->ctrl, PORT_CTRL, TX_ENABLE) ||
        (port->link_blocked && !port->block_expired)) {
        return refuse_frames(port, burst);
    }
    if (port->link_blocked || port->pause_expired != 0) {
        return tx_some_lost(port, burst, count);
    }
    if (port->held != 0) {
        offered = before_paused(port, burst, count);
        if (offered == 0) {
            return refuse_frames(port, burst);
        }
    }
    if (port->raw_waiting && raw_waits(port, &priority) &&
        priority >= (burst[0].priority & 7)) {
        /*
         * The port refused the RNIC before; the run function serves it in turn.
         */
        port->config.env.defer(port->config.env.ctx);
        if (priority > (burst[0].priority & 7)) {
            return refuse_frames(port, burst);
        }
        offered = MIN(offered, (unsigned int)RNIC_QUANTUM);
    }
    sent = emit_frames(port, burst, offered);
    port_count(port, PORT_COUNT_TX_RNIC, sent);
    if (sent < count) {
        refuse_frames(port, &burst[sent]);
    }
    return sent;
}

void hw_port_link_ready(struct hw_port *port)
{
    port->link_blocked = 0;
    port_tx_serve(port);
}
