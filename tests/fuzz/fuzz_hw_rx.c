/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware models that receive frames: a port, which passes RoCE frames to
 * an RNIC with a connection and obeys every pause frame. After each input,
 * connection and pauses must be consistent: their state can be saved and loaded
 * again.
 *
 * An input is a sequence of frames, each with its length in two bytes before
 * it. Bit 15 of the length: the ICRC is corrected, so that the code after that
 * check is reached. Bit 14: 100 us pass before the frame.
 */
#include "tests/fuzz/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/regfields.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/port.h"
#include "net/wire/eth.h"
#include "net/wire/grh.h"
#include "net/wire/icrc.h"
#include "net/wire/mac_control.h"
#include "net/wire/roce_opcode.h"
#include "tests/unit/net/wire/golden_mac_control.h"
#include "tests/unit/hw-model/rnic/bed.h"
#include "tests/unit/hw-model/test_env.h"

enum { FRAME_ROOM = 2048, LEN_MASK = 0x3fff, FIX = 0x8000, PASS = 0x4000 };

struct world {
    struct bed *bed;
    struct test_env env;
    struct hw_port port;
};

static void rnic_rx_frames(void *ctx, const struct frame_rx *frames,
                           unsigned int n)
{
    struct world *w = ctx;

    rnic_rx(w->bed->side[1].rnic, 0, frames, n);
}

static void rnic_room(void *ctx)
{
    struct world *w = ctx;

    rnic_port_ready(w->bed->side[1].rnic, 0);
}

static void link_changed(void *ctx, bool is_up)
{
    (void)ctx;
    (void)is_up;
}

static unsigned int link_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    (void)ctx;
    (void)burst;
    return count;
}

static void start_world(struct world *w, bool is_v1)
{
    struct hw_port_config config = {
        .ops = {.ctx = w,
                .rnic_rx = rnic_rx_frames,
                .rnic_ready = rnic_room,
                .link_changed = link_changed},
        .link = {.ctx = w, .send = link_send},
    };

    w->bed = bed_new();
    w->bed->v1 = is_v1;
    bed_start(w->bed);
    bed_connect(w->bed, 0, &(struct bed_path){.mtu = 1, .psn = 0x1000});
    bed_create_ud(&w->bed->side[1]);
    if (!rnic_write(w->bed->side[1].rnic, A_RNIC_ECN, 3 | 2 << 4)) {
        abort();
    }
    config.env = test_env_init(&w->env, NULL, 0);
    hw_port_init(&w->port, &config);
    hw_port_set_cable(&w->port, true);
    if (!hw_port_write(&w->port, A_PORT_CTRL,
                       R_PORT_CTRL_RX_ENABLE_MASK | R_PORT_CTRL_TX_ENABLE_MASK |
                           R_PORT_CTRL_UNICAST_ALL_MASK |
                           R_PORT_CTRL_ROCE_V1_MASK |
                           R_PORT_CTRL_ROCE_V2_MASK) ||
        !hw_port_write(&w->port, A_PORT_PAUSE, 0x1ff) ||
        !hw_port_write(&w->port, A_PORT_LINK_CTRL,
                       w->port.link_ctrl | R_PORT_LINK_CTRL_ENABLE_MASK)) {
        abort();
    }
    w->bed->side[1].rnic->roce.sinks[0] = (struct frame_sink){
        .ctx = &w->port,
        .send = hw_port_tx,
        .paused = &w->port.paused,
    };
}

static void stop_world(struct world *w)
{
    w->bed->side[1].rnic->roce.sinks[0] = (struct frame_sink){0};
    if (!hw_port_loaded(&w->port)) {
        abort();
    }
    bed_reload(&w->bed->side[1]);
    bed_free(w->bed);
}

/* The frame is untagged, and its ICRC is in its last bytes. */
static void fix_icrc(uint8_t *frame, size_t len)
{
    uint8_t *ip = frame + ETH_LEN;
    uint16_t type = len > ETH_LEN ? get_be16(frame + ETH_TYPE) : 0;
    size_t headers = 0;
    uint32_t icrc = 0;

    if (type == ETHERTYPE_ROCE_V1) {
        headers = ICRC_GRH_HEADERS_LEN;
    } else if (type == ETHERTYPE_IPV4) {
        headers = ICRC_IPV4_HEADERS_LEN;
    }
    if (headers == 0 || len < ETH_LEN + headers + ICRC_LEN) {
        return;
    }
    icrc = type == ETHERTYPE_IPV4 ? icrc_begin_ipv4(ip) : icrc_begin_grh(ip);
    icrc = icrc_add(icrc, ip + headers, len - ETH_LEN - headers - ICRC_LEN);
    icrc_emit(icrc, frame + len - ICRC_LEN);
}

static void pass_time(struct world *w)
{
    struct bed_side *side = &w->bed->side[1];

    w->env.now_ns += 100000;
    w->bed->now_ns += 100000;
    if (w->env.deadline_ns <= w->env.now_ns) {
        w->env.deadline_ns = DEV_NO_DEADLINE;
        hw_port_timer(&w->port);
    }
    if (side->timer_ns <= w->bed->now_ns) {
        side->timer_ns = DEV_NO_DEADLINE;
        rnic_timer(side->rnic);
    }
}

