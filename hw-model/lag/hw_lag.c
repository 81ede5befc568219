/* SPDX-License-Identifier: BSD-2-Clause */
/* The link aggregation block: see hw_lag.h. */
#include "hw-model/lag/hw_lag.h"

#include <string.h>

#include "lib/regfields.h"
#include "hw-model/regs/lag.h"
#include "lib/bytes.h"
#include "net/wire/bth.h"
#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/udp.h"

_Static_assert((int)HW_LAG_COUNTERS == (int)LAG_COUNTERS, "see hw_lag.h");

enum {
    LOGICAL = 0, /* the RNIC's port that stands for the aggregate */
    ALL_PORTS = BIT(HW_LAG_PORTS) - 1,
    NO_MEMBER = HW_LAG_PORTS,
};

#define NS_A_MS UINT64_C(1000000)

static enum lag_mode mode_of(const struct hw_lag *lag)
{
    return (enum lag_mode)FIELD_GET(lag->ctrl, LAG_CTRL, MODE);
}

static uint32_t usable_members(const struct hw_lag *lag)
{
    return FIELD_GET(lag->members, LAG_MEMBERS, DISTRIBUTE) & lag->links;
}

static void count_event(struct hw_lag *lag, unsigned int counter, uint64_t n)
{
    lag->counters[counter] += n;
}

/* ---- Priorities that are paused. */

static uint8_t member_paused(const struct hw_lag *lag, unsigned int port)
{
    const uint8_t *paused = lag->ports[port].paused;

    return paused != NULL ? *paused : 0;
}

/*
 * Tell the RNIC which priorities to hold back, because a frame for a paused
 * member would block the frames for the other member that follow it.
 */
static void update_paused(struct hw_lag *lag)
{
    uint8_t paused = 0;

    if (mode_of(lag) == LAG_MODE_OFF) {
        for (unsigned int i = 0; i < HW_LAG_PORTS; i++) {
            lag->paused[i] = member_paused(lag, i);
        }
        return;
    }
    for (unsigned int i = 0; i < HW_LAG_PORTS; i++) {
        if ((usable_members(lag) & BIT(i)) &&
            (mode_of(lag) == LAG_MODE_DISTRIBUTE || i == lag->active)) {
            paused |= member_paused(lag, i);
        }
    }
    lag->paused[LOGICAL] = paused;
    lag->paused[1] = 0;
}

/* Let the RNIC try to send again, because room or pauses may have changed. */
static void offer_again(struct hw_lag *lag)
{
    update_paused(lag);
    for (unsigned int i = 0; i < HW_LAG_PORTS; i++) {
        lag->ops.rnic_ready(lag->ops.ctx, i);
    }
}

/* ---- The active member. */

static void activate_member(struct hw_lag *lag, unsigned int port)
{
    lag->active = port;
    count_event(lag, LAG_COUNT_MOVES, 1);
    offer_again(lag);
}

static void leave_unusable(struct hw_lag *lag)
{
    uint32_t others = usable_members(lag) & ~BIT(lag->active);

    if (mode_of(lag) == LAG_MODE_STANDBY &&
        !(usable_members(lag) & BIT(lag->active)) && others != 0) {
        activate_member(lag, 1 - lag->active);
    }
}

/*
 * Note that a frame for one of the drive's unicast addresses arrived on a
 * member.
 */
static void note_frame(struct hw_lag *lag, unsigned int port)
{
    uint64_t now_ns = lag->ops.now_ns(lag->ops.ctx);

    lag->heard_ns[port] = now_ns;
    if (port != lag->active && (usable_members(lag) & BIT(port)) &&
        now_ns - lag->heard_ns[lag->active] >= lag->quiet_ms * NS_A_MS) {
        activate_member(lag, port);
    }
}

static bool follows_traffic(const struct hw_lag *lag)
{
    return mode_of(lag) == LAG_MODE_STANDBY &&
           FIELD_GET(lag->ctrl, LAG_CTRL, FOLLOW);
}

