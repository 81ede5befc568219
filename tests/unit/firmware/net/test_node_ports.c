/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links and raw frames of the two ports, attached separately or as an
 * aggregate.
 */
#include "fake_port.h"

#include "firmware/hal/time.h"
#include "firmware/net/node_paths.h"
#include "tests/test_fixture.h"

static const uint8_t unicast[6] = {0x02, 0, 0, 0, 0, 0x10};
static const uint8_t lldp_group[6] = {0x01, 0x80, 0xc2, 0, 0, 0x0e};

/* The stack, and an attachment that the test controls. */
static struct {
    struct node_ports ports;
    struct log log;
    bool stack_is_full;
    unsigned int inputs, at;
    uint8_t sender, stack_port;
    bool accepts;
    unsigned int links;
    bool link_is_up;
} world;

bool net_stack_input(struct net_stack *stack, uint8_t port,
                     const uint8_t *frame, size_t len, uint64_t now_us)
{
    assert_ptr_equal(stack, world.ports.stack);
    assert_int_equal(now_us, 77);
    assert_non_null(frame);
    assert_in_range(len, 14, FAKE_FRAME);
    if (world.stack_is_full) {
        return false;
    }
    world.at = port;
    world.inputs++;
    return true;
}

void net_stack_link(struct net_stack *stack, uint8_t port, bool is_up,
                    uint64_t now_us)
{
    (void)stack;
    (void)port;
    (void)is_up;
    (void)now_us;
}

uint8_t node_paths_mtu(uint32_t mtu_bytes)
{
    return mtu_bytes >= 1500 ? 3 : 1;
}

uint64_t hal_now_us(void)
{
    return 0;
}

static uint8_t stack_port(uint8_t port)
{
    return port;
}

static uint8_t sender_port(const void *ctx, uint8_t at)
{
    (void)at;
    assert_ptr_equal(ctx, &world);
    return world.sender;
}

static bool accept_frame(void *ctx, uint8_t port, const uint8_t *frame,
                         size_t len, uint8_t *at, uint64_t now_us)
{
    (void)port;
    (void)frame;
    (void)len;
    (void)now_us;
    assert_ptr_equal(ctx, &world);
    *at = world.stack_port;
    return world.accepts;
}

static void link_changed(void *ctx, uint8_t port, bool is_up, uint64_t now_us)
{
    (void)port;
    (void)now_us;
    assert_ptr_equal(ctx, &world);
    world.links++;
    world.link_is_up = is_up;
}

static const struct attachment_ops ops = {
    .stack_port = stack_port,
    .sender = sender_port,
    .accept = accept_frame,
    .link = link_changed,
};

static struct node_ports_config config_of(void)
{
    static struct net_stack stack;

    return (struct node_ports_config){
        .log = &world.log,
        .stack = &stack,
        .attachment = {&ops, &world},
        .port = {{FAKE_REGS, unicast, 9000, 25, CONFIG_FEC_RS},
                 {FAKE_REGS + 1, unicast, 576, 25, CONFIG_FEC_NONE}},
    };
}

static int new_world(void **state)
{
    struct node_ports_config config = config_of();

    (void)state;
    memset(&world, 0, sizeof(world));
    fake_ports_reset();
    world.accepts = true;
    log_init(&world.log, (struct log_sink){0});
    assert_int_equal(node_ports_init(&world.ports, &config).result, INIT_OK);
    return 0;
}

static bool log_says(const char *text)
{
    assert_in_range(world.log.head, 0, LOG_RING_BYTES - 1);
    world.log.ring[world.log.head] = '\0';
    return strstr(world.log.ring, text) != NULL;
}

static void test_ports_start_with_their_settings(void **state)
{
    (void)state;
    assert_int_equal(fake_ports[0].speed_mbps, 25000);
    assert_int_equal(fake_ports[0].fec, PORT_FEC_RS);
    assert_int_equal(fake_ports[1].fec, PORT_FEC_NONE);
    assert_memory_equal(fake_ports[1].mac, unicast, 6);
    assert_int_equal(world.ports.port[0].path_mtu, 3);
    assert_int_equal(world.ports.port[1].path_mtu, 1);
}

static void test_a_port_that_does_not_start_is_named(void **state)
{
    struct node_ports_config config = config_of();
    struct init_report report;

    (void)state;
    fake_ports[1].refuses_start = true;
    report = node_ports_init(&world.ports, &config);
    assert_int_equal(report.result, INIT_REFUSED);
    assert_string_equal(report.part, "port 1");
}

static void test_refused_speed_leaves_the_port_off(void **state)
{
    struct node_ports_config config = config_of();

    (void)state;
    fake_ports[0].refuses_link = true;
    assert_int_equal(node_ports_init(&world.ports, &config).result, INIT_OK);
    assert_true(log_says("port 0: 25 Gb/s with this FEC is refused"));
    assert_false(node_ports_set_link(&world.ports, 0, 10, CONFIG_FEC_FC));
}

