/* SPDX-License-Identifier: BSD-2-Clause */
/* What the ports of a machine are plugged into. */
#include "firmware/native/machine.h"

static unsigned int port_index(const struct machine_slot *slot)
{
    return (unsigned int)(slot - &slot->machine->slots[MACHINE_PORT0]);
}

static unsigned int port_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    const struct machine_slot *slot = ctx;
    const struct link *own = &slot->machine->links[port_index(slot)];

    if (own->ops == NULL) {
        return count; /* nothing is connected: the frames are lost */
    }
    return own->ops->send(own->ctx, burst, count);
}

struct frame_sink machine_port_sink(struct machine_slot *slot)
{
    return (struct frame_sink){.ctx = slot, .send = port_send};
}

static void port_receive(void *ctx, const struct frame_rx *frames,
                         unsigned int count)
{
    struct machine_slot *slot = ctx;

    hw_port_rx(&slot->machine->ports[port_index(slot)], frames, count);
}

static void port_room(void *ctx)
{
    struct machine_slot *slot = ctx;

    hw_port_link_ready(&slot->machine->ports[port_index(slot)]);
}

bool machine_links_step(struct machine *machine)
{
    bool is_busy = false;

    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        const struct link *own = &machine->links[i];

        if (own->ops != NULL) {
            is_busy |= own->ops->grant(own->ctx, machine->node.world->now_ns);
        }
    }
    return is_busy;
}

uint64_t machine_links_deadline_ns(const struct machine *machine)
{
    uint64_t first = LINK_FOREVER;

    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        const struct link *own = &machine->links[i];
        uint64_t until_ns = own->ops != NULL
                                ? own->ops->silent_until_ns(own->ctx)
                                : LINK_FOREVER;

        /* A world with such a link runs in real time, and its owner waits for
         * what the peer sends. */
        if (until_ns != LINK_NO_TIME) {
            first = MIN(first, until_ns);
        }
    }
    return first;
}

void machine_attach(struct machine *machine, unsigned int port,
                    const struct link *to)
{
    struct link *own = &machine->links[port];
    const struct link_port plug = {
        .ctx = &machine->slots[MACHINE_PORT0 + port],
        .receive = port_receive,
        .room = port_room,
    };

    if (own->ops != NULL) {
        own->ops->plug(own->ctx, NULL);
    }
    *own = to != NULL ? *to : (struct link){0};
    if (own->ops != NULL) {
        own->ops->plug(own->ctx, &plug);
    }
    hw_port_set_cable(&machine->ports[port], own->ops != NULL);
    if (own->ops != NULL) {
        /* The link before, or this one before it was unplugged, may have owed
         * the port a word that there is room. */
        hw_port_link_ready(&machine->ports[port]);
    }
}

void machine_count_dma(const struct machine_slot *slot, uint64_t len)
{
    struct machine *machine = slot->machine;

    /* It moves data between memory and flash, or in memory. */
    if (machine->dma != NULL && slot == &machine->slots[MACHINE_NAND]) {
        dma_time_use(machine->dma, machine->node.world->now_ns * 1000,
                     (uint32_t)len);
    }
}

void machine_use_dma(struct machine *machine, struct dma_time *dma,
                     struct cable *cable, unsigned int end)
{
    machine->dma = dma;
    machine->dma_out = machine->dma_in = (struct dma_engine){0};
    cable->dma[end] = (struct cable_dma){
        .time = dma, .out = &machine->dma_out, .in = &machine->dma_in};
}

void machine_plug(struct machine *machine, unsigned int port,
                  struct cable *cable, unsigned int end)
{
    struct link to = {0};

    if (cable != NULL) {
        to = cable_link(cable, end);
    }
    machine_attach(machine, port, cable != NULL ? &to : NULL);
}

/* ---- A sink as a link: its owner passes received frames to the port. */

static void sink_plug(void *ctx, const struct link_port *port)
{
    (void)ctx;
    (void)port;
}

static unsigned int sink_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    const struct frame_sink *sink = ctx;

    return sink->send(sink->ctx, burst, count);
}

static uint64_t sink_silent_until_ns(void *ctx)
{
    (void)ctx;
    return LINK_FOREVER;
}

static bool sink_grant(void *ctx, uint64_t now_ns)
{
    (void)ctx;
    (void)now_ns;
    return false;
}

void machine_link(struct machine *machine, unsigned int port,
                  const struct frame_sink *sink)
{
    static const struct link_ops ops = {
        .plug = sink_plug,
        .send = sink_send,
        .silent_until_ns = sink_silent_until_ns,
        .grant = sink_grant,
    };
    const struct link to = {&machine->sinks[port], &ops};

    if (sink != NULL) {
        machine->sinks[port] = *sink;
    }
    machine_attach(machine, port, sink != NULL ? &to : NULL);
}
