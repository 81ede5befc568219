/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a frame through the switch: it is parsed when its bytes have come,
 * waits until it has crossed the cable, is given to its outputs, and waits for
 * those that are full.
 */
#include <string.h>

#include "net/switch/switch_state.h"

/*
 * Bytes that one input passes on before it is the next input's turn.  If each
 * turn were one frame, inputs with short frames would pass on fewer bytes than
 * inputs with long frames.
 */
enum { FORWARD_QUANTUM = 16 * 1024 };

/* 01-80-C2-00-00-00 to -0F (802.1Q table 8-1); -01 is for MAC control. */
static const uint8_t link_local_prefix[5] = {0x01, 0x80, 0xc2, 0x00, 0x00};
enum { LINK_LOCAL_LAST = 0x0f, LINK_LOCAL_MAC_CONTROL = 0x01 };

static bool frame_is_link_local(const struct eth *eth)
{
    return memcmp(eth->dst.bytes, link_local_prefix,
                  sizeof(link_local_prefix)) == 0 &&
           eth->dst.bytes[5] <= LINK_LOCAL_LAST;
}

static bool switch_may_pass(const struct switch_core *core,
                            const struct eth *eth)
{
    return !frame_is_link_local(eth) ||
           (core->settings.forwards_link_local &&
            eth->dst.bytes[5] != LINK_LOCAL_MAC_CONTROL);
}

/* ---- Parsing */

/* Count a received frame; find out when it arrives and whether it is lost. */
static struct rx_frame frame_enters(struct switch_core *core, uint8_t number,
                                    const uint8_t *data, uint32_t len,
                                    uint64_t now_ns)
{
    struct switch_port *port = &core->ports[number];
    struct shaper *cable = &port->shaper[SWITCH_IN];
    struct rx_frame frame = {.lost = true};

    port->counters[SWITCH_RX_FRAMES]++;
    port->counters[SWITCH_RX_BYTES] += len;
    if (port->captures) {
        const struct tx_piece pieces[2] = {{data, len}, {data, 0}};

        core->config.capture(core->config.opaque, number, pieces);
    }
    if (len < ETH_LEN) {
        port->counters[SWITCH_RX_SHORT]++;
    } else if (!port->config.link_up) {
        port->counters[SWITCH_RX_LINK_DOWN]++;
    } else {
        frame.arrival_ns = shaper_arrival_ns(cable, len, now_ns);
        frame.lost = shaper_loses_frame(cable);
        port->counters[SWITCH_RX_LOST] += frame.lost;
    }
    return frame;
}

void switch_parse(struct switch_core *core, uint8_t number, uint64_t now_ns)
{
    struct switch_port *port = &core->ports[number];
    enum rx_lane_next next;
    const uint8_t *data;
    uint32_t len;

    while ((next = rx_lane_next(&port->rx, &data, &len)) == RX_LANE_FRAME) {
        rx_lane_push(&port->rx, len,
                     frame_enters(core, number, data, len, now_ns));
    }
    if (next == RX_LANE_BROKEN) {
        port->broken = true;
        (void)rx_lane_cut(&port->rx);
    }
    if (port->rx.count != 0 && !port->paused) {
        core->runnable |= port_bit(number);
    }
}

/* ---- Decision */

static uint64_t switch_members(const struct switch_core *core, uint16_t vid)
{
    uint64_t members = 0;

    for (uint64_t left = core->active; left != 0;) {
        uint8_t number = port_take_lowest(&left);

        if (vlan_has_member(&core->ports[number].config.vlan, vid)) {
            members |= port_bit(number);
        }
    }
    return members;
}

static uint64_t switch_choose_outputs(struct switch_core *core, uint8_t input,
                                      uint64_t now_ns)
{
    const struct switch_port *in = &core->ports[input];
    uint32_t now_s = switch_fdb_seconds(now_ns);
    uint64_t candidates = core->active & ~port_bit(input);
    uint8_t known = FDB_NO_PORT;

    if (!mac_addr_is_multicast(&in->eth.dst)) {
        known = fdb_port(&core->fdb, &in->eth.dst, in->vid, now_s);
    }
    if (known == FDB_NO_PORT) {
        return candidates & switch_members(core, in->vid);
    }
    return vlan_has_member(&core->ports[known].config.vlan, in->vid)
               ? candidates & port_bit(known)
               : 0;
}

/*
 * Choose the outputs of an input's oldest frame.
 *
 * @return the counter of frames dropped for this reason, or SWITCH_COUNTERS if
 *         the frame is passed on
 */
