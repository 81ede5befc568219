/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLDP. A record is an LLDPDU for the agent. Unless RAW is set, it goes to the
 * agent's group. OTHER: it has the padding of a short frame.
 */
#include "net/stack/lldp.h"
#include "tests/fuzz/seat.h"

enum { PADDED = 46 };

static struct lldp_agent agent;

static void check_neighbour(void *ctx, uint8_t port, enum lldp_event event,
                            const struct lldp *lldp)
{
    (void)ctx;
    if (port >= NET_PORTS || event > LLDP_GONE ||
        lldp->chassis.value.len_bytes == 0) {
        abort();
    }
}

static void start_lldp(struct seat *seat)
{
    const struct lldp_config config = {
        .stack = &seat->w->stack,
        .ports = {{true, true}, {true, true}},
        .chassis = {{2, 0, 0, 0, 0, 0x10}},
        .system_name = "drive",
        .system_description = "a drive",
        .neighbour = check_neighbour,
    };

    if (!lldp_init(&agent, &config)) {
        abort();
    }
    lldp_link(&agent, 0, true, 25000, seat->w->now_us);
    lldp_link(&agent, 1, true, 25000, seat->w->now_us);
}

static uint64_t lldp_timer_of_seat(struct seat *seat, uint64_t now_us)
{
    (void)seat;
    return lldp_timer(&agent, now_us);
}

static void read_all(uint64_t now_us)
{
    struct lldp lldp;
    uint32_t left_s;

    for (uint8_t port = 0; port < NET_PORTS; port++) {
        for (size_t i = 0; i < LLDP_NEIGHBOURS; i++) {
            if (lldp_neighbour_read(&agent, port, i, now_us, &lldp, &left_s) &&
                (left_s == 0 || left_s > UINT16_MAX)) {
                abort();
            }
        }
    }
}

static size_t wrap_lldp(struct seat *seat, uint8_t flags, uint8_t *data,
                        size_t len, uint8_t *frame)
{
    static const struct mac_addr group = {{0x01, 0x80, 0xc2, 0, 0, 0x0e}};
    size_t at;

    if ((flags & SEAT_RAW) == 0) {
        flags |= SEAT_GROUP;
    }
    at = seat_eth(flags, &group, ETHERTYPE_LLDP, frame);
    read_all(seat->w->now_us);
    len = seat_join(frame, at, data, len);
    if ((flags & SEAT_OTHER) != 0 && len < at + PADDED) {
        memset(frame + len, 0, at + PADDED - len);
        len = at + PADDED;
    }
    return len;
}

static const struct seat_format format = {
    .wrap = wrap_lldp, .start = start_lldp, .timer = lldp_timer_of_seat};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