static void test_link_changes_are_reported_once(void **state)
{
    struct port_link *link = &fake_ports[0].link;

    (void)state;
    link->reason = PORT_REASON_DISABLED;
    assert_int_equal(node_ports_check_link(&world.ports, 0, 77), 0);
    assert_int_equal(world.links, 0);
    assert_true(log_says("port 0: link down"));
    *link = (struct port_link){.is_up = true, .speed_mbps = 25000, .fec = 2};
    assert_int_equal(node_ports_check_link(&world.ports, 0, 77), 25000);
    assert_int_equal(node_ports_check_link(&world.ports, 0, 77), 0);
    assert_int_equal(world.links, 1);
    assert_true(world.link_is_up);
    assert_true(log_says("port 0: link up, 25000 Mb/s, RS-FEC"));
    link->is_up = false;
    assert_int_equal(node_ports_check_link(&world.ports, 0, 77), 0);
    assert_int_equal(world.links, 2);
    assert_false(world.link_is_up);
}

static void test_received_frames_go_where_the_attachment_says(void **state)
{
    (void)state;
    world.stack_port = 1;
    fake_port_receive(0, unicast, 60);
    assert_true(node_ports_receive(&world.ports, 0, 4, 77));
    assert_int_equal(world.inputs, 1);
    assert_int_equal(world.at, 1);
    assert_false(node_ports_receive(&world.ports, 0, 4, 77));
}

static void test_frame_that_is_not_accepted_is_dropped(void **state)
{
    (void)state;
    world.accepts = false;
    fake_port_receive(0, unicast, 60);
    assert_true(node_ports_receive(&world.ports, 0, 4, 77));
    assert_int_equal(world.inputs, 0);
    assert_int_equal(fake_ports[0].popped, 1);
}

static void test_receive_keeps_to_its_budget(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 5; i++) {
        fake_port_receive(0, unicast, 60);
    }
    assert_true(node_ports_receive(&world.ports, 0, 3, 77));
    assert_int_equal(world.inputs, 3);
    assert_true(node_ports_receive(&world.ports, 0, 3, 77));
    assert_int_equal(world.inputs, 5);
}

static void test_frame_waits_when_there_is_no_room_for_an_answer(void **state)
{
    (void)state;
    world.stack_is_full = true;
    fake_port_receive(0, unicast, 60);
    assert_false(node_ports_receive(&world.ports, 0, 4, 77));
    assert_int_equal(fake_ports[0].popped, 0);
    world.stack_is_full = false;
    assert_true(node_ports_receive(&world.ports, 0, 4, 77));
    assert_int_equal(fake_ports[0].popped, 1);
}

/* Build a frame for the stack's port 0 and send it. */
static void send_frame(const uint8_t *dst)
{
    uint8_t *frame = node_ports_tx_begin(&world.ports, 0);

    assert_non_null(frame);
    memset(frame, 0xc3, FAKE_FRAME);
    memcpy(frame, dst, 6);
    node_ports_tx_commit(&world.ports, 0, 60, 5);
}

static void test_frames_leave_by_the_sender(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < NET_PORTS; i++) {
        world.sender = (uint8_t)i;
        send_frame(unicast);
        assert_int_equal(fake_ports[i].sent_count, 1);
        assert_int_equal(fake_ports[i].sent[0].len, 60);
        assert_int_equal(fake_ports[i].sent[0].priority, 5);
    }
}

static void test_link_local_frame_stays_on_its_own_link(void **state)
{
    (void)state;
    world.sender = 1;
    send_frame(lldp_group);
    assert_int_equal(fake_ports[1].sent_count, 0);
    assert_int_equal(fake_ports[0].sent_count, 1);
    assert_memory_equal(fake_ports[0].sent[0].data, lldp_group, 6);
    assert_int_equal(fake_ports[0].sent[0].data[59], 0xc3);
    assert_int_equal(fake_ports[0].sent[0].priority, 5);
}

static void test_link_local_frame_is_lost_when_its_ring_is_full(void **state)
{
    (void)state;
    world.sender = 1;
    fake_ports[0].is_full = true;
    send_frame(lldp_group);
    assert_int_equal(fake_ports[0].sent_count + fake_ports[1].sent_count, 0);
    send_frame(unicast); /* the same buffer is returned again */
    assert_int_equal(fake_ports[1].sent_count, 1);
}

static void test_full_ring_gives_no_buffer(void **state)
{
    (void)state;
    fake_ports[0].is_full = true;
    assert_null(node_ports_tx_begin(&world.ports, 0));
}

static void test_link_local_addresses_are_the_sixteen_of_a_bridge(void **state)
{
    uint8_t frame[14] = {0x01, 0x80, 0xc2};

    (void)state;
    for (unsigned int last = 0; last < 256; last++) {
        frame[5] = (uint8_t)last;
        assert_int_equal(attachment_is_link_local(frame), last < 16);
    }
    frame[5] = 0;
    frame[4] = 1;
    assert_false(attachment_is_link_local(frame));
}

TEST_FIXTURE(new_world, NULL)
