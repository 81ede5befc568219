/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The aggregate: which port sends, which frames are accepted, and how
 * announcements change the active port.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/net/drive_lag.h"
#include "net/wire/arp.h"
#include "net/wire/eth.h"

#define MS_US     UINT64_C(1000)
#define SECOND_US UINT64_C(1000000)

static const struct mac_addr own_mac = {{2, 0, 0, 0, 0, 1}};
static const struct mac_addr peer_mac = {{2, 0, 0, 0, 0, 9}};

static struct {
    struct net_stack stack;
    struct drive_lag lag;
    struct attachment attachment;
    struct log log;
    uint64_t now_us;
    unsigned int sent; /* frames that the stack has sent */
    uint8_t buffer[NET_FRAME_MAX];

    bool has_block; /* the hardware has an aggregation block */
    uint8_t collect, distribute, active;
    unsigned int heard;
} world;

uint64_t hal_now_us(void)
{
    return 0;
}

/* ---- The aggregation block. */

enum init_result lag_init(struct lag *lag, uintptr_t regs, enum lag_mode mode,
                          bool follows)
{
    lag->regs = regs;
    assert_int_equal(follows, mode == LAG_MODE_STANDBY);
    return world.has_block ? INIT_OK : INIT_NO_DEVICE;
}

void lag_set_members(const struct lag *lag, uint8_t collect, uint8_t distribute)
{
    (void)lag;
    world.collect = collect;
    world.distribute = distribute;
}

void lag_set_active(const struct lag *lag, uint8_t port)
{
    (void)lag;
    world.active = port;
}

uint8_t lag_active(const struct lag *lag)
{
    (void)lag;
    return world.active;
}

/* As in the block, the port that a peer uses becomes the active one. */
void lag_heard(const struct lag *lag, uint8_t port)
{
    (void)lag;
    world.heard++;
    world.active = port;
}

/* ---- The stack. */

static uint8_t *tx_begin(void *ctx, uint8_t port)
{
    (void)ctx;
    (void)port;
    return world.buffer;
}

static void tx_commit(void *ctx, uint8_t port, size_t len, uint8_t priority)
{
    (void)ctx;
    (void)port;
    (void)len;
    (void)priority;
    world.sent++;
}

static enum init_result start_lag(enum config_lag mode, bool has_revert)
{
    const struct config_network network = {
        .lag = mode,
        .lag_has_revert = has_revert,
        .lacp_is_fast = true,
    };
    const struct drive_lag_config config = {
        .log = &world.log,
        .stack = &world.stack,
        .network = &network,
        .mac = own_mac.bytes,
    };
    const struct net_stack_config stack = {
        .ports = {{.mac = own_mac, .mtu_bytes = 1500},
                  {.mac = own_mac, .mtu_bytes = 1500}},
        .addresses = {{.ip = ip_addr_from_v4(0x0a000001),
                       .vlan = NET_VLAN_UNTAGGED,
                       .prefix_bits = 24}},
        .random_seed = 1,
        .tx_begin = tx_begin,
        .tx_commit = tx_commit,
    };

    memset(&world, 0, sizeof(world));
    world.has_block = true;
    world.now_us = 100 * SECOND_US;
    log_init(&world.log, (struct log_sink){0});
    net_stack_init(&world.stack, &stack);
    world.attachment = drive_lag_attachment(&world.lag);
    return drive_lag_init(&world.lag, &config);
}

static uint64_t step_lag(void)
{
    return world.attachment.ops->step(world.attachment.ctx, world.now_us);
}

static void set_link(uint8_t port, bool is_up)
{
    world.attachment.ops->link(world.attachment.ctx, port, is_up, world.now_us);
}

static uint8_t sender_port(void)
{
    return world.attachment.ops->sender(world.attachment.ctx, 0);
}

static bool take_frame(uint8_t port, const uint8_t *frame, size_t len,
                       uint8_t *at)
{
    return world.attachment.ops->accept(world.attachment.ctx, port, frame, len,
                                        at, world.now_us);
}

