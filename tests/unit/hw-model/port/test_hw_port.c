/* SPDX-License-Identifier: BSD-2-Clause */
/* The port's core, with the test as firmware, RNIC and link. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/regfields.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/port.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"
#include "tests/unit/hw-model/port/port_bed.h"

enum {
    BUF = 0x2800,
    TX_LOG2 = 5,
    MAX_SENT = 128,
    UP_MTU = 4200,
};

static const uint8_t our_mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
static const uint8_t other_mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x56};
static const uint8_t group_mac[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e};
static const uint8_t broadcast_mac[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

struct sent {
    uint32_t len;
    uint8_t priority;
    uint8_t bytes[128];
};

struct world {
    struct hw_port port;
    struct test_env env;
    uint8_t *dram;

    struct sent sent[MAX_SENT]; /* frames that the link took */
    unsigned int num_sent;
    unsigned int link_room; /* frames that it will take */
    /* Firmware publishes frames as fast as the link takes them. */
    bool is_endless;

    unsigned int rnic_frames; /* frames passed to the RNIC */
    unsigned int rnic_bursts;
    unsigned int toe_frames; /* frames passed to the TOE */
    unsigned int toe_bursts;
    unsigned int rnic_ready;
    /* Frames that the RNIC sends when it is told of room. */
    unsigned int rnic_backlog;
    uint8_t rnic_priority;
    bool link_is_up;
    unsigned int link_changes;
};

static unsigned int link_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    struct world *w = ctx;
    unsigned int n = MIN(count, w->link_room);

    if (w->is_endless) {
        uint8_t *pi = w->dram + PAGE + PORT_PAGE_TX_PI;

        put_le32(pi, get_le32(pi) + count);
        return count;
    }
    for (unsigned int i = 0; i < n; i++) {
        struct sent *sent = &w->sent[w->num_sent++];
        uint8_t all[FRAME_LEN_MAX];

        sent->len = frame_tx_copy(all, &burst[i]);
        sent->priority = burst[i].priority;
        memcpy(sent->bytes, all, MIN(sent->len, (uint32_t)sizeof(sent->bytes)));
    }
    w->link_room -= n;
    return n;
}

static void rnic_rx(void *ctx, const struct frame_rx *frames, unsigned int n)
{
    struct world *w = ctx;

    assert_true(n > 0 && frames[0].len_bytes > 0);
    w->rnic_frames += n;
    w->rnic_bursts++;
}

static void toe_rx(void *ctx, const struct frame_rx *frames, unsigned int n)
{
    struct world *w = ctx;

    assert_true(n > 0 && frames[0].len_bytes > 0);
    w->toe_frames += n;
    w->toe_bursts++;
}

/* Make a frame of the RNIC, 62 bytes or `len` bytes long, marked 0xee. */
static struct frame_tx rnic_frame(uint8_t priority, uint16_t len)
{
    struct frame_tx frame = {
        .priority = priority,
        .head_len = (uint16_t)(len - 4),
        .tail_len = 4,
    };

    memset(frame.head, 0xee, frame.head_len);
    memset(frame.tail, 0xdd, 4);
    return frame;
}

static void rnic_ready(void *ctx)
{
    struct world *w = ctx;

    w->rnic_ready++;
    while (w->rnic_backlog > 0) {
        struct frame_tx frame = rnic_frame(w->rnic_priority, 62);

        if (hw_port_tx(&w->port, &frame, 1) == 0) {
            break;
        }
        w->rnic_backlog--;
    }
}

static void link_changed(void *ctx, bool is_up)
{
    struct world *w = ctx;

    w->link_is_up = is_up;
    w->link_changes++;
}

static uint32_t read_reg(struct world *w, uint32_t offset)
{
    return port_bed_read(&w->port, offset);
}

static void write_reg(struct world *w, uint32_t offset, uint32_t value)
{
    port_bed_write(&w->port, &w->env, offset, value);
}

static void settle_port(struct world *w)
{
    port_bed_settle(&w->port, &w->env);
}

static uint64_t read_counter(struct world *w, enum port_counter n)
{
    uint32_t low = read_reg(w, PORT_COUNTER_BASE + 8 * (uint32_t)n);

    return (uint64_t)read_reg(w, PORT_COUNTER_BASE + 8 * (uint32_t)n + 4)
               << 32 |
           low;
}

static void write_mac(struct world *w, uint32_t at, const uint8_t *mac)
{
    write_reg(w, at, get_be32(mac + 2));
    write_reg(w, at + 4, get_be16(mac) | R_PORT_MAC_HI_VALID_MASK);
}

static void link_on(struct world *w)
{
    write_reg(w, A_PORT_LINK_CTRL,
              read_reg(w, A_PORT_LINK_CTRL) | R_PORT_LINK_CTRL_ENABLE_MASK);
}

/* Make a port with a link and one address. */
static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct hw_port_config config = {
        .ops = {.ctx = w,
                .rnic_rx = rnic_rx,
                .toe_rx = toe_rx,
                .rnic_ready = rnic_ready,
                .link_changed = link_changed},
        .link = {.ctx = w, .send = link_send},
        .index = 1,
    };

    w->dram = calloc(1, DRAM_BYTES);
    w->link_room = MAX_SENT;
    config.env = test_env_init(&w->env, w->dram, DRAM_BYTES);
    hw_port_init(&w->port, &config);
    hw_port_set_cable(&w->port, true);
    port_bed_rings(&w->port, &w->env, TX_LOG2, BUF);
    write_mac(w, A_PORT_MAC_LO, our_mac);
    write_reg(w, A_PORT_MTU, UP_MTU);
    write_reg(w, A_PORT_CTRL,
              R_PORT_CTRL_RX_ENABLE_MASK | R_PORT_CTRL_TX_ENABLE_MASK |
                  R_PORT_CTRL_ROCE_V2_MASK);
    link_on(w);
    write_reg(w, A_PORT_IRQ_STATUS, UINT32_MAX);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    free(w->dram);
    free(w);
    return 0;
}

/* ---- Frames */

static uint32_t plain_frame(uint8_t *f, const uint8_t *dst, uint16_t type,
                            uint32_t len)
{
    memset(f, 0x5a, len);
    memcpy(f, dst, 6);
    memcpy(f + 6, other_mac, 6);
    put_be16(f + 12, type);
    return len;
}

static uint32_t roce_v4(uint8_t *f, uint16_t port)
{
    plain_frame(f, our_mac, 0x0800, 100);
    memset(f + 14, 0, 86);
    f[14] = 0x45;
    put_be16(f + 16, 86);
    f[23] = 17;
    put_be16(f + 36, port);
    return 100;
}

static uint32_t roce_v6(uint8_t *f, uint8_t next_header, uint16_t port)
{
    plain_frame(f, our_mac, 0x86dd, 120);
    memset(f + 14, 0, 106);
    f[14] = 0x60;
    f[20] = next_header;
    put_be16(f + 56, port);
    return 120;
}