static void settle_world(struct world *w)
{
    struct bed_side *side = &w->bed->side[1];

    while (w->env.deferred || side->deferred) {
        if (w->env.deferred) {
            w->env.deferred = false;
            hw_port_run(&w->port);
        }
        if (side->deferred) {
            side->deferred = false;
            rnic_run(side->rnic);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct world w = {0};

    if (len == 0) {
        return 0;
    }
    start_world(&w, data[0] & 1);
    for (data++, len--; len > 2;) {
        uint16_t what = get_be16(data);
        size_t n = MIN((size_t)(what & LEN_MASK), len - 2);
        uint8_t *frame = malloc(n != 0 ? n : 1);

        memcpy(frame, data + 2, n);
        data += 2 + n;
        len -= 2 + n;
        if (what & FIX) {
            fix_icrc(frame, n);
        }
        if (what & PASS) {
            pass_time(&w);
        }
        if (n != 0) {
            hw_port_rx(
                &w.port,
                &(struct frame_rx){.data = frame, .len_bytes = (uint32_t)n}, 1);
        }
        free(frame);
        settle_world(&w);
    }
    stop_world(&w);
    return 0;
}

/* ---- Seeds. */

static size_t pause_frame(uint8_t *frame, const uint8_t body[46])
{
    eth_emit(&(struct eth){.dst = {{0x01, 0x80, 0xc2, 0, 0, 1}},
                           .type = ETHERTYPE_MAC_CONTROL},
             frame);
    memcpy(frame + ETH_LEN, body, 46);
    return ETH_LEN + 46;
}

/* A frame for side 1's connection: a WRITE with congestion experienced, or a
 * CNP. */
static size_t roce_frame(uint8_t *frame, bool is_v1, uint8_t opcode,
                         uint32_t len)
{
    /* bed_qpn(), generation 0. */
    uint32_t qpn = (3 + 1) << 11 | (BED_SLOT + 1);
    size_t rest = roce_opcodes[opcode].header_len_bytes + len + ICRC_LEN;
    struct ip_addr src = ip_addr_from_v4(0x0a000001);
    struct ip_addr dst = ip_addr_from_v4(0x0a000002);
    uint8_t *at = frame + ETH_LEN;

    memset(frame, 0, 256);
    eth_emit(&(struct eth){.dst = {{2}},
                           .type = is_v1 ? ETHERTYPE_ROCE_V1 : ETHERTYPE_IPV4},
             frame);
    if (is_v1) {
        grh_emit(&(struct grh){.sgid = src,
                               .dgid = dst,
                               .payload_len_bytes = (uint16_t)rest},
                 at);
        at += GRH_LEN;
    } else {
        ipv4_emit(&(struct ipv4){.src = src,
                                 .dst = dst,
                                 .tos = 3,
                                 .total_len_bytes =
                                     (uint16_t)(IPV4_LEN + UDP_LEN + rest),
                                 .ttl = 64,
                                 .protocol = IP_PROTOCOL_UDP},
                  at);
        udp_emit(&(struct udp){.dst_port = UDP_PORT_ROCE,
                               .length_bytes = (uint16_t)(UDP_LEN + rest)},
                 at + IPV4_LEN);
        at += IPV4_LEN + UDP_LEN;
    }
    bth_emit(&(struct bth){.opcode = opcode,
                           .becn = opcode == CNP_NOTIFY,
                           .pkey = BTH_PKEY_DEFAULT,
                           .ack_requested = opcode != CNP_NOTIFY,
                           .dest_qp = qpn,
                           .psn = opcode != CNP_NOTIFY ? 0x1000 : 0},
             at);
    return (size_t)(at - frame) + rest;
}

static size_t add_frame(uint8_t *buf, const uint8_t *frame, size_t len,
                        uint16_t flags)
{
    put_be16(buf, (uint16_t)(len | flags));
    memcpy(buf + 2, frame, len);
    return 2 + len;
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    uint8_t frame[FRAME_ROOM];
    size_t at = 1;
    bool is_v1 = n & 1;

    if (n >= 2 || room < 1024) {
        return 0;
    }
    buf[0] = is_v1;
    at += add_frame(buf + at, frame, pause_frame(frame, mac_control_pfc), 0);
    at += add_frame(buf + at, frame, roce_frame(frame, is_v1, RC_WRITE_ONLY, 0),
                    FIX);
    at += add_frame(buf + at, frame, roce_frame(frame, is_v1, CNP_NOTIFY, 16),
                    FIX);
    at += add_frame(buf + at, frame,
                    roce_frame(frame, is_v1, RC_READ_REQUEST, 0), FIX | PASS);
    at +=
        add_frame(buf + at, frame, pause_frame(frame, mac_control_pause), PASS);
    at += add_frame(buf + at, frame, roce_frame(frame, is_v1, RC_SEND_ONLY, 64),
                    FIX | PASS);
    return at;
}
