/* SPDX-License-Identifier: BSD-2-Clause */
/* The port's driver: its register writes, and its work with the port's core. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/drivers/port.h"
#include "hw-model/port/hw_port.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"
#include "tests/unit/firmware/drivers/model.h"

enum { RX_FRAMES = 4, TX_FRAMES = 4, MTU = 4200, SENT = 64, KEPT = 64 };

static const uint8_t mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};

struct world {
    struct hw_port core;
    struct port port;
    unsigned int link_room;
    unsigned int num_sent;
    uint32_t sent_len[SENT];
    uint8_t sent[SENT][KEPT];
};

static struct world *world;

static bool core_read(uint32_t offset, uint32_t *value)
{
    return hw_port_read(&world->core, offset, value);
}

static bool core_write(uint32_t offset, uint32_t value)
{
    return hw_port_write(&world->core, offset, value);
}

static void core_run(void)
{
    hw_port_run(&world->core);
}

static unsigned int link_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    unsigned int n = MIN(count, world->link_room);

    (void)ctx;
    for (unsigned int i = 0; i < n; i++) {
        uint8_t all[FRAME_LEN_MAX];
        uint32_t len = frame_tx_copy(all, &burst[i]);

        memcpy(world->sent[world->num_sent], all, MIN(len, (uint32_t)KEPT));
        world->sent_len[world->num_sent++] = len;
    }
    world->link_room -= n;
    return n;
}

static void rnic_rx(void *ctx, const struct frame_rx *frames, unsigned int n)
{
    (void)ctx;
    (void)frames;
    (void)n;
}

static void rnic_ready(void *ctx)
{
    (void)ctx;
}

static void link_changed(void *ctx, bool is_up)
{
    (void)ctx;
    (void)is_up;
}

static struct port_config port_test_config(void)
{
    return (struct port_config){
        .regs = MODEL_REGS,
        .dram = &model.dram,
        .rx_frames = RX_FRAMES,
        .tx_frames = TX_FRAMES,
        .mtu_bytes = MTU,
    };
}

static int setup(void **state)
{
    struct hw_port_config core = {
        .ops = {.rnic_rx = rnic_rx,
                .rnic_ready = rnic_ready,
                .link_changed = link_changed},
        .link = {.send = link_send},
    };
    struct port_config driver;

    model_init();
    model.read = core_read;
    model.write = core_write;
    model.run = core_run;
    world = calloc(1, sizeof(*world));
    world->link_room = SENT;
    core.env = test_env_init(&model.env, model.dram_base, MODEL_DRAM_BYTES);
    hw_port_init(&world->core, &core);
    hw_port_set_cable(&world->core, true);
    driver = port_test_config();
    assert_int_equal(port_init(&world->port, &driver), INIT_OK);
    port_set_mac(&world->port, 0, mac);
    assert_true(port_link_enable(&world->port, 25000, PORT_FEC_FC));
    port_irq_enable(&world->port);
    (void)port_irq_take(&world->port);
    model_forget_log();
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(world);
    free(model.dram_base);
    return 0;
}

static void receive_frame(uint8_t mark, uint32_t len)
{
    uint8_t f[MTU + 18];
    struct frame_rx frame = {.data = f, .len_bytes = len};

    memset(f, mark, sizeof(f));
    memcpy(f, mac, 6);
    put_be16(f + 12, 0x0806);
    hw_port_rx(&world->core, &frame, 1);
}

static void test_port_init_writes_in_this_order(void **state)
{
    uint32_t at[5];
    struct port_config driver = port_test_config();
    struct port port;
    size_t used = (model.dram.used_bytes + 63) & ~(size_t)63;
    struct model_write want[] = {
        {A_PORT_CTRL, 1u << 31},
        {A_PORT_PAGE_LO, 0},
        {A_PORT_PAGE_HI, 0},
        {A_PORT_RX_LO, 0},
        {A_PORT_RX_HI, 0},
        {A_PORT_TX_LO, 0},
        {A_PORT_TX_HI, 0},
        {A_PORT_RING_SIZES, 2 | 2 << 8},
        {A_PORT_RING_ENABLE, 1},
        {A_PORT_MTU, MTU},
        {A_PORT_CTRL, 1 | 2 | 1 << 5},
    };

    (void)state;
    at[0] = (uint32_t)(TEST_DRAM_BASE + used);
    at[1] = at[0] + PORT_PAGE_LEN;
    at[2] = at[1] + RX_FRAMES * PORT_RXD_LEN;
    want[1].value = at[0];
    want[3].value = at[1];
    want[5].value = at[2];
    assert_int_equal(port_init(&port, &driver), INIT_OK);
    model_expect_log(want, ARRAY_LEN(want));
}

static void test_port_init_refuses_invalid_configurations(void **state)
{
    struct port_config good = port_test_config(), bad;
    struct port port;

    (void)state;
    bad = good;
    bad.rx_frames = 3;
    assert_int_equal(port_init(&port, &bad), INIT_BAD_CONFIG);
    bad = good;
    bad.tx_frames = 8192;
    assert_int_equal(port_init(&port, &bad), INIT_BAD_CONFIG);
    bad = good;
    bad.mtu_bytes = 9001;
    assert_int_equal(port_init(&port, &bad), INIT_BAD_CONFIG);
    bad = good;
    bad.rx_frames = 4096; /* 37 MB: more than the DRAM has */
    assert_int_equal(port_init(&port, &bad), INIT_NO_MEMORY);
    bad = good;
    /* There is no port at this address. */
    bad.regs = MODEL_REGS + A_PORT_CTRL - A_PORT_ID;
    assert_int_equal(port_init(&port, &bad), INIT_NO_DEVICE);
    assert_int_equal(model.num_log, 0);
}