static void receive_frame(struct world *w, const uint8_t *f, uint32_t len,
                          uint8_t flags)
{
    struct frame_rx frame = {.data = f, .len_bytes = len, .flags = flags};

    hw_port_rx(&w->port, &frame, 1);
}

static uint32_t rx_pi(struct world *w)
{
    return get_le32(w->dram + PAGE + PORT_PAGE_RX_PI);
}

static void test_port_puts_a_frame_into_the_raw_ring(void **state)
{
    struct world *w = *state;
    uint8_t f[2000];
    const uint8_t *slot = w->dram + RX_RING;

    w->env.now_ns = 12345;
    receive_frame(w, f, plain_frame(f, broadcast_mac, 0x0806, 42), 0);
    assert_int_equal(rx_pi(w), 1);
    assert_int_equal(get_le32(slot + PORT_RXD_LENGTH), 60);
    assert_int_equal(get_le32(slot + PORT_RXD_FLAGS), PORT_RXD_BROADCAST);
    assert_int_equal(get_le64(slot + PORT_RXD_TIMESTAMP), 12345);
    assert_memory_equal(w->dram + RX_BUF, f, 42);
    for (unsigned int i = 42; i < 60; i++) {
        assert_int_equal(w->dram[RX_BUF + i], 0);
    }
    assert_int_equal(read_counter(w, PORT_COUNT_RX_RAW), 1);
    assert_int_equal(read_counter(w, PORT_COUNT_PKTS_64), 1);
    assert_int_equal(read_counter(w, PORT_COUNT_OCTETS), 64);
    assert_int_equal(read_counter(w, PORT_COUNT_OCTETS_RECEIVED_OK), 46);
    assert_int_equal(read_counter(w, PORT_COUNT_BROADCAST_RECEIVED_OK), 1);
}

static void test_port_drops_when_the_raw_ring_is_full_and_wraps(void **state)
{
    struct world *w = *state;
    uint8_t f[100];
    uint32_t len = plain_frame(f, our_mac, 0x0800, 100);

    for (unsigned int i = 0; i < 6; i++) {
        receive_frame(w, f, len, 0);
    }
    assert_int_equal(rx_pi(w), 4);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_DROPPED), 2);
    put_le32(w->dram + PAGE + PORT_PAGE_RX_CI, 3);
    f[20] = 0x77;
    receive_frame(w, f, len, 0);
    assert_int_equal(rx_pi(w), 5);
    assert_int_equal(w->dram[RX_BUF + 20], 0x77);
    /* An invalid index counts as a full ring. */
    put_le32(w->dram + PAGE + PORT_PAGE_RX_CI, 100);
    receive_frame(w, f, len, 0);
    assert_int_equal(rx_pi(w), 5);
}

static void test_port_interrupts_only_when_armed(void **state)
{
    struct world *w = *state;
    uint8_t f[100];
    uint32_t len = plain_frame(f, our_mac, 0x0800, 100);

    write_reg(w, A_PORT_IRQ_ENABLE, R_PORT_IRQ_STATUS_RING_MASK);
    receive_frame(w, f, len, 0);
    assert_false(w->env.irq);
    put_le32(w->dram + PAGE + PORT_PAGE_ARMED, PORT_ARMED_TX);
    receive_frame(w, f, len, 0);
    assert_false(w->env.irq);
    put_le32(w->dram + PAGE + PORT_PAGE_ARMED, PORT_ARMED_RX);
    receive_frame(w, f, len, 0);
    assert_true(w->env.irq);
    assert_int_equal(get_le32(w->dram + PAGE + PORT_PAGE_ARMED), 0);
    write_reg(w, A_PORT_IRQ_STATUS, R_PORT_IRQ_STATUS_RING_MASK);
    assert_false(w->env.irq);
}

static void test_port_filters_destinations(void **state)
{
    static const struct {
        const uint8_t *dst;
        uint32_t ctrl;
        int flags; /* -1: no filter matches */
    } rows[] = {
        {our_mac, 0, 0},
        {other_mac, 0, -1},
        {other_mac, R_PORT_CTRL_UNICAST_ALL_MASK, PORT_RXD_PROMISCUOUS},
        {broadcast_mac, 0, PORT_RXD_BROADCAST},
        {group_mac, 0, -1},
        {group_mac, R_PORT_CTRL_UNICAST_ALL_MASK, -1},
        {group_mac, R_PORT_CTRL_MULTICAST_ALL_MASK,
         PORT_RXD_MULTICAST | PORT_RXD_PROMISCUOUS},
    };
    struct world *w = *state;
    uint32_t ctrl = read_reg(w, A_PORT_CTRL);
    uint8_t f[100];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t pi = rx_pi(w), slot = RX_RING + (pi & 3) * PORT_RXD_LEN;

        put_le32(w->dram + PAGE + PORT_PAGE_RX_CI, pi);
        write_reg(w, A_PORT_CTRL, ctrl | rows[i].ctrl);
        receive_frame(w, f, plain_frame(f, rows[i].dst, 0x88cc, 100), 0);
        assert_int_equal(rx_pi(w) - pi, rows[i].flags >= 0);
        if (rows[i].flags >= 0) {
            assert_int_equal(get_le32(w->dram + slot + PORT_RXD_FLAGS),
                             rows[i].flags);
        }
    }
    assert_int_equal(read_counter(w, PORT_COUNT_RX_FILTERED_ADDRESS), 3);
}

static void test_port_has_8_addresses_and_64_groups(void **state)
{
    struct world *w = *state;
    uint8_t f[100], mac[6];

    for (uint8_t i = 0; i < PORT_MACS; i++) {
        memcpy(mac, our_mac, 6);
        mac[5] = (uint8_t)(0x80 + i);
        write_mac(w, A_PORT_MAC_LO + 8u * i, mac);
    }
    for (uint8_t i = 0; i < PORT_MULTICASTS; i++) {
        memcpy(mac, group_mac, 6);
        mac[4] = i; /* all have the same hash: the full address decides */
        write_mac(w, A_PORT_MULTICAST_LO + 8u * i, mac);
    }
    for (uint8_t i = 0; i < PORT_MACS + 1; i++) {
        memcpy(mac, our_mac, 6);
        mac[5] = (uint8_t)(0x80 + i);
        receive_frame(w, f, plain_frame(f, mac, 0x0800, 100), 0);
    }
    assert_int_equal(read_counter(w, PORT_COUNT_FRAMES_RECEIVED_OK), 8);
    for (uint8_t i = 0; i < PORT_MULTICASTS + 1; i++) {
        memcpy(mac, group_mac, 6);
        mac[4] = i;
        receive_frame(w, f, plain_frame(f, mac, 0x0800, 100), 0);
    }
    assert_int_equal(read_counter(w, PORT_COUNT_MULTICAST_RECEIVED_OK), 64);
    write_reg(w, A_PORT_MULTICAST_HI, 0);
    mac[4] = 0;
    receive_frame(w, f, plain_frame(f, mac, 0x0800, 100), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_MULTICAST_RECEIVED_OK), 64);
}