static enum switch_counter switch_judge_frame(struct switch_core *core,
                                              uint8_t input,
                                              const uint8_t *data, uint32_t len,
                                              uint64_t now_ns)
{
    struct switch_port *in = &core->ports[input];

    if (!eth_parse(&in->eth, data, len)) {
        return SWITCH_RX_SHORT;
    }
    if (mac_addr_is_multicast(&in->eth.src)) {
        return SWITCH_RX_BAD_SOURCE;
    }
    in->vid = vlan_of_frame(&in->config.vlan, &in->eth);
    if (in->vid == VLAN_NONE) {
        return SWITCH_RX_BAD_VLAN;
    }
    if (!switch_may_pass(core, &in->eth)) {
        return SWITCH_RX_LINK_LOCAL;
    }
    /* The port may have been unplugged after it sent the frame. */
    if (core->active & port_bit(input)) {
        fdb_learn(&core->fdb, &in->eth.src, in->vid, input,
                  switch_fdb_seconds(now_ns));
    }
    in->outputs = switch_choose_outputs(core, input, now_ns);
    return in->outputs == 0 ? SWITCH_RX_NO_OUTPUT : SWITCH_COUNTERS;
}

static void switch_decide(struct switch_core *core, uint8_t input,
                          const struct rx_frame *frame, const uint8_t *data,
                          uint32_t len, uint64_t now_ns)
{
    struct switch_port *in = &core->ports[input];

    in->decided = true;
    in->outputs = 0;
    if (!frame->lost) {
        enum switch_counter why =
            switch_judge_frame(core, input, data, len, now_ns);

        if (why != SWITCH_COUNTERS) {
            in->counters[why]++;
        }
    }
}

/* ---- Output */

/*
 * Decide what happens to a frame for which the queue of `out` has no room.
 *
 * @return true when it is dropped; false when its input waits
 */
static bool output_drops(struct switch_port *out)
{
    if (out->config.full == SWITCH_FULL_DROP) {
        out->counters[SWITCH_TX_FULL]++;
        return true;
    }
    if (out->stalled) {
        out->counters[SWITCH_TX_STALLED]++;
        return true;
    }
    return false;
}

/* @return false when the frame has to wait for room in the output's queue */
static bool output_takes_frame(struct switch_core *core, uint8_t input,
                               uint8_t output, const uint8_t *data,
                               uint32_t len, uint64_t now_ns)
{
    const struct switch_port *in = &core->ports[input];
    struct switch_port *out = &core->ports[output];
    uint8_t header[ETH_TAGGED_LEN];
    uint32_t header_len = 0, skip = 0;
    struct eth eth;
    uint64_t leaves_ns;

    if (vlan_rewrites(&in->config.vlan, &out->config.vlan, in->vid, &in->eth,
                      &eth)) {
        eth_emit(&eth, header);
        header_len = (uint32_t)eth_header_len(&eth);
        skip = (uint32_t)eth_header_len(&in->eth);
    }
    len += header_len - skip;
    if (len > SWITCH_FRAME_MAX) {
        out->counters[SWITCH_TX_LONG]++;
        return true;
    }
    if (!tx_lane_has_room(&out->tx, len)) {
        return output_drops(out);
    }
    leaves_ns = shaper_arrival_ns(&out->shaper[SWITCH_OUT], len, now_ns);
    if (shaper_loses_frame(&out->shaper[SWITCH_OUT])) {
        out->counters[SWITCH_TX_LOST]++;
        return true;
    }
    tx_lane_push(&out->tx, header, header_len, data + skip, len - header_len,
                 leaves_ns);
    core->tx |= port_bit(output);
    return true;
}

static void input_waits_for(struct switch_core *core, uint8_t input,
                            uint8_t output, uint64_t now_ns)
{
    struct switch_port *out = &core->ports[output];

    if (out->waiting == 0) {
        out->full_since_ns = now_ns;
    }
    out->waiting |= port_bit(input);
    core->full |= port_bit(output);
}

/*
 * Give the oldest frame of an input to its outputs.
 *
 * @return true when the frame does not have to wait for any output
 */
static bool switch_give_frame(struct switch_core *core, uint8_t input,
                              const uint8_t *data, uint32_t len,
                              uint64_t now_ns)
{
    struct switch_port *in = &core->ports[input];

    for (uint64_t left = in->outputs; left != 0;) {
        uint8_t output = port_take_lowest(&left);

        if (output_takes_frame(core, input, output, data, len, now_ns)) {
            in->outputs &= ~port_bit(output);
        } else {
            input_waits_for(core, input, output, now_ns);
        }
    }
    return in->outputs == 0;
}

void switch_pop_input(struct switch_core *core, uint8_t input)
{
    struct switch_port *in = &core->ports[input];

    rx_lane_pop(&in->rx);
    in->decided = false;
    in->outputs = 0;
    in->paused = false;
}

/*
 * Pass on the oldest frame of an input.
 *
 * @return its bytes, with its length field; 0 if no frame can be passed on now
 */
