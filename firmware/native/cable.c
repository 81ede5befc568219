/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/cable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/native/memory.h"
#include "firmware/native/world.h"
#include "lib/bytes.h"

enum {
    PCAP_HEADER_LEN = 24,
    PCAP_RECORD_LEN = 16,
    PCAP_LINKTYPE_ETHERNET = 1,
    BURST = 32,
    OVERHEAD = 24, /* preamble 8, FCS 4, gap 12: IEEE 802.3, 4.4.2 */
    SHORTEST = 60, /* bytes of a frame without FCS */
    PS_PER_NS = 1000,
};
#define PCAP_MAGIC_NS 0xa1b23c4du

void cable_init(struct cable *cable)
{
    *cable = (struct cable){0};
    for (unsigned int i = 0; i < 2; i++) {
        cable->lane[i] = (struct cable_lane){
            .cable = cable,
            .from = i,
            .slots = native_memory_get(CABLE_SLOTS * sizeof(struct cable_slot)),
        };
    }
}

void cable_end(struct cable *cable)
{
    native_memory_free(cable->lane[0].slots);
    native_memory_free(cable->lane[1].slots);
    free(cable->capture);
}

static void capture_frame(struct cable *cable, const uint8_t *data,
                          uint32_t len_bytes)
{
    uint64_t now_ns = native_world()->now_ns;
    size_t need = cable->capture_len + PCAP_RECORD_LEN + len_bytes;
    uint8_t *at;

    if (need > cable->capture_room) {
        cable->capture_room = 2 * need + 65536;
        cable->capture = realloc(cable->capture, cable->capture_room);
        ASSERT(cable->capture != NULL);
    }
    at = cable->capture + cable->capture_len;
    put_le32(at, (uint32_t)(now_ns / 1000000000));
    put_le32(at + 4, (uint32_t)(now_ns % 1000000000));
    put_le32(at + 8, len_bytes);
    put_le32(at + 12, len_bytes);
    memcpy(at + PCAP_RECORD_LEN, data, len_bytes);
    cable->capture_len = need;
}

bool cable_write_pcap(const struct cable *cable, const char *path)
{
    uint8_t header[PCAP_HEADER_LEN] = {0};
    FILE *file = fopen(path, "wb");
    bool is_ok;

    if (file == NULL) {
        return false;
    }
    put_le32(header, PCAP_MAGIC_NS);
    put_le16(header + 4, 2);
    put_le16(header + 6, 4);
    put_le32(header + 16, FRAME_LEN_MAX);
    put_le32(header + 20, PCAP_LINKTYPE_ETHERNET);
    is_ok = fwrite(header, sizeof(header), 1, file) == 1;
    if (cable->capture_len != 0) {
        is_ok &= fwrite(cable->capture, cable->capture_len, 1, file) == 1;
    }
    return fclose(file) == 0 && is_ok;
}

void cable_set_time(struct cable *cable, const struct cable_time *time)
{
    for (unsigned int i = 0; i < 2; i++) {
        ASSERT(cable->lane[i].put == cable->lane[i].get);
        cable->lane[i].free_ps = 0;
    }
    cable->time = *time;
}

static struct cable_slot *slot_at(struct cable_lane *lane, uint32_t count)
{
    return &lane->slots[count % CABLE_SLOTS];
}

/* Frames that are under way to a port do not reach another one in its place,
 * and a port that is unplugged does not end the frames that it sends. */
static void lose_frames(struct cable_lane *to, struct cable_lane *from,
                        bool was_plugged)
{
    uint32_t kept = from->get;

    to->get = to->put;
    if (!was_plugged) {
        return;
    }
    /* Look at all: CABLE_LATER puts a frame behind one that is sent later. */
    for (uint32_t i = from->get; i != from->put; i++) {
        struct cable_slot *slot = slot_at(from, i);

        if (slot->sent_ns <= native_world()->now_ns) {
            if (i != kept) {
                *slot_at(from, kept) = *slot;
            }
            kept++;
        }
    }
    from->put = kept;
    from->free_ps = MIN(from->free_ps, native_world()->now_ns * PS_PER_NS);
    from->was_full = false;
}