static void test_port_filters_vlans(void **state)
{
    struct world *w = *state;
    uint8_t f[100];
    const uint32_t len = 100;

    plain_frame(f, our_mac, 0x8100, len);
    put_be16(f + 16, 0x0806);
    put_be16(f + 14, 0x6000 | 4094);
    receive_frame(w, f, len, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_RAW), 1);
    write_reg(w, A_PORT_CTRL,
              read_reg(w, A_PORT_CTRL) | R_PORT_CTRL_VLAN_FILTER_MASK);
    receive_frame(w, f, len, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_FILTERED_VLAN), 1);
    write_reg(w, A_PORT_VLAN + 4 * (4094 / 32), BIT(4094 % 32));
    receive_frame(w, f, len, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_RAW), 2);
    put_be16(f + 14, 0x6000); /* priority-tagged */
    receive_frame(w, f, len, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_RAW), 3);
    put_be16(f + 14, 4093);
    receive_frame(w, f, len, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_FILTERED_VLAN), 2);
}

static void test_port_counts_and_drops_bad_frames(void **state)
{
    static const struct {
        uint32_t len;
        uint8_t flags;
        enum port_counter counter;
    } rows[] = {
        {13, 0, PORT_COUNT_UNDERSIZE_PKTS},
        {0, 0, PORT_COUNT_UNDERSIZE_PKTS},
        {40, FRAME_RUNT, PORT_COUNT_UNDERSIZE_PKTS},
        {40, FRAME_RUNT | FRAME_BAD_FCS, PORT_COUNT_FRAGMENTS},
        {100, FRAME_BAD_FCS, PORT_COUNT_FCS_ERRORS},
        {UP_MTU + 15, 0, PORT_COUNT_TOO_LONG},
        {UP_MTU + 15, FRAME_BAD_FCS, PORT_COUNT_JABBERS},
    };
    struct world *w = *state;
    uint8_t f[5000];

    plain_frame(f, our_mac, 0x0800, sizeof(f));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t before = read_counter(w, rows[i].counter);

        receive_frame(w, f, rows[i].len, rows[i].flags);
        assert_int_equal(read_counter(w, rows[i].counter), before + 1);
    }
    assert_int_equal(read_counter(w, PORT_COUNT_PKTS), ARRAY_LEN(rows));
    assert_int_equal(read_counter(w, PORT_COUNT_FCS_ERRORS), 3);
    assert_int_equal(read_counter(w, PORT_COUNT_FRAMES_RECEIVED_OK), 0);
    receive_frame(w, f, UP_MTU + 14, 0);
    put_be16(f + 12, 0x8100);
    receive_frame(w, f, UP_MTU + 18, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_FRAMES_RECEIVED_OK), 2);
    assert_int_equal(read_counter(w, PORT_COUNT_PKTS_1519_MAX), 2);
    receive_frame(w, f, UP_MTU + 19, FRAME_CORRECTED);
    assert_int_equal(read_counter(w, PORT_COUNT_OVERSIZE_PKTS), 2);
    assert_int_equal(read_counter(w, PORT_COUNT_FEC_CORRECTED), 1);
}

static void test_port_counts_sizes_at_their_edges(void **state)
{
    static const struct {
        uint32_t len; /* length without FCS */
        enum port_counter counter;
    } rows[] = {
        {14, PORT_COUNT_PKTS_64},          {60, PORT_COUNT_PKTS_64},
        {61, PORT_COUNT_PKTS_65_127},      {123, PORT_COUNT_PKTS_65_127},
        {124, PORT_COUNT_PKTS_128_255},    {251, PORT_COUNT_PKTS_128_255},
        {252, PORT_COUNT_PKTS_256_511},    {507, PORT_COUNT_PKTS_256_511},
        {508, PORT_COUNT_PKTS_512_1023},   {1019, PORT_COUNT_PKTS_512_1023},
        {1020, PORT_COUNT_PKTS_1024_1518}, {1514, PORT_COUNT_PKTS_1024_1518},
        {1515, PORT_COUNT_PKTS_1519_MAX},
    };
    struct world *w = *state;
    uint8_t f[2000];

    plain_frame(f, our_mac, 0x0800, sizeof(f));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t before = read_counter(w, rows[i].counter);

        receive_frame(w, f, rows[i].len, 0);
        assert_int_equal(read_counter(w, rows[i].counter), before + 1);
    }
}

static void test_port_recognises_roce_frames(void **state)
{
    struct world *w = *state;
    uint8_t f[200];
    uint32_t len;

    receive_frame(w, f, roce_v4(f, 4791), 0);
    receive_frame(w, f, roce_v6(f, 17, 4791), 0);
    assert_int_equal(w->rnic_frames, 2);
    receive_frame(w, f, roce_v4(f, 4790), 0);
    receive_frame(w, f, roce_v6(f, 17, 53), 0);
    receive_frame(w, f, roce_v6(f, 44, 4791), 0); /* with a fragment header */
    assert_int_equal(w->rnic_frames, 2);
    put_le32(w->dram + PAGE + PORT_PAGE_RX_CI, rx_pi(w));

    len = roce_v4(f, 4791);
    f[14] = 0x46; /* options */
    receive_frame(w, f, len, 0);
    len = roce_v4(f, 4791);
    put_be16(f + 20, 0x2000); /* more fragments */
    receive_frame(w, f, len, 0);
    len = roce_v4(f, 4791);
    f[23] = 6; /* TCP */
    receive_frame(w, f, len, 0);
    len = roce_v4(f, 4791);
    put_be16(f + 20, 0x4000); /* "do not fragment" is allowed */
    receive_frame(w, f, len, 0);
    assert_int_equal(w->rnic_frames, 3);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_RNIC), 3);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_RAW), 6);

    /* Tagged. */
    len = roce_v4(f, 4791);
    memmove(f + 18, f + 14, 86);
    put_be16(f + 12, 0x8100);
    put_be16(f + 14, 7);
    put_be16(f + 16, 0x0800);
    receive_frame(w, f, len + 4, 0);
    assert_int_equal(w->rnic_frames, 4);
}

static void test_port_truncated_roce_is_not_roce(void **state)
{
    struct world *w = *state;
    uint8_t f[200];

    roce_v4(f, 4791);
    for (uint32_t len = 14; len < 42; len++) {
        receive_frame(w, f, len, 0);
    }
    roce_v6(f, 17, 4791);
    for (uint32_t len = 14; len < 62; len++) {
        receive_frame(w, f, len, 0);
    }
    assert_int_equal(w->rnic_frames, 0);
}