static uint32_t switch_pass_frame(struct switch_core *core, uint8_t input,
                                  uint64_t now_ns)
{
    struct switch_port *in = &core->ports[input];
    const struct rx_frame *frame;
    const uint8_t *data;
    uint32_t len;

    if (in->rx.count == 0) {
        switch_parse(core, input, now_ns);
    }
    frame = rx_lane_head(&in->rx, &data, &len);
    if (frame == NULL) {
        return 0;
    }
    if (frame->arrival_ns > now_ns) {
        core->timed |= port_bit(input);
        return 0;
    }
    if (!in->decided) {
        switch_decide(core, input, frame, data, len, now_ns);
    }
    if (!switch_give_frame(core, input, data, len, now_ns)) {
        in->counters[SWITCH_RX_PAUSES] += !in->paused;
        in->paused = true;
        return 0;
    }
    switch_pop_input(core, input);
    return SWITCH_PREFIX + len;
}

/* Pass frames of one input on until it has used its turn or has to wait. */
static void switch_serve_input(struct switch_core *core, uint8_t input,
                               uint64_t now_ns)
{
    uint32_t passed = 0;

    while (passed < FORWARD_QUANTUM) {
        uint32_t bytes = switch_pass_frame(core, input, now_ns);

        if (bytes == 0) {
            core->runnable &= ~port_bit(input);
            return;
        }
        passed += bytes;
    }
}

/* ---- Time */

void switch_wake_inputs(struct switch_core *core, uint8_t output)
{
    core->runnable |= core->ports[output].waiting;
    core->ports[output].waiting = 0;
    core->full &= ~port_bit(output);
}

void switch_cancel_output(struct switch_core *core, uint8_t output)
{
    for (uint8_t i = 0; i < core->config.port_count; i++) {
        core->ports[i].outputs &= ~port_bit(output);
    }
    switch_wake_inputs(core, output);
}

static uint64_t switch_look_at_inputs(struct switch_core *core, uint64_t now_ns)
{
    uint64_t deadline_ns = UINT64_MAX;

    for (uint64_t left = core->timed; left != 0;) {
        uint8_t number = port_take_lowest(&left);
        const uint8_t *data;
        uint32_t len;
        const struct rx_frame *frame =
            rx_lane_head(&core->ports[number].rx, &data, &len);

        if (frame != NULL && frame->arrival_ns > now_ns) {
            deadline_ns = MIN(deadline_ns, frame->arrival_ns);
        } else {
            core->timed &= ~port_bit(number);
            core->runnable |= port_bit(number);
        }
    }
    return deadline_ns;
}

/*
 * Mark as stalled the ports whose queue was full and whose device took nothing
 * for stall_ns.  They drop frames that do not fit until the device goes on.
 *
 * @return when the next port has to be marked
 */
static uint64_t switch_look_at_stalls(struct switch_core *core, uint64_t now_ns)
{
    uint64_t deadline_ns = UINT64_MAX;

    for (uint64_t left = core->full; left != 0;) {
        uint8_t number = port_take_lowest(&left);
        struct switch_port *port = &core->ports[number];
        uint64_t until_ns;

        if (port->config.stall_ns == 0) {
            continue;
        }
        /* The device cannot take the first frame before it leaves the cable. */
        until_ns = MAX(port->full_since_ns, tx_lane_head_ns(&port->tx)) +
                   port->config.stall_ns;
        if (until_ns > now_ns) {
            deadline_ns = MIN(deadline_ns, until_ns);
        } else {
            port->stalled = true;
            switch_wake_inputs(core, number);
        }
    }
    return deadline_ns;
}

static uint64_t switch_look_at_outputs(struct switch_core *core,
                                       uint64_t now_ns)
{
    uint64_t deadline_ns = UINT64_MAX;

    for (uint64_t left = core->tx; left != 0;) {
        struct tx_lane *lane = &core->ports[port_take_lowest(&left)].tx;

        tx_lane_release(lane, now_ns);
        deadline_ns = MIN(deadline_ns, tx_lane_deadline_ns(lane));
    }
    return deadline_ns;
}

uint64_t switch_run(struct switch_core *core, uint64_t now_ns)
{
    uint64_t inputs_ns, stalls_ns, outputs_ns;

    (void)switch_look_at_inputs(core, now_ns);
    (void)switch_look_at_stalls(core, now_ns);
    while (core->runnable != 0) {
        uint64_t before = core->runnable & (port_bit(core->turn) - 1);
        uint64_t from_turn = core->runnable & ~before;

        /*
         * Each runnable input has one turn: those from `turn` on, then those
         * before it.  The first input may use up the room in an output, so
         * another input is the first in the next round.
         */
        core->turn =
            (uint8_t)(1 + __builtin_ctzll(from_turn != 0 ? from_turn : before));
        core->turn = (uint8_t)(core->turn % core->config.port_count);
        while (from_turn != 0) {
            switch_serve_input(core, port_take_lowest(&from_turn), now_ns);
        }
        while (before != 0) {
            switch_serve_input(core, port_take_lowest(&before), now_ns);
        }
    }
    outputs_ns = switch_look_at_outputs(core, now_ns);
    inputs_ns = switch_look_at_inputs(core, now_ns);
    stalls_ns = switch_look_at_stalls(core, now_ns);
    return MIN(MIN(inputs_ns, stalls_ns), outputs_ns);
}

bool switch_has_work(const struct switch_core *core)
{
    return core->runnable != 0;
}