/* Receive a frame from the peer for the drive. */
static bool take_unicast(uint8_t port, uint8_t *at)
{
    uint8_t frame[60] = {0};
    const struct eth eth = {.dst = own_mac, .src = peer_mac, .type = 0x0800};

    eth_emit(&eth, frame);
    return take_frame(port, frame, sizeof(frame), at);
}

/* Receive a broadcast ARP announcement of 10.0.0.2 with MAC address `from`. */
static void take_announcement(uint8_t port, const struct mac_addr *from)
{
    const struct eth eth = {
        .dst = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
        .src = *from,
        .type = ETHERTYPE_ARP,
    };
    const struct arp arp = {
        .operation = ARP_REQUEST,
        .sender_mac = *from,
        .sender_ip = ip_addr_from_v4(0x0a000002),
        .target_ip = ip_addr_from_v4(0x0a000002),
    };
    uint8_t frame[60] = {0}, at = 9;

    eth_emit(&eth, frame);
    arp_emit(&arp, frame + eth_header_len(&eth));
    assert_true(take_frame(port, frame, sizeof(frame), &at));
    assert_int_equal(at, 0);
}

static unsigned int lines_of_log(void)
{
    unsigned int lines = 0;

    for (uint32_t i = 0; i < world.log.head; i++) {
        lines += world.log.ring[i] == '\n';
    }
    return lines;
}

static void start_standby(void)
{
    assert_int_equal(start_lag(CONFIG_LAG_ACTIVE_STANDBY, false), INIT_OK);
    set_link(0, true);
    set_link(1, true);
    step_lag();
}

static void test_a_machine_without_the_block_is_reported(void **state)
{
    (void)state;
    assert_int_equal(start_lag(CONFIG_LAG_OFF, false), INIT_OK);
    assert_false(drive_lag_is_on(&world.lag));
    assert_int_equal(start_lag(CONFIG_LAG_LACP, false), INIT_OK);
    memset(&world.lag, 0, sizeof(world.lag));
    world.has_block = false;
    {
        const struct config_network network = {.lag = CONFIG_LAG_LACP};
        const struct drive_lag_config config = {
            .log = &world.log,
            .stack = &world.stack,
            .network = &network,
            .mac = own_mac.bytes,
        };

        assert_int_equal(drive_lag_init(&world.lag, &config), INIT_NO_DEVICE);
    }
}

static void test_both_ports_serve_the_stacks_port_0(void **state)
{
    uint8_t at = 9;

    (void)state;
    start_standby();
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        assert_int_equal(world.attachment.ops->stack_port(port), 0);
        assert_true(take_unicast(port, &at));
        assert_int_equal(at, 0);
    }
    assert_int_equal(world.attachment.ops->sender(world.attachment.ctx, 1), 1);
}

static void test_link_local_frames_stay_with_their_link(void **state)
{
    uint8_t frame[60] = {0x01, 0x80, 0xc2, 0, 0, 0x0e}, at = 9;

    (void)state;
    assert_int_equal(start_lag(CONFIG_LAG_LACP, false), INIT_OK);
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        assert_true(take_frame(port, frame, sizeof(frame), &at));
        assert_int_equal(at, port);
    }
    assert_int_equal(world.lag.dropped[0] + world.lag.dropped[1], 0);
}

/* Without LACP at the other end, frames of no port are accepted. */
static void test_frames_of_a_port_that_does_not_collect_are_dropped(
    void **state)
{
    uint8_t at;

    (void)state;
    assert_int_equal(start_lag(CONFIG_LAG_LACP, false), INIT_OK);
    assert_false(take_unicast(1, &at));
    assert_int_equal(world.lag.dropped[1], 1);
    assert_int_equal(world.lag.dropped[0], 0);
}