static void test_port_roce_v1_needs_its_bit(void **state)
{
    struct world *w = *state;
    uint8_t f[200];
    uint32_t len = plain_frame(f, our_mac, 0x8915, 100);

    receive_frame(w, f, len, 0);
    assert_int_equal(w->rnic_frames, 0);
    write_reg(w, A_PORT_CTRL,
              R_PORT_CTRL_RX_ENABLE_MASK | R_PORT_CTRL_ROCE_V1_MASK);
    receive_frame(w, f, len, 0);
    assert_int_equal(w->rnic_frames, 1);
    receive_frame(w, f, roce_v4(f, 4791), 0); /* RoCE v2 is off now */
    assert_int_equal(w->rnic_frames, 1);
}

static uint32_t tcp_v4(uint8_t *f)
{
    uint32_t len = roce_v4(f, 4791);

    f[14 + 9] = 6;
    return len;
}

static void set_toe(struct world *w, uint32_t is_on)
{
    uint32_t ctrl = read_reg(w, A_PORT_CTRL);

    write_reg(w, A_PORT_CTRL, FIELD_SET(ctrl, PORT_CTRL, TOE, is_on));
}

static void test_port_passes_tcp_to_the_toe_if_its_bit_is_set(void **state)
{
    struct world *w = *state;
    uint8_t f[200];
    uint32_t len;

    receive_frame(w, f, tcp_v4(f), 0);
    receive_frame(w, f, roce_v6(f, 6, 7), 0);
    assert_int_equal(w->toe_frames, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_RAW), 2);
    set_toe(w, 1);
    receive_frame(w, f, tcp_v4(f), 0);
    receive_frame(w, f, roce_v6(f, 6, 7), 0);
    assert_int_equal(w->toe_frames, 2);
    len = tcp_v4(f);
    f[14] = 0x46; /* IPv4 options */
    receive_frame(w, f, len, 0);
    len = tcp_v4(f);
    f[14 + 6] = 0x20; /* more fragments */
    receive_frame(w, f, len, 0);
    len = tcp_v4(f);
    f[14 + 7] = 1; /* not the first fragment */
    receive_frame(w, f, len, 0);
    receive_frame(w, f, roce_v6(f, 44, 7), 0); /* a fragment header */
    receive_frame(w, f, roce_v6(f, 17, 7), 0);
    (void)tcp_v4(f);
    receive_frame(w, f, 14 + 19, 0); /* cut short */
    assert_int_equal(w->toe_frames, 2);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_TOE), 2);
    receive_frame(w, f, roce_v4(f, 4791), 0);
    assert_int_equal(w->rnic_frames, 1);
    set_toe(w, 0);
    receive_frame(w, f, tcp_v4(f), 0);
    assert_int_equal(w->toe_frames, 2);
}

static void test_port_passes_runs_for_both_engines_in_bursts(void **state)
{
    struct world *w = *state;
    uint8_t roce[200], tcp[200];
    uint32_t roce_len = roce_v4(roce, 4791), tcp_len = tcp_v4(tcp);
    struct frame_rx burst[8];

    set_toe(w, 1);
    for (unsigned int i = 0; i < ARRAY_LEN(burst); i++) {
        bool is_tcp = i >= 2 && i < 5;

        burst[i] = (struct frame_rx){.data = is_tcp ? tcp : roce,
                                     .len_bytes = is_tcp ? tcp_len : roce_len};
    }
    hw_port_rx(&w->port, burst, ARRAY_LEN(burst));
    assert_int_equal(w->toe_frames, 3);
    assert_int_equal(w->toe_bursts, 1);
    assert_int_equal(w->rnic_frames, 5);
    assert_int_equal(w->rnic_bursts, 2);
}

static void test_port_passes_roce_frames_on_in_bursts(void **state)
{
    struct world *w = *state;
    uint8_t roce[200], raw[100], bad[100];
    struct frame_rx burst[8];
    uint32_t roce_len = roce_v4(roce, 4791);

    plain_frame(raw, our_mac, 0x0806, 100);
    plain_frame(bad, other_mac, 0x0806, 100);
    for (unsigned int i = 0; i < 8; i++) {
        burst[i] = (struct frame_rx){.data = roce, .len_bytes = roce_len};
    }
    burst[3] = (struct frame_rx){.data = raw, .len_bytes = 100};
    burst[6] = (struct frame_rx){.data = bad, .len_bytes = 100};
    hw_port_rx(&w->port, burst, 8);
    assert_int_equal(w->rnic_frames, 6);
    assert_int_equal(w->rnic_bursts, 3);
    assert_int_equal(rx_pi(w), 1);
}

static void test_port_refuses_invalid_rx_buffers(void **state)
{
    struct world *w = *state;
    uint8_t f[200];
    uint32_t len = plain_frame(f, our_mac, 0x0800, 200);

    put_le32(w->dram + RX_RING + PORT_RXD_SIZE, 199);
    receive_frame(w, f, len, 0);
    assert_int_equal(rx_pi(w), 0);
    put_le32(w->dram + RX_RING + PORT_RXD_SIZE, 200);
    put_le64(w->dram + RX_RING + PORT_RXD_ADDR,
             TEST_DRAM_BASE + DRAM_BYTES - 199);
    receive_frame(w, f, len, 0);
    assert_int_equal(rx_pi(w), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_DROPPED), 2);
    assert_true(read_reg(w, A_PORT_IRQ_STATUS) &
                R_PORT_IRQ_STATUS_DMA_ERROR_MASK);
    put_le64(w->dram + RX_RING + PORT_RXD_ADDR,
             TEST_DRAM_BASE + DRAM_BYTES - 200);
    receive_frame(w, f, len, 0);
    assert_int_equal(rx_pi(w), 1);
}

/* ---- Transmit */

static void put_tx(struct world *w, uint32_t index, uint32_t len,
                   uint8_t priority)
{
    uint8_t *slot = w->dram + TX_RING + (index & 31) * PORT_TXD_LEN;
    uint8_t *buf = w->dram + TX_BUF + (index & 31) * BUF;

    memset(buf, 0xa0, len);
    buf[13] = (uint8_t)index;
    put_le64(slot + PORT_TXD_ADDR,
             TEST_DRAM_BASE + TX_BUF + (index & 31) * BUF);
    put_le32(slot + PORT_TXD_LENGTH, len);
    slot[PORT_TXD_PRIORITY] = priority;
}

static void publish_tx(struct world *w, uint32_t pi)
{
    put_le32(w->dram + PAGE + PORT_PAGE_TX_PI, pi);
    if (get_le32(w->dram + PAGE + PORT_PAGE_ASLEEP)) {
        write_reg(w, A_PORT_KICK, 1);
    }
}

static uint32_t tx_ci(struct world *w)
{
    return get_le32(w->dram + PAGE + PORT_PAGE_TX_CI);
}