void cable_plug_in(struct cable *cable, unsigned int end,
                   const struct link_port *plug)
{
    lose_frames(&cable->lane[1 - end], &cable->lane[end],
                cable->plug[end].receive != NULL);
    cable->plug[end] = *plug;
}

/* The time for which `bytes` occupy the cable. */
static uint64_t serialisation_ps(const struct cable *cable, uint64_t bytes)
{
    return cable->time.speed_mbps == 0
               ? 0
               : bytes * 8 * 1000000 / cable->time.speed_mbps;
}

/* When the sender takes frames again; in the past: now. */
static uint64_t room_ns(const struct cable_lane *lane)
{
    uint64_t fifo_ps =
        serialisation_ps(lane->cable, lane->cable->time.fifo_bytes);

    return lane->free_ps <= fifo_ps
               ? 0
               : (lane->free_ps - fifo_ps + PS_PER_NS - 1) / PS_PER_NS;
}

static bool has_room(const struct cable_lane *lane)
{
    /* Keep one slot free, because a frame may be doubled. */
    return lane->put - lane->get < CABLE_SLOTS - 1 &&
           room_ns(lane) <= native_world()->now_ns;
}

/* Send a frame after those before it. @return when it arrives in memory */
static uint64_t pass_time(struct cable_lane *lane, uint32_t len_bytes)
{
    const struct cable_dma *from = &lane->cable->dma[lane->from];
    const struct cable_dma *to = &lane->cable->dma[1 - lane->from];
    uint64_t sending_ps =
        serialisation_ps(lane->cable, MAX(len_bytes, SHORTEST) + OVERHEAD);
    uint64_t ready_ps = native_world()->now_ns * PS_PER_NS, arrival_ps;

    if (from->time != NULL) {
        ready_ps = dma_time_pass(from->time, from->out, ready_ps, len_bytes);
    }
    lane->free_ps = MAX(lane->free_ps, ready_ps) + sending_ps;
    lane->busy_ps += sending_ps;
    arrival_ps = lane->free_ps + lane->cable->time.delay_ns * PS_PER_NS;
    if (to->time != NULL) {
        arrival_ps = dma_time_pass(to->time, to->in, arrival_ps, len_bytes);
    }
    return (arrival_ps + PS_PER_NS - 1) / PS_PER_NS;
}

static void gather_frame(struct cable_slot *slot, const struct frame_tx *frame)
{
    slot->len_bytes = frame_tx_copy(slot->data, frame);
    slot->flags = frame->flags;
    slot->is_later = false;
}

/* Decide what happens to the frame that was put into its slot last. */
static void judge_frame(struct cable_lane *lane, struct cable_slot *slot)
{
    struct cable *cable = lane->cable;
    enum cable_verdict verdict = CABLE_PASS;
    uint64_t number = cable->frames++;

    if (cable->filter != NULL) {
        verdict = cable->filter(cable->filter_ctx, lane->from, number,
                                slot->data, &slot->len_bytes);
    }
    if (verdict == CABLE_DROP || cable->is_cut) {
        return;
    }
    slot->is_later = verdict == CABLE_LATER;
    lane->put++;
    if (lane->put - lane->get >= 2) { /* swap with the frame that waited */
        struct cable_slot *before = slot_at(lane, lane->put - 2);

        if (before->is_later && !slot->is_later) {
            struct cable_slot swap = *before;

            *before = *slot;
            *slot = swap;
            slot->is_later = false;
        }
    }
    if (verdict == CABLE_TWICE) {
        *slot_at(lane, lane->put) = *slot;
        lane->put++;
    }
}