/* ---- Receive. */

/* @return whether an aggregate takes frames of a member */
static bool collect_frames(struct hw_lag *lag, unsigned int port,
                           const struct frame_rx *frames, unsigned int n)
{
    if (!(FIELD_GET(lag->members, LAG_MEMBERS, COLLECT) & BIT(port))) {
        count_event(lag, LAG_COUNT_RX_DROPPED0 + port, n);
        return false;
    }
    if (follows_traffic(lag) && n != 0 && !(frames[0].data[ETH_DST] & 1)) {
        note_frame(lag, port);
    }
    return true;
}

void hw_lag_rx(struct hw_lag *lag, unsigned int port,
               const struct frame_rx *frames, unsigned int n)
{
    if (mode_of(lag) == LAG_MODE_OFF) {
        lag->ops.rnic_rx(lag->ops.ctx, port, frames, n);
    } else if (collect_frames(lag, port, frames, n)) {
        lag->ops.rnic_rx(lag->ops.ctx, LOGICAL, frames, n);
    }
}

void hw_lag_rx_toe(struct hw_lag *lag, unsigned int port,
                   const struct frame_rx *frames, unsigned int n)
{
    if (mode_of(lag) == LAG_MODE_OFF) {
        lag->ops.toe_rx(lag->ops.ctx, port, frames, n);
    } else if (collect_frames(lag, port, frames, n)) {
        lag->ops.toe_rx(lag->ops.ctx, LOGICAL, frames, n);
    }
}

/* ---- Transmit. */

static uint32_t mix_word(uint32_t hash, uint32_t word)
{
    hash = (hash ^ word) * 0x85ebca6b; /* a constant of MurmurHash3 */
    return hash ^ hash >> 15;
}

static uint32_t mix_bytes(uint32_t hash, const uint8_t *p, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        hash = mix_word(hash, get_be32(p + 4 * i));
    }
    return hash;
}

static bool is_tcp_head(const uint8_t *head, size_t l3, bool v4)
{
    return v4 ? head[l3 + IPV4_PROTOCOL] == IP_PROTOCOL_TCP
              : head[l3 + IPV6_NEXT_HEADER] == IP_PROTOCOL_TCP;
}

/*
 * Compute a hash that is equal for all packets of one QP, or of one TCP
 * connection; 0 for other frames.
 */
static uint32_t flow_hash(const struct frame_tx *frame)
{
    const uint8_t *head = frame->head;
    size_t l3 =
        get_be16(head + ETH_TYPE) == ETHERTYPE_VLAN ? ETH_TAGGED_LEN : ETH_LEN;
    uint16_t type = get_be16(head + l3 - 2);
    bool v4 = type == ETHERTYPE_IPV4;
    /* RoCE v1 has a GRH, which is laid out like IPv6, and no UDP header. */
    size_t l4 = l3 + (v4 ? (size_t)IPV4_LEN : (size_t)IPV6_LEN);
    size_t bth = l4 + (type == ETHERTYPE_ROCE_V1 ? 0 : (size_t)UDP_LEN);
    uint32_t hash;

    if (frame->head_len < bth + BTH_LEN) {
        return 0;
    }
    hash = mix_word(get_be16(head + ETH_DST), get_be32(head + ETH_DST + 2));
    hash = v4 ? mix_bytes(hash, head + l3 + IPV4_SRC, 2)
              : mix_bytes(hash, head + l3 + IPV6_SRC, 8);
    if (is_tcp_head(head, l3, v4) && type != ETHERTYPE_ROCE_V1) {
        return mix_word(hash, get_be32(head + l4)); /* both ports */
    }
    if (bth != l4) {
        hash = mix_word(hash, get_be16(head + l4 + UDP_SRC_PORT));
    }
    return mix_word(hash, get_be24(head + bth + BTH_DEST_QP));
}