static void test_port_sends_raw_frames_in_order_and_pads(void **state)
{
    static const uint32_t lens[] = {14, 42, 59, 60, 61, 1514, UP_MTU + 18};
    struct world *w = *state;

    for (uint32_t i = 0; i < ARRAY_LEN(lens); i++) {
        put_tx(w, i, lens[i], 0);
    }
    publish_tx(w, ARRAY_LEN(lens));
    assert_int_equal(tx_ci(w), ARRAY_LEN(lens));
    assert_int_equal(w->num_sent, ARRAY_LEN(lens));
    for (uint32_t i = 0; i < ARRAY_LEN(lens); i++) {
        assert_int_equal(w->sent[i].len, MAX(lens[i], 60u));
        assert_int_equal(w->sent[i].bytes[13], i);
        for (uint32_t b = lens[i]; b < 60; b++) {
            assert_int_equal(w->sent[i].bytes[b], 0);
        }
    }
    assert_int_equal(read_counter(w, PORT_COUNT_TX_RAW), ARRAY_LEN(lens));
    assert_int_equal(read_counter(w, PORT_COUNT_FRAMES_TRANSMITTED_OK),
                     ARRAY_LEN(lens));
    assert_int_equal(get_le32(w->dram + PAGE + PORT_PAGE_ASLEEP), 1);
}

static void test_port_skips_bad_descriptors(void **state)
{
    struct world *w = *state;

    put_tx(w, 0, 100, 0);
    put_tx(w, 1, 13, 0);
    put_tx(w, 2, UP_MTU + 19, 0);
    put_tx(w, 3, 100, 0);
    put_tx(w, 4, 100, 0);
    put_le64(w->dram + TX_RING + 3 * PORT_TXD_LEN + PORT_TXD_ADDR, 0x1000);
    publish_tx(w, 5);
    assert_int_equal(tx_ci(w), 5);
    assert_int_equal(w->num_sent, 2);
    assert_int_equal(w->sent[1].bytes[13], 4);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_ERROR), 3);
    assert_true(read_reg(w, A_PORT_IRQ_STATUS) &
                R_PORT_IRQ_STATUS_DMA_ERROR_MASK);
}

static void test_port_ignores_an_invalid_tx_index(void **state)
{
    struct world *w = *state;

    publish_tx(w, 33); /* the ring has 32 */
    assert_int_equal(w->num_sent, 0);
    assert_int_equal(tx_ci(w), 0);
    put_tx(w, 0, 100, 0);
    publish_tx(w, 1);
    assert_int_equal(w->num_sent, 1);
}

static void test_port_wraps_the_tx_ring_and_interrupts_when_armed(void **state)
{
    struct world *w = *state;

    write_reg(w, A_PORT_IRQ_ENABLE, R_PORT_IRQ_STATUS_RING_MASK);
    for (uint32_t i = 0; i < 70; i++) {
        put_tx(w, i, 100, 0);
        publish_tx(w, i + 1);
        assert_int_equal(tx_ci(w), i + 1);
        assert_int_equal(w->sent[i].bytes[13], i);
    }
    assert_false(w->env.irq);
    put_le32(w->dram + PAGE + PORT_PAGE_ARMED, PORT_ARMED_TX);
    put_tx(w, 70, 100, 0);
    publish_tx(w, 71);
    assert_true(w->env.irq);
}

static void test_port_keeps_what_the_link_does_not_take(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < 20; i++) {
        put_tx(w, i, 100, 0);
    }
    w->link_room = 3;
    publish_tx(w, 20);
    assert_int_equal(tx_ci(w), 3);
    assert_int_equal(get_le32(w->dram + PAGE + PORT_PAGE_ASLEEP), 0);
    hw_port_run(&w->port);
    assert_int_equal(w->num_sent, 3);
    w->link_room = 9;
    hw_port_link_ready(&w->port);
    assert_int_equal(tx_ci(w), 12);
    w->link_room = MAX_SENT;
    hw_port_link_ready(&w->port);
    assert_int_equal(tx_ci(w), 20);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(w->sent[i].bytes[13], i);
    }
}

/* ---- The transmit time-out */

#define TIMEOUT_NS UINT64_C(2000000000) /* the reset value */

/* Call the timer function at its deadlines, until `until_ns`. */
static void wait_until(struct world *w, uint64_t until_ns)
{
    while (w->env.deadline_ns <= until_ns) {
        w->env.now_ns = MAX(w->env.now_ns, w->env.deadline_ns);
        w->env.deadline_ns = DEV_NO_DEADLINE;
        hw_port_timer(&w->port);
        settle_port(w);
    }
    w->env.now_ns = until_ns;
}

static void block_link(struct world *w)
{
    struct frame_tx frame = rnic_frame(0, 62);

    w->link_room = 0;
    assert_int_equal(hw_port_tx(&w->port, &frame, 1), 0);
    w->rnic_backlog = 1;
    for (uint32_t i = 0; i < 20; i++) {
        put_tx(w, i, 100, (uint8_t)(i % 8));
    }
    publish_tx(w, 20);
    assert_int_equal(tx_ci(w), 0);
}

static void test_port_drops_frames_that_the_link_does_not_take(void **state)
{
    struct world *w = *state;
    struct frame_tx frame = rnic_frame(0, 62);

    assert_int_equal(read_reg(w, A_PORT_TX_TIMEOUT), 2000);
    block_link(w);
    wait_until(w, TIMEOUT_NS - 1);
    assert_int_equal(tx_ci(w), 0);
    assert_int_equal(w->rnic_backlog, 1);
    wait_until(w, TIMEOUT_NS);
    assert_int_equal(tx_ci(w), 20);
    assert_int_equal(w->rnic_backlog, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 21);
    /* Frames are dropped until the link takes frames again. */
    assert_int_equal(hw_port_tx(&w->port, &frame, 1), 1);
    put_tx(w, 20, 100, 0);
    publish_tx(w, 21);
    assert_int_equal(tx_ci(w), 21);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 23);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_RAW), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_RNIC), 0);
    assert_int_equal(w->num_sent, 0);
    assert_true(w->port.link_up);
    w->link_room = MAX_SENT;
    hw_port_link_ready(&w->port);
    assert_int_equal(hw_port_tx(&w->port, &frame, 1), 1);
    put_tx(w, 21, 100, 0);
    publish_tx(w, 22);
    assert_int_equal(w->num_sent, 2);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 23);
}

/*
 * A slow link is not a dead one: each frame that it takes restarts the
 * time-out.
 */
static void test_port_waits_for_a_link_that_takes_a_frame_now_and_then(
    void **state)
{
    struct world *w = *state;

    block_link(w);
    for (uint64_t i = 1; i <= 10; i++) {
        wait_until(w, i * (TIMEOUT_NS - 1000));
        w->link_room = 1;
        hw_port_link_ready(&w->port);
        settle_port(w);
        assert_int_equal(w->num_sent, i);
    }
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 0);
    wait_until(w, 10 * (TIMEOUT_NS - 1000) + TIMEOUT_NS);
    assert_int_equal(tx_ci(w), 20);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 11);
}

