/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports of the switch, and what their owner asks of them: see switch.h. */
#include "net/switch/switch.h"

#include <string.h>

#include "net/switch/switch_state.h"

enum { MEMORY_ALIGN = 4096, DEFAULT_AGEING_S = 300 };

const char *const switch_counter_name[SWITCH_COUNTERS] = {
    [SWITCH_RX_FRAMES] = "rx_frames",
    [SWITCH_RX_BYTES] = "rx_bytes",
    [SWITCH_RX_LOST] = "rx_lost",
    [SWITCH_RX_SHORT] = "rx_short",
    [SWITCH_RX_CUT] = "rx_cut",
    [SWITCH_RX_LINK_DOWN] = "rx_link_down",
    [SWITCH_RX_BAD_SOURCE] = "rx_bad_source",
    [SWITCH_RX_BAD_VLAN] = "rx_bad_vlan",
    [SWITCH_RX_LINK_LOCAL] = "rx_link_local",
    [SWITCH_RX_NO_OUTPUT] = "rx_no_output",
    [SWITCH_RX_PAUSES] = "rx_pauses",
    [SWITCH_RX_OFFLOADED] = "rx_offloaded",
    [SWITCH_TX_FRAMES] = "tx_frames",
    [SWITCH_TX_BYTES] = "tx_bytes",
    [SWITCH_TX_LOST] = "tx_lost",
    [SWITCH_TX_FULL] = "tx_full",
    [SWITCH_TX_STALLED] = "tx_stalled",
    [SWITCH_TX_UNPLUGGED] = "tx_unplugged",
    [SWITCH_TX_LONG] = "tx_long",
    [SWITCH_TX_REFUSED] = "tx_refused",
};

/* ---- Memory: the context, then the buffers of each port. */