/* The member to send a frame on, or NO_MEMBER. */
static unsigned int choose_member(const struct hw_lag *lag,
                                  const struct frame_tx *frame)
{
    switch (usable_members(lag)) {
    case 0:
        return NO_MEMBER;
    case BIT(0):
        return 0;
    case BIT(1):
        return 1;
    default:
        return mode_of(lag) == LAG_MODE_STANDBY ? lag->active
                                                : flow_hash(frame) >> 31;
    }
}

/* Send frames on one member.  The contract is that of frame_sink.send. */
static unsigned int send_run(struct hw_lag *lag, unsigned int member,
                             const struct frame_tx *burst, unsigned int n)
{
    const struct frame_sink *sink = &lag->ports[member];
    unsigned int taken = sink->send != NULL ? sink->send(sink->ctx, burst, n)
                                            /*
                                             * No link is attached: the frames
                                             * are lost.
                                             */
                                            : n;

    count_event(lag, LAG_COUNT_TX0 + member, taken);
    return taken;
}

static unsigned int distribute_burst(struct hw_lag *lag,
                                     const struct frame_tx *burst,
                                     unsigned int n)
{
    unsigned int sent = 0;

    while (sent < n) {
        unsigned int member = choose_member(lag, &burst[sent]);
        unsigned int end = sent + 1, taken;

        while (end < n && choose_member(lag, &burst[end]) == member) {
            end++;
        }
        if (member == NO_MEMBER) {
            count_event(lag, LAG_COUNT_TX_DROPPED, end - sent);
            sent = end;
            continue;
        }
        taken = send_run(lag, member, burst + sent, end - sent);
        sent += taken;
        if (sent != end) {
            break;
        }
    }
    return sent;
}

static unsigned int sink_send(void *ctx, const struct frame_tx *burst,
                              unsigned int n)
{
    const struct hw_lag_sink *sink = ctx;
    struct hw_lag *lag = sink->lag;

    if (mode_of(lag) == LAG_MODE_OFF) {
        const struct frame_sink *port = &lag->ports[sink->port];

        return port->send != NULL ? port->send(port->ctx, burst, n) : n;
    }
    if (sink->port != LOGICAL) {
        count_event(lag, LAG_COUNT_TX_DROPPED, n);
        return n;
    }
    return distribute_burst(lag, burst, n);
}

struct frame_sink hw_lag_sink(struct hw_lag *lag, unsigned int port)
{
    return (struct frame_sink){
        .ctx = &lag->sinks[port],
        .send = sink_send,
        .paused = &lag->paused[port],
    };
}

/* ---- Events of the ports. */

void hw_lag_ready(struct hw_lag *lag, unsigned int port)
{
    update_paused(lag);
    lag->ops.rnic_ready(lag->ops.ctx,
                        mode_of(lag) == LAG_MODE_OFF ? port : LOGICAL);
}

void hw_lag_link(struct hw_lag *lag, unsigned int port, bool is_up)
{
    bool was_up = lag->links != 0;

    lag->links = (uint8_t)((lag->links & ~BIT(port)) | (is_up ? BIT(port) : 0));
    if (mode_of(lag) == LAG_MODE_OFF) {
        lag->ops.link_changed(lag->ops.ctx, port, is_up);
        return;
    }
    leave_unusable(lag);
    offer_again(lag);
    if (was_up != (lag->links != 0)) {
        lag->ops.link_changed(lag->ops.ctx, LOGICAL, lag->links != 0);
    }
}

/* ---- Registers. */