static void test_port_firmware_chooses_how_long_it_waits(void **state)
{
    struct world *w = *state;

    write_reg(w, A_PORT_TX_TIMEOUT, 0); /* no time-out */
    block_link(w);
    assert_int_equal(w->env.deadline_ns, DEV_NO_DEADLINE);
    wait_until(w, UINT64_C(3600000000000));
    assert_int_equal(tx_ci(w), 0);
    write_reg(w, A_PORT_TX_TIMEOUT, 65535); /* the link has waited for longer */
    wait_until(w, w->env.now_ns);
    assert_int_equal(tx_ci(w), 20);
    hw_port_reset(&w->port);
    assert_int_equal(read_reg(w, A_PORT_TX_TIMEOUT), 2000);
}

/* After loading, the time-out of the link starts again. */
static void test_port_restarts_its_time_out_after_save_and_load(void **state)
{
    struct world *w = *state;
    struct hw_port saved;

    write_reg(w, A_PORT_TX_TIMEOUT, 500);
    block_link(w);
    wait_until(w, 400000000);
    saved = w->port;
    memset(&w->port, 0xa5, sizeof(w->port));
    w->port = saved;
    w->env.deadline_ns = DEV_NO_DEADLINE;
    assert_true(hw_port_loaded(&w->port));
    settle_port(w);
    assert_int_equal(w->env.deadline_ns, 900000000);
    wait_until(w, 899999999);
    assert_int_equal(tx_ci(w), 0);
    wait_until(w, 900000000);
    assert_int_equal(tx_ci(w), 20);
    saved.tx_timeout_ms = 65536;
    w->port = saved;
    assert_false(hw_port_loaded(&w->port));
}

/* Firmware that never stops sending must not block the main loop. */
static void test_port_sends_a_bounded_number_of_frames_per_run(void **state)
{
    struct world *w = *state;
    uint32_t before;

    for (uint32_t i = 0; i < 32; i++) {
        put_tx(w, i, 100, 0);
    }
    w->is_endless = true;
    put_le32(w->dram + PAGE + PORT_PAGE_TX_PI, 32);
    for (unsigned int run = 0; run < 4; run++) {
        before = tx_ci(w);
        w->env.deferred = false;
        hw_port_run(&w->port);
        assert_in_range(tx_ci(w) - before, 32, 256);
        assert_true(w->env.deferred);
        assert_int_equal(get_le32(w->dram + PAGE + PORT_PAGE_ASLEEP), 0);
    }
    w->is_endless = false;
    settle_port(w); /* the rest needs no kick */
    assert_int_equal(tx_ci(w), get_le32(w->dram + PAGE + PORT_PAGE_TX_PI));
    assert_int_equal(get_le32(w->dram + PAGE + PORT_PAGE_ASLEEP), 1);
}

static void test_port_passes_and_pads_rnic_frames(void **state)
{
    struct world *w = *state;
    struct frame_tx burst[3] = {rnic_frame(0, 62), rnic_frame(0, 58),
                                rnic_frame(0, 100)};

    burst[0].pieces[0] = (struct frame_piece){w->dram, 1000};
    burst[0].num_pieces = 1;
    assert_int_equal(hw_port_tx(&w->port, burst, 3), 3);
    assert_int_equal(w->num_sent, 3);
    assert_int_equal(w->sent[0].len, 1062);
    assert_int_equal(w->sent[1].len, 60);
    assert_int_equal(w->sent[1].bytes[53], 0xee);
    assert_int_equal(w->sent[1].bytes[57], 0xdd);
    assert_int_equal(w->sent[1].bytes[58], 0);
    assert_int_equal(w->sent[1].bytes[59], 0);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_RNIC), 3);
}

static void test_port_tells_the_rnic_when_there_is_room(void **state)
{
    struct world *w = *state;
    struct frame_tx burst[4] = {rnic_frame(0, 62), rnic_frame(0, 62),
                                rnic_frame(0, 62), rnic_frame(0, 62)};

    w->link_room = 1;
    assert_int_equal(hw_port_tx(&w->port, burst, 4), 1);
    assert_int_equal(hw_port_tx(&w->port, burst + 1, 3), 0);
    assert_int_equal(w->rnic_ready, 0);
    w->link_room = MAX_SENT;
    w->rnic_backlog = 3;
    hw_port_link_ready(&w->port);
    assert_int_equal(w->rnic_ready, 1);
    assert_int_equal(w->num_sent, 4);
    hw_port_link_ready(&w->port);
    assert_int_equal(w->rnic_ready, 1);
}

/*
 * Fill the link, then give both senders a backlog.
 * @return which of them went first, and how the first 16 frames were shared
 */
static unsigned int rnic_share(struct world *w, uint8_t raw, uint8_t rnic,
                               bool *rnic_first)
{
    struct frame_tx frame = rnic_frame(rnic, 62);
    unsigned int share = 0;

    w->link_room = 0;
    w->rnic_priority = rnic;
    assert_int_equal(hw_port_tx(&w->port, &frame, 1), 0);
    w->rnic_backlog = 40;
    for (uint32_t i = 0; i < 32; i++) {
        put_tx(w, i, 100, raw);
    }
    publish_tx(w, 32);
    for (unsigned int i = 0; i < 16; i++) {
        w->link_room = 1;
        hw_port_link_ready(&w->port);
        settle_port(w);
    }
    assert_int_equal(w->num_sent, 16);
    for (unsigned int i = 0; i < 16; i++) {
        share += w->sent[i].bytes[0] == 0xee;
    }
    *rnic_first = w->sent[0].bytes[0] == 0xee;
    return share;
}

static void test_port_higher_raw_priority_goes_first(void **state)
{
    bool first;

    assert_int_equal(rnic_share(*state, 5, 2, &first), 0);
    assert_false(first);
}

static void test_port_higher_rnic_priority_goes_first(void **state)
{
    bool first;

    assert_int_equal(rnic_share(*state, 2, 5, &first), 16);
    assert_true(first);
}

static void test_port_equal_priorities_share(void **state)
{
    bool first;
    unsigned int share = rnic_share(*state, 3, 3, &first);

    assert_in_range(share, 6, 10);
}

static void test_port_drains_everything_after_sharing(void **state)
{
    struct world *w = *state;
    bool first;

    rnic_share(w, 3, 3, &first);
    w->link_room = MAX_SENT;
    hw_port_link_ready(&w->port);
    settle_port(w);
    assert_int_equal(w->rnic_backlog, 0);
    assert_int_equal(tx_ci(w), 32);
    assert_int_equal(w->num_sent, 72);
}

