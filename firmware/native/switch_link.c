/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/switch_link.h"

#include <string.h>

#include "firmware/native/memory.h"
#include "firmware/native/world.h"
#include "lib/bytes.h"

static void link_plug(void *ctx, const struct link_port *port)
{
    struct switch_link *own = ctx;

    /* Frames that wait for a port that is unplugged are lost. */
    if (own->is_plugged) {
        switch_port_disconnect(own->all->core, own->number);
    }
    own->is_plugged = port != NULL;
    own->was_full = false;
    own->plug = own->is_plugged ? *port : (struct link_port){0};
    if (own->is_plugged) {
        switch_port_connect(own->all->core, own->number);
    }
}

/* Hand a frame to the switch. @return whether it had room */
static bool send_frame(struct switch_link *own, const struct frame_tx *frame)
{
    uint32_t len = frame_tx_len(frame);
    uint8_t *at;
    bool is_whole;

    /* Unless there is none, the room is enough for any frame of a port. */
    _Static_assert(SWITCH_RX_WORTH >= SWITCH_PREFIX + FRAME_LEN_MAX,
                   "a frame fits");
    if (switch_rx_room(own->all->core, own->number, &at) == 0) {
        return false;
    }
    put_be32(at, len);
    (void)frame_tx_copy(at + SWITCH_PREFIX, frame);
    is_whole = switch_rx_commit(own->all->core, own->number,
                                SWITCH_PREFIX + len, native_world()->now_ns);
    ASSERT(is_whole);
    return true;
}

static unsigned int link_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    struct switch_link *own = ctx;

    own->all->due_ns = native_world()->now_ns;
    for (unsigned int i = 0; i < count; i++) {
        if (!send_frame(own, &burst[i])) {
            own->was_full = true;
            return i;
        }
    }
    return count;
}

static uint64_t link_silent_until_ns(void *ctx)
{
    const struct switch_link *own = ctx;

    return switch_tx_frames(own->all->core, own->number) != 0
               ? native_world()->now_ns
               : own->all->due_ns;
}

/* Deliver the first frame that waits. @return whether there was one */
static bool deliver_frame(struct switch_link *own)
{
    struct switch_core *core = own->all->core;
    uint8_t data[FRAME_LEN_MAX];
    struct tx_piece piece[2];
    struct frame_rx frame = {.data = data};

    if (switch_tx_frames(core, own->number) == 0) {
        return false;
    }
    frame.len_bytes = switch_tx_frame(core, own->number, 0, piece);
    ASSERT(frame.len_bytes <= sizeof(data));
    memcpy(data, piece[0].data, piece[0].len);
    if (piece[1].len != 0) {
        memcpy(data + piece[0].len, piece[1].data, piece[1].len);
    }
    switch_tx_done(core, own->number, SWITCH_PREFIX + frame.len_bytes);
    own->plug.receive(own->plug.ctx, &frame, 1);
    return true;
}

static bool offer_room(struct switch_link *own)
{
    uint8_t *at;

    if (!own->was_full || own->plug.room == NULL ||
        switch_rx_room(own->all->core, own->number, &at) == 0) {
        return false;
    }
    own->was_full = false;
    own->plug.room(own->plug.ctx);
    return true;
}

static bool link_grant(void *ctx, uint64_t now_ns)
{
    struct switch_link *own = ctx;
    bool is_busy = false;

    if (own->all->due_ns <= now_ns || switch_has_work(own->all->core)) {
        own->all->due_ns = switch_run(own->all->core, now_ns);
        is_busy = true;
    }
    while (deliver_frame(own)) {
        /* The switch may pass more frames on now. */
        own->all->due_ns = now_ns;
        is_busy = true;
    }
    return offer_room(own) || is_busy;
}

void switch_links_init(struct switch_links *all, uint8_t count,
                       const struct shaper_config *cable)
{
    struct switch_config config = {.port_count = count};

    ASSERT(count >= 1 && count <= SWITCH_LINKS);
    for (uint8_t i = 0; i < count; i++) {
        config.queue_bytes[i] = SWITCH_QUEUE_DEFAULT;
    }
    *all = (struct switch_links){
        .memory = native_memory_get(switch_bytes(&config)),
        .count = count,
        .due_ns = LINK_FOREVER,
    };
    all->core = switch_init(all->memory, &config);
    for (uint8_t i = 0; i < count; i++) {
        struct switch_port_config port = *switch_port(all->core, i);

        all->links[i] = (struct switch_link){.all = all, .number = i};
        if (cable != NULL) {
            port.cable[SWITCH_IN] = *cable;
            port.cable[SWITCH_OUT] = *cable;
            switch_port_set(all->core, i, &port);
        }
    }
}

void switch_links_end(struct switch_links *all)
{
    native_memory_free(all->memory);
}

struct link switch_link(struct switch_links *all, uint8_t port)
{
    static const struct link_ops ops = {
        .plug = link_plug,
        .send = link_send,
        .silent_until_ns = link_silent_until_ns,
        .grant = link_grant,
    };

    return (struct link){&all->links[port], &ops};
}