bool hw_lag_read(struct hw_lag *lag, uint32_t offset, uint32_t *value)
{
    if (offset >= LAG_COUNTER_BASE &&
        offset < LAG_COUNTER_BASE + 8 * LAG_COUNTERS) {
        uint64_t counter = lag->counters[(offset - LAG_COUNTER_BASE) / 8];

        *value = offset & 4 ? lag->counter_high : (uint32_t)counter;
        lag->counter_high =
            offset & 4 ? lag->counter_high : (uint32_t)(counter >> 32);
        return true;
    }
    switch (offset) {
    case A_LAG_ID:
        *value = LAG_ID_VALUE;
        return true;
    case A_LAG_CTRL:
        *value = lag->ctrl;
        return true;
    case A_LAG_MEMBERS:
        *value = lag->members;
        return true;
    case A_LAG_ACTIVE:
        *value = lag->active;
        return true;
    case A_LAG_STATUS:
        *value = FIELD_MAKE(LAG_STATUS, LINKS, lag->links) |
                 FIELD_MAKE(LAG_STATUS, USABLE, usable_members(lag));
        return true;
    case A_LAG_QUIET:
        *value = lag->quiet_ms;
        return true;
    default:
        *value = 0;
        return offset == A_LAG_HEARD;
    }
}

static void write_ctrl(struct hw_lag *lag, uint32_t value)
{
    if (FIELD_GET(value, LAG_CTRL, RESET)) {
        hw_lag_reset(lag);
        return;
    }
    if (FIELD_GET(value, LAG_CTRL, MODE) > LAG_MODE_DISTRIBUTE) {
        return;
    }
    lag->ctrl = value & (R_LAG_CTRL_MODE_MASK | R_LAG_CTRL_FOLLOW_MASK);
    leave_unusable(lag);
    offer_again(lag);
}

static void write_active(struct hw_lag *lag, uint32_t value)
{
    uint32_t port = FIELD_GET(value, LAG_ACTIVE, PORT);

    if ((lag->links & BIT(port)) || !(lag->links & BIT(1 - port))) {
        lag->active = port;
        offer_again(lag);
    }
}

bool hw_lag_write(struct hw_lag *lag, uint32_t offset, uint32_t value)
{
    switch (offset) {
    case A_LAG_CTRL:
        write_ctrl(lag, value);
        return true;
    case A_LAG_MEMBERS:
        lag->members = value & (R_LAG_MEMBERS_COLLECT_MASK |
                                R_LAG_MEMBERS_DISTRIBUTE_MASK);
        leave_unusable(lag);
        offer_again(lag);
        return true;
    case A_LAG_ACTIVE:
        write_active(lag, value);
        return true;
    case A_LAG_HEARD:
        if (follows_traffic(lag)) {
            note_frame(lag, FIELD_GET(value, LAG_HEARD, PORT));
        }
        return true;
    case A_LAG_QUIET:
        lag->quiet_ms = FIELD_GET(value, LAG_QUIET, MS);
        return true;
    default:
        return false;
    }
}

/* ---- Start, reset and load. */

static void clear_state(struct hw_lag *lag)
{
    lag->ctrl = 0;
    lag->members = 0;
    lag->active = 0;
    lag->quiet_ms = LAG_QUIET_MS;
    lag->counter_high = 0;
    memset(lag->counters, 0, sizeof(lag->counters));
    memset(lag->heard_ns, 0, sizeof(lag->heard_ns));
    update_paused(lag);
}

void hw_lag_init(struct hw_lag *lag, const struct hw_lag_ops *ops)
{
    memset(lag, 0, sizeof(*lag));
    lag->ops = *ops;
    for (unsigned int i = 0; i < HW_LAG_PORTS; i++) {
        lag->sinks[i] = (struct hw_lag_sink){.lag = lag, .port = i};
    }
    clear_state(lag);
}

void hw_lag_attach(struct hw_lag *lag, unsigned int port,
                   const struct frame_sink *sink)
{
    lag->ports[port] = *sink;
    update_paused(lag);
}

void hw_lag_reset(struct hw_lag *lag)
{
    clear_state(lag);
    offer_again(lag);
}

bool hw_lag_loaded(struct hw_lag *lag)
{
    if (FIELD_GET(lag->ctrl, LAG_CTRL, MODE) > LAG_MODE_DISTRIBUTE ||
        lag->active >= HW_LAG_PORTS || lag->links > ALL_PORTS) {
        return false;
    }
    leave_unusable(lag); /* the links may differ from the saved ones */
    update_paused(lag);
    return true;
}