static void test_port_tx_disable_holds_both_back(void **state)
{
    struct world *w = *state;
    struct frame_tx frame = rnic_frame(0, 62);

    write_reg(w, A_PORT_CTRL, R_PORT_CTRL_RX_ENABLE_MASK);
    put_tx(w, 0, 100, 0);
    publish_tx(w, 1);
    assert_int_equal(hw_port_tx(&w->port, &frame, 1), 0);
    assert_int_equal(w->num_sent, 0);
    w->rnic_backlog = 1;
    write_reg(w, A_PORT_CTRL, R_PORT_CTRL_TX_ENABLE_MASK);
    assert_int_equal(w->num_sent, 2);
    assert_int_equal(w->rnic_backlog, 0);
}

/* ---- Link */

static void test_port_dead_link_drops_what_is_sent(void **state)
{
    struct world *w = *state;
    struct frame_tx frame = rnic_frame(0, 62);
    uint8_t f[100];

    hw_port_set_cable(&w->port, false);
    settle_port(w);
    assert_false(w->link_is_up);
    put_tx(w, 0, 100, 0);
    publish_tx(w, 1);
    assert_int_equal(tx_ci(w), 1);
    assert_int_equal(hw_port_tx(&w->port, &frame, 1), 1);
    assert_int_equal(w->num_sent, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_LINK), 2);
    receive_frame(w, f, plain_frame(f, our_mac, 0x0800, 100), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_PKTS), 0);
}

static void test_port_link_loss_drops_waiting_frames(void **state)
{
    struct world *w = *state;
    struct frame_tx frame = rnic_frame(0, 62);

    w->link_room = 0;
    assert_int_equal(hw_port_tx(&w->port, &frame, 1), 0);
    put_tx(w, 0, 100, 0);
    publish_tx(w, 1);
    w->rnic_backlog = 1;
    hw_port_set_cable(&w->port, false);
    settle_port(w);
    assert_int_equal(tx_ci(w), 1);
    assert_int_equal(w->rnic_backlog, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_LINK), 2);
}

static void test_port_reports_link_changes(void **state)
{
    struct world *w = *state;
    unsigned int before = w->link_changes;

    write_reg(w, A_PORT_IRQ_ENABLE, R_PORT_IRQ_STATUS_LINK_MASK);
    assert_false(w->env.irq);
    write_reg(w, A_PORT_LINK_CTRL,
              read_reg(w, A_PORT_LINK_CTRL) & ~R_PORT_LINK_CTRL_ENABLE_MASK);
    assert_true(w->env.irq);
    assert_int_equal(read_reg(w, A_PORT_LINK_STATUS),
                     R_PORT_LINK_STATUS_SIGNAL_MASK);
    hw_port_set_cable(&w->port, false);
    assert_int_equal(w->link_changes, before + 1);
    assert_int_equal(read_reg(w, A_PORT_LINK_STATUS), 0);
    link_on(w);
    assert_int_equal(w->link_changes, before + 1);
    hw_port_set_cable(&w->port, true);
    assert_int_equal(w->link_changes, before + 2);
    assert_true(w->link_is_up);
    assert_int_equal(FIELD_GET(read_reg(w, A_PORT_LINK_STATUS),
                               PORT_LINK_STATUS, SPEED_MBPS),
                     25000);
    assert_int_equal(
        FIELD_GET(read_reg(w, A_PORT_LINK_STATUS), PORT_LINK_STATUS, FEC),
        PORT_FEC_FC);
}

static void test_port_refuses_unknown_speeds_and_fec(void **state)
{
    struct world *w = *state;
    uint32_t good = read_reg(w, A_PORT_LINK_CTRL);

    write_reg(w, A_PORT_LINK_CTRL,
              FIELD_MAKE(PORT_LINK_CTRL, SPEED_MBPS, 40000) | 1);
    assert_int_equal(read_reg(w, A_PORT_LINK_CTRL), good);
    write_reg(w, A_PORT_LINK_CTRL, good | R_PORT_LINK_CTRL_FEC_MASK);
    assert_int_equal(read_reg(w, A_PORT_LINK_CTRL), good);
    write_reg(w, A_PORT_LINK_CTRL,
              FIELD_MAKE(PORT_LINK_CTRL, SPEED_MBPS, 10000) |
                  FIELD_MAKE(PORT_LINK_CTRL, FEC, PORT_FEC_RS) | 1);
    assert_int_equal(read_reg(w, A_PORT_LINK_CTRL), good);
}

/* ---- The far end, and bit errors of the cable */

static uint32_t phy_status(struct world *w)
{
    return read_reg(w, A_PORT_PHY_STATUS);
}

static void test_port_fec_mismatch_keeps_the_link_down_with_a_reason(
    void **state)
{
    struct world *w = *state;
    struct phy_partner partner = w->port.partner;
    uint8_t f[100];
    uint32_t len = plain_frame(f, our_mac, 0x0800, 100);

    assert_int_equal(phy_status(w), R_PORT_PHY_STATUS_SIGNAL_MASK);
    assert_int_equal(read_reg(w, A_PORT_PHY_AN),
                     PORT_AN_10G_FEC_ABILITY | PORT_AN_25G_BASER_REQUEST |
                         PORT_AN_10G_FEC_ABILITY << 8 |
                         R_PORT_PHY_AN_NEGOTIATED_MASK);
    partner.fec = PORT_FEC_RS;
    hw_port_set_partner(&w->port, &partner);
    assert_false(w->link_is_up);
    assert_int_equal(phy_status(w), R_PORT_PHY_STATUS_SIGNAL_MASK |
                                        R_PORT_PHY_STATUS_LOCAL_FAULT_MASK |
                                        PORT_REASON_FEC << 4);
    assert_int_equal(read_reg(w, A_PORT_LINK_STATUS),
                     R_PORT_LINK_STATUS_SIGNAL_MASK);
    assert_int_equal(read_reg(w, A_PORT_PHY_AN) >> 8, 0);
    receive_frame(w, f, len, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_PKTS), 0);

    write_reg(w, A_PORT_LINK_CTRL,
              FIELD_MAKE(PORT_LINK_CTRL, SPEED_MBPS, 25000) |
                  FIELD_MAKE(PORT_LINK_CTRL, FEC, PORT_FEC_RS) | 1);
    assert_true(w->link_is_up);
    assert_int_equal(
        FIELD_GET(read_reg(w, A_PORT_LINK_STATUS), PORT_LINK_STATUS, FEC),
        PORT_FEC_RS);
    receive_frame(w, f, len, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_PKTS), 1);
}

/* A link that stays down for a new reason raises an interrupt. */
static void test_port_interrupts_for_a_new_reason(void **state)
{
    struct world *w = *state;
    struct phy_partner partner = w->port.partner;

    write_reg(w, A_PORT_IRQ_ENABLE, R_PORT_IRQ_STATUS_LINK_MASK);
    partner.fec = PORT_FEC_NONE;
    hw_port_set_partner(&w->port, &partner);
    assert_true(w->env.irq);
    write_reg(w, A_PORT_IRQ_STATUS, UINT32_MAX);
    hw_port_set_partner(&w->port, &partner);
    assert_false(w->env.irq);
    partner.is_present = 0;
    hw_port_set_partner(&w->port, &partner);
    assert_true(w->env.irq);
    assert_int_equal(FIELD_GET(phy_status(w), PORT_PHY_STATUS, REASON),
                     PORT_REASON_NO_PARTNER);
}