static void test_port_filters_and_link_write_these_registers(void **state)
{
    struct world *w = *state;
    const struct model_write want[] = {
        {A_PORT_MAC_HI + 8 * 7, 0},
        {A_PORT_MAC_LO + 8 * 7, 0x22334455},
        {A_PORT_MAC_HI + 8 * 7, 0x80000211},
        {A_PORT_MAC_HI, 0},
        {A_PORT_MULTICAST_HI + 8 * 63, 0},
        {A_PORT_MULTICAST_LO + 8 * 63, 0x22334455},
        {A_PORT_MULTICAST_HI + 8 * 63, 0x80000211},
        {A_PORT_VLAN + 4 * 127, 1u << 30},
        {A_PORT_VLAN + 4 * 127, 0},
        {A_PORT_CTRL, 3 | 1 << 5 | 1 << 4},
        {A_PORT_CTRL, 3 | 1 << 5 | 1 << 4 | 1 << 2},
        {A_PORT_CTRL, 3 | 1 << 5 | 1 << 4 | 1 << 2 | 1 << 6},
        {A_PORT_CTRL, 3 | 1 << 5 | 1 << 4 | 1 << 2},
        {A_PORT_PAUSE, 0x081},
        {A_PORT_PAUSE, 0x100},
        {A_PORT_LINK_CTRL, 25000 << 8 | 1 << 4},
        {A_PORT_LINK_CTRL, 10000 << 8 | 1 << 4 | 1},
        {A_PORT_LINK_CTRL, 40000 << 8 | 2 << 4 | 1},
        {A_PORT_MTU, 9000},
    };
    struct port_link link;

    port_set_mac(&w->port, 7, mac);
    port_set_mac(&w->port, 0, NULL);
    port_set_multicast(&w->port, 63, mac);
    port_set_vlan(&w->port, 4094, true);
    port_set_vlan(&w->port, 4094, false);
    port_set_vlan_filter(&w->port, true);
    port_set_promiscuous(&w->port, true);
    port_set_roce_v1(&w->port, true);
    port_set_roce_v1(&w->port, false);
    port_set_pause(&w->port, 0x81, false);
    port_set_pause(&w->port, 0, true);
    port_link_get(&w->port, &link);
    assert_true(link.is_up && link.has_signal && link.speed_mbps == 25000);
    port_link_disable(&w->port);
    port_link_get(&w->port, &link);
    assert_true(!link.is_up && link.has_signal && link.speed_mbps == 0);
    w->core.partner.speed_mbps = 10000;
    assert_true(port_link_enable(&w->port, 10000, PORT_FEC_FC));
    assert_false(port_link_enable(&w->port, 40000, PORT_FEC_RS));
    assert_true(port_set_mtu(&w->port, 9000));
    assert_false(port_set_mtu(&w->port, 67));
    model_expect_log(want, ARRAY_LEN(want));
    port_link_get(&w->port, &link);
    assert_true(link.is_up && link.fec == PORT_FEC_FC &&
                link.speed_mbps == 10000);
}

static void test_port_reports_why_the_link_is_down(void **state)
{
    struct world *w = *state;
    struct phy_partner partner = w->core.partner;
    struct port_link link;

    partner.fec = PORT_FEC_RS;
    hw_port_set_partner(&w->core, &partner);
    assert_int_equal(port_irq_take(&w->port), R_PORT_IRQ_STATUS_LINK_MASK);
    port_link_get(&w->port, &link);
    assert_true(!link.is_up && link.has_signal && link.has_local_fault &&
                !link.has_remote_fault && link.reason == PORT_REASON_FEC);
    assert_true(port_link_enable(&w->port, 25000, PORT_FEC_RS));
    port_link_get(&w->port, &link);
    assert_true(link.is_up && !link.has_local_fault &&
                link.reason == PORT_REASON_NONE && link.fec == PORT_FEC_RS);
}

/* In this test, the other port's registers are those of the same core. */
static void test_port_pair_has_one_speed(void **state)
{
    struct world *w = *state;
    struct port other = {.regs = MODEL_REGS};

    port_pair(&w->port, &other);
    model_forget_log();
    assert_false(port_link_enable(&w->port, 10000, PORT_FEC_FC));
    assert_false(port_link_enable(&other, 10000, PORT_FEC_FC));
    assert_int_equal(model.num_log, 0);
    assert_true(port_link_enable(&w->port, 25000, PORT_FEC_RS));
    port_link_disable(&other);
    assert_true(port_link_enable(&w->port, 10000, PORT_FEC_FC));
}