static unsigned int send_burst(void *ctx, const struct frame_tx *burst,
                               unsigned int count)
{
    struct cable_lane *lane = ctx;

    for (unsigned int i = 0; i < count; i++) {
        struct cable_slot *slot = slot_at(lane, lane->put);

        if (!has_room(lane)) {
            lane->was_full = true;
            return i;
        }
        gather_frame(slot, &burst[i]);
        slot->arrival_ns = pass_time(lane, slot->len_bytes);
        slot->sent_ns = (lane->free_ps + PS_PER_NS - 1) / PS_PER_NS;
        if (lane->cable->is_capturing) {
            capture_frame(lane->cable, slot->data, slot->len_bytes);
        }
        judge_frame(lane, slot);
    }
    return count;
}

struct frame_sink cable_sink(struct cable *cable, unsigned int end)
{
    return (struct frame_sink){.ctx = &cable->lane[end], .send = send_burst};
}

/* Tell a sender that had to wait. @return whether there was one */
static bool offer_room(struct cable_lane *lane)
{
    const struct link_port *from = &lane->cable->plug[lane->from];

    if (!lane->was_full || from->room == NULL || !has_room(lane)) {
        return false;
    }
    lane->was_full = false;
    from->room(from->ctx);
    return true;
}

static bool deliver_frames(struct cable_lane *lane)
{
    const struct link_port *to = &lane->cable->plug[1 - lane->from];
    struct frame_rx burst[BURST];
    unsigned int n = 0;
    uint32_t get = lane->get;

    if (lane->is_held) {
        return false;
    }
    while (lane->get + n != lane->put && n < BURST) {
        struct cable_slot *slot = slot_at(lane, lane->get + n);

        if (slot->arrival_ns > native_world()->now_ns) {
            break;
        }
        if (slot->is_later && lane->put - lane->get == n + 1) {
            /* No frame has followed; the frame waits for one step only. */
            slot->is_later = false;
            if (n == 0) {
                return true;
            }
            break;
        }
        burst[n++] = (struct frame_rx){
            .data = slot->data,
            .len_bytes = slot->len_bytes,
            .flags = slot->flags,
        };
    }
    if (n == 0) {
        return false;
    }
    if (to->receive != NULL) {
        to->receive(to->ctx, burst, n);
    }
    if (lane->get == get) { /* else the receiver has unplugged itself */
        lane->get += n;
    }
    return true;
}

bool cable_step(struct cable *cable)
{
    bool is_busy = false;

    for (unsigned int i = 0; i < 2; i++) {
        is_busy |= deliver_frames(&cable->lane[i]);
        is_busy |= offer_room(&cable->lane[i]);
    }
    return is_busy;
}

uint64_t cable_deadline_ns(const struct cable *cable)
{
    uint64_t first = NATIVE_NO_DEADLINE;

    for (unsigned int i = 0; i < 2; i++) {
        const struct cable_lane *lane = &cable->lane[i];

        if (lane->is_held ||
            cable->time.speed_mbps + cable->time.delay_ns == 0) {
            continue;
        }
        if (lane->put != lane->get) {
            first = MIN(first, lane->slots[lane->get % CABLE_SLOTS].arrival_ns);
        }
        if (lane->was_full && lane->put - lane->get < CABLE_SLOTS - 1) {
            first = MIN(first, room_ns(lane));
        }
    }
    return first;
}

/* ---- As a link; ctx is the lane of the frames that the port sends. */

static void link_plug(void *ctx, const struct link_port *port)
{
    static const struct link_port nothing;
    struct cable_lane *lane = ctx;

    cable_plug_in(lane->cable, lane->from, port != NULL ? port : &nothing);
}

static uint64_t link_silent_until_ns(void *ctx)
{
    const struct cable_lane *lane = ctx;

    return lane->from == 0 ? cable_deadline_ns(lane->cable) : LINK_FOREVER;
}

static bool link_grant(void *ctx, uint64_t now_ns)
{
    struct cable_lane *lane = ctx;

    ASSERT(now_ns == native_world()->now_ns);
    return lane->from == 0 && cable_step(lane->cable);
}

struct link cable_link(struct cable *cable, unsigned int end)
{
    static const struct link_ops ops = {
        .plug = link_plug,
        .send = send_burst,
        .silent_until_ns = link_silent_until_ns,
        .grant = link_grant,
    };

    return (struct link){&cable->lane[end], &ops};
}
