/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LACP. A record is a PDU of the slow protocols for the agent. Unless RAW is
 * set, it goes to their group. OTHER: the partner repeats what the drive last
 * sent about itself.
 */
#include "net/stack/lacp.h"
#include "tests/fuzz/seat.h"

static struct lacp_agent agent;

static void start_lacp(struct seat *seat)
{
    const struct lacp_config config = {
        .stack = &seat->w->stack,
        .system = {{2, 0, 0, 0, 0, 0x10}},
        .system_priority = 65535,
        .key = 7,
        .is_fast = true,
    };

    if (!lacp_init(&agent, &config)) {
        abort();
    }
    lacp_link(&agent, 0, true, seat->w->now_us);
    lacp_link(&agent, 1, true, seat->w->now_us);
}

static uint64_t lacp_timer_of_seat(struct seat *seat, uint64_t now_us)
{
    (void)seat;
    return lacp_timer(&agent, now_us);
}

static size_t wrap_lacp(struct seat *seat, uint8_t flags, uint8_t *data,
                        size_t len, uint8_t *frame)
{
    uint8_t port = (flags & SEAT_PORT_1) != 0;
    uint8_t again[SLOW_LEN];
    struct lacp lacp;
    size_t at;

    (void)seat;
    if ((flags & SEAT_RAW) == 0) {
        flags |= SEAT_GROUP;
    }
    at = seat_eth(flags, &slow_group, ETHERTYPE_SLOW, frame);
    if ((flags & SEAT_OTHER) != 0 && lacp_parse(&lacp, data, len)) {
        lacp.partner = lacp_actor(&agent, port);
        lacp_emit(&lacp, again);
        return seat_join(frame, at, again, sizeof(again));
    }
    return seat_join(frame, at, data, len);
}

static const struct seat_format format = {
    .wrap = wrap_lacp, .start = start_lacp, .timer = lacp_timer_of_seat};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