static void test_aggregate_is_up_while_one_link_is_up(void **state)
{
    const struct attachment *attachment = &world.attachment;

    (void)state;
    assert_int_equal(start_lag(CONFIG_LAG_ACTIVE_STANDBY, false), INIT_OK);
    step_lag();
    assert_false(attachment->ops->is_up(attachment->ctx, 0));
    set_link(1, true);
    assert_true(attachment->ops->is_up(attachment->ctx, 0));
    assert_false(attachment->ops->is_up(attachment->ctx, 1));
    set_link(0, true);
    set_link(1, false);
    assert_true(attachment->ops->is_up(attachment->ctx, 0));
    set_link(0, false);
    assert_false(attachment->ops->is_up(attachment->ctx, 0));
}

static void test_answers_leave_by_the_port_that_a_peer_uses(void **state)
{
    uint8_t at;

    (void)state;
    start_standby();
    assert_int_equal(sender_port(), 0);
    assert_true(take_unicast(1, &at));
    assert_int_equal(world.heard, 1);
    assert_int_equal(sender_port(), 1);
}

/* Run the stack's timers for ten seconds. */
static void run_stack(void)
{
    for (unsigned int i = 0; i < 100; i++) {
        world.now_us += 100 * MS_US;
        net_stack_timer(&world.stack, world.now_us);
    }
}

static void test_change_of_the_active_port_is_announced(void **state)
{
    unsigned int before;

    (void)state;
    start_standby();
    run_stack();
    before = world.sent;
    run_stack();
    assert_int_equal(world.sent, before); /* nothing more to announce */
    /* The block has changed the active port: port 0 lost its link. */
    world.active = 1;
    step_lag();
    run_stack();
    assert_true(world.sent > before);
    before = world.sent;
    step_lag();
    run_stack();
    assert_int_equal(world.sent, before);
}

static void test_announcement_on_the_standby_port_is_followed(void **state)
{
    uint64_t due_us;

    (void)state;
    start_standby();
    take_announcement(1, &peer_mac);
    due_us = step_lag();
    assert_in_range(due_us, world.now_us + 20 * MS_US,
                    world.now_us + 90 * MS_US);
    world.now_us = due_us - 1;
    step_lag();
    assert_int_equal(sender_port(), 0);
    world.now_us = due_us;
    step_lag();
    step_lag();
    assert_int_equal(sender_port(), 1);
}

static void test_announcement_on_both_ports_is_not_followed(void **state)
{
    (void)state;
    start_standby();
    take_announcement(1, &peer_mac);
    take_announcement(0, &peer_mac);
    world.now_us += SECOND_US;
    step_lag();
    assert_int_equal(sender_port(), 0);
    take_announcement(0, &peer_mac); /* in the other order */
    take_announcement(1, &peer_mac);
    world.now_us += SECOND_US;
    step_lag();
    assert_int_equal(sender_port(), 0);
}

static void test_own_announcement_that_comes_back_is_not_followed(void **state)
{
    (void)state;
    start_standby();
    take_announcement(1, &own_mac);
    world.now_us += SECOND_US;
    step_lag();
    assert_int_equal(sender_port(), 0);
}

static void test_primary_becomes_active_again_only_if_configured(void **state)
{
    (void)state;
    for (unsigned int has_revert = 0; has_revert < 2; has_revert++) {
        assert_int_equal(start_lag(CONFIG_LAG_ACTIVE_STANDBY, has_revert != 0),
                         INIT_OK);
        set_link(1, true);
        world.active = 1;
        step_lag();
        set_link(0, true);
        assert_int_equal(world.active, has_revert ? 0 : 1);
    }
}

/*
 * A peer can cause changes at any rate.  The log has eight lines, then one in
 * 10 s.
 */
static void test_changes_are_logged_at_a_limited_rate(void **state)
{
    unsigned int before;
    uint64_t due_us = 0;

    (void)state;
    start_standby();
    for (unsigned int i = 0; i < 100; i++) {
        world.active = (uint8_t)(i % 2);
        due_us = step_lag();
    }
    assert_in_range(lines_of_log(), 8, 14);
    before = lines_of_log();
    assert_in_range(due_us, world.now_us, world.now_us + 10 * SECOND_US);
    world.now_us += 10 * SECOND_US;
    step_lag();
    assert_in_range(lines_of_log(), before + 1, before + 2);
}