static void test_port_receives_in_place_around_the_ring(void **state)
{
    struct world *w = *state;
    struct port_frame frame;

    assert_false(port_rx_is_waiting(&w->port));
    assert_false(port_rx_peek(&w->port, &frame));
    for (uint8_t i = 0; i < 3 * RX_FRAMES; i++) {
        model.env.now_ns = i;
        receive_frame(i, 100u + i);
        assert_true(port_rx_is_waiting(&w->port));
        assert_true(port_rx_peek(&w->port, &frame));
        assert_true(port_rx_peek(&w->port, &frame)); /* still the same frame */
        assert_int_equal(frame.len_bytes, 100 + i);
        assert_int_equal(frame.timestamp_ns, i);
        assert_int_equal(frame.data[99], i);
        assert_int_equal(frame.flags, 0);
        port_rx_pop(&w->port);
        assert_false(port_rx_is_waiting(&w->port));
        assert_false(port_rx_peek(&w->port, &frame));
    }
    /* The ring is full: new frames are dropped, and the stored ones stay. */
    for (uint8_t i = 0; i < RX_FRAMES + 2; i++) {
        receive_frame(i, 100);
    }
    for (uint8_t i = 0; i < RX_FRAMES; i++) {
        assert_true(port_rx_peek(&w->port, &frame));
        assert_int_equal(frame.data[50], i);
        port_rx_pop(&w->port);
    }
    assert_false(port_rx_peek(&w->port, &frame));
    assert_int_equal(model.num_log, 0);
    assert_int_equal(model.reads, 0);
    assert_int_equal(port_counter_read(&w->port, PORT_COUNT_RX_DROPPED), 2);
}

static bool send_one(struct world *w, uint8_t mark, uint32_t len)
{
    uint8_t *buf = port_tx_begin(&w->port);

    if (buf == NULL) {
        return false;
    }
    assert_ptr_equal(buf, port_tx_begin(&w->port));
    memset(buf, mark, len);
    port_tx_commit(&w->port, len, 0);
    return true;
}

static void test_port_sends_with_one_kick_per_burst(void **state)
{
    const struct model_write kick = {A_PORT_KICK, 1};
    struct world *w = *state;

    for (uint8_t burst = 0; burst < 5; burst++) {
        assert_true(send_one(w, (uint8_t)(burst * 2), 60));
        assert_true(send_one(w, (uint8_t)(burst * 2 + 1), MTU + 18));
        assert_int_equal(w->num_sent, burst * 2);
        model_forget_log();
        port_tx_kick(&w->port);
        model_expect_log(&kick, 1);
        assert_int_equal(w->num_sent, burst * 2 + 2);
        assert_int_equal(w->sent[burst * 2 + 1][59], burst * 2 + 1);
        assert_int_equal(w->sent_len[burst * 2 + 1], MTU + 18);
    }
    model_forget_log();
    port_tx_kick(&w->port); /* nothing new to send */
    assert_int_equal(model.num_log, 0);
}

static void test_port_has_room_again_after_the_ring_was_full(void **state)
{
    struct world *w = *state;

    w->link_room = 1;
    for (uint8_t i = 0; i < TX_FRAMES; i++) {
        assert_true(send_one(w, i, 60));
    }
    assert_false(send_one(w, 9, 60));
    port_tx_kick(&w->port);
    assert_true(send_one(w, 4, 60));
    assert_false(send_one(w, 9, 60));
    model_forget_log();
    port_tx_kick(&w->port);
    assert_int_equal(model.num_log, 0); /* the port is blocked, not asleep */
    assert_true(port_arm(&w->port));
    assert_false(model.env.irq);
    w->link_room = SENT;
    hw_port_link_ready(&w->core);
    assert_true(model.env.irq);
    assert_int_equal(port_irq_take(&w->port), 1);
    assert_false(model.env.irq);
    assert_int_equal(w->num_sent, 5);
    for (uint8_t i = 0; i < 5; i++) {
        assert_int_equal(w->sent[i][30], i);
    }
    assert_true(send_one(w, 5, 60));
}

static void test_port_arm_loses_no_frame(void **state)
{
    struct world *w = *state;
    struct port_frame frame;

    receive_frame(1, 100);
    assert_false(port_arm(&w->port)); /* a frame is there already */
    assert_true(port_rx_peek(&w->port, &frame));
    port_rx_pop(&w->port);
    assert_true(port_arm(&w->port));
    assert_false(model.env.irq);
    receive_frame(2, 100);
    assert_true(model.env.irq);
    assert_int_equal(port_irq_take(&w->port), 1);
    receive_frame(3, 100);
    assert_false(model.env.irq);
}

static void test_port_reports_link_changes(void **state)
{
    struct world *w = *state;

    hw_port_set_cable(&w->core, false);
    assert_true(model.env.irq);
    assert_int_equal(port_irq_take(&w->port), 2);
    assert_false(model.env.irq);
    assert_int_equal(port_counter_read(&w->port, PORT_COUNT_LINK_CHANGES), 2);
}

TEST_FIXTURE(setup, teardown)