static void test_port_bit_errors_lose_frames_both_ways(void **state)
{
    struct world *w = *state;
    struct frame_tx frame = {.head_len = 100};
    uint8_t f[100];
    uint32_t len = plain_frame(f, our_mac, 0x0800, 100);
    uint64_t lost = 0;

    hw_port_set_errors(&w->port, 1, FEC_BER_ONE / 10000);
    for (unsigned int i = 0; i < 4000; i++) {
        receive_frame(w, f, len, 0);
        w->link_room = 1;
        w->num_sent = 0;
        assert_int_equal(hw_port_tx(&w->port, &frame, 1), 1);
        lost += w->num_sent == 0;
    }
    /*
     * FC-FEC at 10^-4: 2.4 % of the codewords are lost, 16.7 % are corrected.
     */
    assert_in_range(read_counter(w, PORT_COUNT_FCS_ERRORS), 80, 250);
    assert_in_range(lost, 80, 250);
    assert_int_equal(w->port.partner_lost, lost);
    assert_in_range(read_counter(w, PORT_COUNT_FEC_UNCORRECTABLE_BLOCKS),
                    read_counter(w, PORT_COUNT_FCS_ERRORS), 300);
    assert_in_range(read_counter(w, PORT_COUNT_FEC_CORRECTED_BLOCKS), 700,
                    1200);
    assert_in_range(read_counter(w, PORT_COUNT_FEC_CORRECTED), 600, 1200);
    assert_int_equal(read_counter(w, PORT_COUNT_PKTS), 4000);
}

/* A frame that the link refused does not get a second chance of errors. */
static void test_port_bit_errors_and_back_pressure(void **state)
{
    struct world *w = *state;
    struct frame_tx frame = {.head_len = 100};

    hw_port_set_errors(&w->port, 1, FEC_BER_ONE / 1000);
    w->link_room = 0;
    while (hw_port_tx(&w->port, &frame, 1) == 1) {
    }
    for (unsigned int i = 0; i < 100; i++) {
        uint64_t before = w->port.partner_lost;

        hw_port_link_ready(&w->port);
        assert_int_equal(hw_port_tx(&w->port, &frame, 1), 0);
        assert_int_equal(w->port.partner_lost, before);
    }
}

/* ---- Registers */

static void test_port_refuses_rings_outside_dram(void **state)
{
    static const uint32_t low[] = {A_PORT_PAGE_LO, A_PORT_RX_LO, A_PORT_TX_LO};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(low); i++) {
        uint32_t good = read_reg(w, low[i]);

        write_reg(w, A_PORT_RING_ENABLE, 0);
        write_reg(w, low[i], 0x1000);
        write_reg(w, A_PORT_RING_ENABLE, 1);
        assert_int_equal(read_reg(w, A_PORT_RING_ENABLE), 0);
        write_reg(w, low[i], good + 4);
        write_reg(w, A_PORT_RING_ENABLE, 1);
        assert_int_equal(read_reg(w, A_PORT_RING_ENABLE), 0);
        write_reg(w, low[i], good);
    }
    for (uint32_t size = 0; size < 16; size++) {
        write_reg(w, A_PORT_RING_SIZES, size | 1 << 8);
        write_reg(w, A_PORT_RING_ENABLE, 1);
        assert_int_equal(read_reg(w, A_PORT_RING_ENABLE),
                         size >= 1 && size <= 12);
        write_reg(w, A_PORT_RING_ENABLE, 0);
    }
}

static void test_port_reset_clears_everything_but_the_cable(void **state)
{
    struct world *w = *state;
    uint8_t f[100];

    receive_frame(w, f, plain_frame(f, our_mac, 0x0800, 100), 0);
    write_reg(w, A_PORT_CTRL, R_PORT_CTRL_RESET_MASK);
    assert_false(w->link_is_up);
    assert_int_equal(read_reg(w, A_PORT_CTRL), 0);
    assert_int_equal(read_reg(w, A_PORT_MTU), 1500);
    assert_int_equal(read_reg(w, A_PORT_RING_ENABLE), 0);
    assert_int_equal(read_reg(w, A_PORT_MAC_HI), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_PKTS), 0);
    assert_int_equal(read_reg(w, A_PORT_LINK_STATUS),
                     R_PORT_LINK_STATUS_SIGNAL_MASK);
}

static void test_port_registers_that_do_not_exist(void **state)
{
    struct world *w = *state;
    uint32_t value = 1;

    assert_false(hw_port_read(&w->port, 0x3fc, &value));
    assert_int_equal(value, 0);
    assert_false(hw_port_read(&w->port, 0xa00, &value));
    assert_false(hw_port_write(&w->port, A_PORT_ID, 0));
    assert_false(hw_port_write(&w->port, PORT_COUNTER_BASE, 0));
    /* Reserved for the PHY. */
    assert_true(hw_port_read(&w->port, 0x2fc, &value));
    assert_int_equal(read_reg(w, A_PORT_ID), PORT_ID_VALUE);
    assert_int_equal(FIELD_GET(read_reg(w, A_PORT_LIMITS), PORT_LIMITS, INDEX),
                     1);
}

static void test_port_counter_high_word_is_latched(void **state)
{
    struct world *w = *state;
    uint32_t at = PORT_COUNTER_BASE + 8 * PORT_COUNT_PKTS;

    w->port.counters[PORT_COUNT_PKTS] = UINT64_C(0x1ffffffff);
    assert_int_equal(read_reg(w, at), 0xffffffff);
    w->port.counters[PORT_COUNT_PKTS]++;
    assert_int_equal(read_reg(w, at + 4), 1);
}

static void test_port_continues_after_save_and_load(void **state)
{
    struct world *w = *state;
    struct hw_port_config config = w->port.config;
    uint8_t f[100];
    uint32_t len = plain_frame(f, our_mac, 0x0800, 100);
    struct hw_port copy;

    receive_frame(w, f, len, 0);
    memcpy(&copy, &w->port, sizeof(copy));
    memset(copy.mac_match, 0, sizeof(copy.mac_match));
    copy.multicast_hash = 0;
    hw_port_init(&w->port, &config);
    w->port = copy;
    w->port.config = config;
    assert_true(hw_port_loaded(&w->port));
    receive_frame(w, f, len, 0);
    assert_int_equal(rx_pi(w), 2);

    w->port.rx_mask = 4;
    assert_false(hw_port_loaded(&w->port));
    w->port.rx_mask = 3;
    w->port.page_addr = 0;
    assert_false(hw_port_loaded(&w->port));
}

TEST_FIXTURE(setup, teardown)