static size_t memory_round_up(size_t bytes)
{
    return (bytes + MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
}

static uint32_t queue_frames(uint32_t queue_bytes)
{
    uint32_t frames = 1;

    while (frames < queue_bytes / TX_LANE_BYTES_PER_FRAME) {
        frames *= 2;
    }
    return frames;
}

static size_t port_bytes(uint32_t queue_bytes)
{
    return RX_LANE_BYTES +
           memory_round_up(RX_LANE_FRAMES * sizeof(struct rx_frame)) +
           memory_round_up(queue_bytes) +
           memory_round_up(queue_frames(queue_bytes) * sizeof(struct tx_frame));
}

size_t switch_bytes(const struct switch_config *config)
{
    size_t bytes = memory_round_up(sizeof(struct switch_core));

    for (uint8_t i = 0; i < config->port_count; i++) {
        bytes += port_bytes(config->queue_bytes[i]);
    }
    return bytes;
}

/* Take some of the memory that the owner provided. */
static void *memory_take(uint8_t **memory, size_t bytes)
{
    void *taken = *memory;

    *memory += memory_round_up(bytes);
    return taken;
}

/* Give the two directions different pseudo-random sequences. */
static void port_seed(struct switch_port *port)
{
    shaper_seed(&port->shaper[SWITCH_IN], 2 * port->config.seed);
    shaper_seed(&port->shaper[SWITCH_OUT], 2 * port->config.seed + 1);
}

static void port_init(struct switch_port *port, uint8_t **memory,
                      uint32_t queue_bytes, uint64_t seed)
{
    port->rx.buf = memory_take(memory, RX_LANE_BYTES);
    port->rx.frames =
        memory_take(memory, RX_LANE_FRAMES * sizeof(struct rx_frame));
    port->tx.size = queue_bytes;
    port->tx.frame_room = queue_frames(queue_bytes);
    port->tx.buf = memory_take(memory, queue_bytes);
    port->tx.frames =
        memory_take(memory, port->tx.frame_room * sizeof(struct tx_frame));
    port->config.link_up = true;
    port->config.seed = seed;
    port_seed(port);
}

struct switch_core *switch_init(void *memory,
                                const struct switch_config *config)
{
    uint8_t *rest = memory;
    struct switch_core *core = memory_take(&rest, sizeof(*core));

    ASSERT(config->port_count >= 1 && config->port_count <= SWITCH_PORTS);
    core->config = *config;
    core->settings.ageing_s = DEFAULT_AGEING_S;
    core->fdb.ageing_s = DEFAULT_AGEING_S;
    core->fdb.hash_key = config->random_seed;
    for (uint8_t i = 0; i < config->port_count; i++) {
        ASSERT(config->queue_bytes[i] >= SWITCH_QUEUE_MIN &&
               config->queue_bytes[i] <= SWITCH_QUEUE_MAX);
        port_init(&core->ports[i], &rest, config->queue_bytes[i], i);
    }
    return core;
}

/* ---- Settings */

void switch_set(struct switch_core *core,
                const struct switch_settings *settings)
{
    core->settings = *settings;
    core->fdb.ageing_s = settings->ageing_s;
}

struct switch_settings switch_settings(const struct switch_core *core)
{
    return core->settings;
}

static struct switch_port *port_of(struct switch_core *core, uint8_t number)
{
    ASSERT(number < core->config.port_count);
    return &core->ports[number];
}

static const struct switch_port *const_port_of(const struct switch_core *core,
                                               uint8_t number)
{
    ASSERT(number < core->config.port_count);
    return &core->ports[number];
}

/*
 * After a change of the connection or the link: update whether frames pass
 * through the port.  If they do not, drop the frames queued for it, and forget
 * the addresses behind it.
 */
static void port_update_active(struct switch_core *core, uint8_t number)
{
    struct switch_port *port = &core->ports[number];

    if (port->connected && port->config.link_up) {
        core->active |= port_bit(number);
        return;
    }
    core->active &= ~port_bit(number);
    port->counters[SWITCH_TX_UNPLUGGED] +=
        tx_lane_drop(&port->tx, port->connected);
    if (port->tx.count == 0) {
        core->tx &= ~port_bit(number);
    }
    port->stalled = false;
    shaper_clear(&port->shaper[SWITCH_OUT]);
    switch_cancel_output(core, number);
    fdb_forget(&core->fdb, number);
}

/* Drop the received frames that were not passed on: the cable is unplugged. */
static void port_drop_received(struct switch_core *core, uint8_t number)
{
    struct switch_port *port = &core->ports[number];
    const struct rx_frame *frame;
    const uint8_t *data;
    uint32_t len;

    do {
        while ((frame = rx_lane_head(&port->rx, &data, &len)) != NULL) {
            port->counters[SWITCH_RX_LINK_DOWN] += !frame->lost;
            switch_pop_input(core, number);
        }
        /* Frames that waited for room in the ring are lost, too: while the
         * link is down, they have no time of arrival. */
        switch_parse(core, number, 0);
    } while (port->rx.count != 0);
    shaper_clear(&port->shaper[SWITCH_IN]);
}

void switch_port_set(struct switch_core *core, uint8_t number,
                     const struct switch_port_config *config)
{
    struct switch_port *port = port_of(core, number);
    struct switch_port_config before = port->config;

    port->config = *config;
    for (int i = 0; i < SWITCH_DIRECTIONS; i++) {
        port->shaper[i].config = config->cable[i];
    }
    if (config->full == SWITCH_FULL_DROP || config->stall_ns == 0) {
        port->stalled = false;
    }
    switch_wake_inputs(core, number);
    if (!vlan_is_same(&before.vlan, &config->vlan)) {
        fdb_forget(&core->fdb, number);
    }
    if (before.link_up && !config->link_up) {
        port_drop_received(core, number);
    }
    if (before.link_up != config->link_up) {
        port_update_active(core, number);
    }
}

void switch_port_reseed(struct switch_core *core, uint8_t number)
{
    port_seed(port_of(core, number));
}

const struct switch_port_config *switch_port(const struct switch_core *core,
                                             uint8_t number)
{
    return &const_port_of(core, number)->config;
}

void switch_port_capture(struct switch_core *core, uint8_t number,
                         bool captures)
{
    port_of(core, number)->captures = captures;
}

/* ---- Connection */

void switch_port_connect(struct switch_core *core, uint8_t number)
{
    struct switch_port *port = port_of(core, number);

    ASSERT(!port->connected);
    port->connected = true;
    port->broken = false;
    port_update_active(core, number);
}

void switch_port_disconnect(struct switch_core *core, uint8_t number)
{
    struct switch_port *port = port_of(core, number);

    ASSERT(port->connected);
    port->connected = false;
    port->counters[SWITCH_RX_CUT] += rx_lane_cut(&port->rx) != 0;
    port_update_active(core, number);
}

/* ---- Bytes in */

uint32_t switch_rx_room(struct switch_core *core, uint8_t number, uint8_t **at)
{
    struct switch_port *port = port_of(core, number);

    return port->broken ? 0 : rx_lane_room(&port->rx, at);
}

bool switch_rx_commit(struct switch_core *core, uint8_t number, uint32_t len,
                      uint64_t now_ns)
{
    struct switch_port *port = port_of(core, number);

    ASSERT(len <= RX_LANE_BYTES - port->rx.tail);
    port->rx.tail += len;
    switch_parse(core, number, now_ns);
    return !port->broken;
}

/* ---- Bytes out */

uint64_t switch_tx_ports(const struct switch_core *core)
{
    uint64_t ports = 0;

    for (uint64_t left = core->tx; left != 0;) {
        uint8_t number = port_take_lowest(&left);

        if (core->ports[number].tx.ready_count != 0) {
            ports |= port_bit(number);
        }
    }
    return ports;
}

size_t switch_tx_bytes(const struct switch_core *core, uint8_t number,
                       struct tx_piece piece[2])
{
    return tx_lane_bytes(&const_port_of(core, number)->tx, piece);
}

uint32_t switch_tx_frames(const struct switch_core *core, uint8_t number)
{
    return const_port_of(core, number)->tx.ready_count;
}

uint32_t switch_tx_frame(const struct switch_core *core, uint8_t number,
                         uint32_t nth, struct tx_piece piece[2])
{
    return tx_lane_frame(&const_port_of(core, number)->tx, nth, piece);
}

/* The device takes from its queue: inputs that wait for room go on. */
static void port_progresses(struct switch_core *core, uint8_t number)
{
    struct switch_port *port = &core->ports[number];

    port->stalled = false;
    if (port->tx.count == 0) {
        core->tx &= ~port_bit(number);
    }
    switch_wake_inputs(core, number);
}

void switch_tx_done(struct switch_core *core, uint8_t number, size_t len)
{
    struct switch_port *port = port_of(core, number);
    struct tx_piece pieces[2];

    while (len != 0 && tx_lane_advance(&port->tx, &len)) {
        port->counters[SWITCH_TX_FRAMES]++;
        port->counters[SWITCH_TX_BYTES] += tx_lane_frame(&port->tx, 0, pieces);
        if (port->captures) {
            core->config.capture(core->config.opaque, number, pieces);
        }
        tx_lane_pop(&port->tx);
    }
    port_progresses(core, number);
}

void switch_tx_refuse(struct switch_core *core, uint8_t number,
                      enum switch_counter why)
{
    struct switch_port *port = port_of(core, number);

    port->counters[why]++;
    tx_lane_pop(&port->tx);
    port_progresses(core, number);
}

/* ---- Observation */

void switch_count(struct switch_core *core, uint8_t number,
                  enum switch_counter counter)
{
    port_of(core, number)->counters[counter]++;
}

void switch_port_reset_counters(struct switch_core *core, uint8_t number)
{
    struct switch_port *port = port_of(core, number);

    memset(port->counters, 0, sizeof(port->counters));
}

void switch_port_status(const struct switch_core *core, uint8_t number,
                        struct switch_port_status *status)
{
    const struct switch_port *port = const_port_of(core, number);

    *status = (struct switch_port_status){
        .connected = port->connected,
        .paused = port->paused,
        .queued_bytes = port->tx.used - port->tx.sent,
        .queued_frames = port->tx.count,
    };
    memcpy(status->counters, port->counters, sizeof(port->counters));
}

void switch_forget(struct switch_core *core, uint8_t number)
{
    fdb_forget(&core->fdb, number);
}

const struct fdb *switch_fdb(const struct switch_core *core)
{
    return &core->fdb;
}
