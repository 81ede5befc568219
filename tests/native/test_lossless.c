/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE as converged networks use it: v1, VLANs with priority, ECN marks and
 * CNPs, PFC. Our own initiator is the peer, because rdma_rxe speaks v2 only,
 * ignores CNPs, and sends no PFC. The frames on the cable are written to
 * lossless.pcap, for Wireshark.
 */
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw-model/regs/rnic.h"
#include "lib/bytes.h"
#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/mac_control.h"
#include "net/wire/udp.h"
#include "tests/test_fixture.h"

enum { BLOCKS = 256, PCAP_HEADER_LEN = 24 };

static struct bed bed;

/* What the filter on the cable has counted, and what it does. */
static struct {
    unsigned int v1, v2, cnps, capable;
    unsigned int wrong_tag;  /* RoCE frames not in `vlan` with `priority`. */
    unsigned int wrong_dscp; /* RoCE frames without `dscp`. */
    uint8_t dscp;
    bool marks;       /* Mark all data of the host on port 0. */
    bool marks_drive; /* Mark all data of the drive. */
} seen;

static FILE *pcap;

static void mark_congestion(uint8_t *ip)
{
    struct ipv4 header;

    if (ipv4_parse(&header, ip, IPV4_LEN + 65536)) {
        header.tos |= 3;
        ipv4_emit(&header, ip);
    }
}

static void look_at_v2(uint8_t *ip, unsigned int from)
{
    uint8_t opcode = ip[IPV4_LEN + UDP_LEN];

    seen.v2++;
    seen.cnps += opcode == 0x81;
    seen.capable += (ip[IPV4_TOS] & 3) == 2 && opcode != 0x81;
    seen.wrong_dscp += ip[IPV4_TOS] >> 2 != seen.dscp && opcode != 0x81;
    if ((from == 0 ? seen.marks_drive : seen.marks) && opcode < 0x20 &&
        (ip[IPV4_TOS] & 3) == 2) {
        mark_congestion(ip);
    }
}

/* End 0 is the drive's. */
static enum cable_verdict inspect_frame(void *ctx, unsigned int from,
                                        uint64_t number, uint8_t *data,
                                        uint32_t *len_bytes)
{
    struct eth eth;
    uint8_t *ip;
    bool is_roce;

    (void)ctx;
    (void)number;
    assert_true(eth_parse(&eth, data, *len_bytes));
    ip = data + eth_header_len(&eth);
    is_roce = eth.type == ETHERTYPE_ROCE_V1 ||
              (eth.type == ETHERTYPE_IPV4 && ip[IPV4_PROTOCOL] == 17 &&
               get_be16(ip + IPV4_LEN + UDP_DST_PORT) == UDP_PORT_ROCE);
    if (!is_roce) {
        return CABLE_PASS;
    }
    if (eth.type == ETHERTYPE_ROCE_V1) {
        seen.v1++;
    } else {
        look_at_v2(ip, from);
    }
    seen.wrong_tag += eth.vlan != bed.vlan || eth.tagged != (bed.vlan != 0) ||
                      eth.priority != (bed.vlan != 0 ? bed.priority : 0);
    return CABLE_PASS;
}

static void start_capture(const struct bed *like)
{
    bed_init_like(&bed, like);
    memset(&seen, 0, sizeof(seen));
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        bed.cables[i].filter = inspect_frame;
        bed.cables[i].is_capturing = true;
    }
}

static void stop_capture(void)
{
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        const struct cable *cable = &bed.cables[i];

        assert_true(cable->capture_len == 0 ||
                    fwrite(cable->capture, cable->capture_len, 1, pcap) == 1);
    }
    bed_end(&bed);
}

static int try_connect(uint8_t local, bool is_v1)
{
    struct host_target target;

    assert_true(native_target(bed.host, bed.drive, local, &target));
    target.path.is_v1 = is_v1;
    target.path.dscp = seen.dscp;
    target.io_queues = 1;
    target.depth = 64;
    return host_connect(&bed.host->host, &target);
}

/* Do writes and reads of every kind, and compare the data. */
static void do_io(void)
{
    static const enum host_data kinds[] = {HOST_DATA_KEYED,
                                           HOST_DATA_INVALIDATE};

    for (uint32_t i = 0; i < ARRAY_LEN(kinds); i++) {
        assert_int_equal(bed_write(&bed, 1, 8 * i, BLOCKS, kinds[i], false, i),
                         0);
        bed_expect(&bed, 1, 8 * i, BLOCKS, kinds[i], i);
    }
    assert_int_equal(bed_flush(&bed, 1), 0);
}

static uint64_t drive_count(enum rnic_counter counter)
{
    return rnic_counter_read(&bed.drive->drive.net.verbs, counter);
}

static uint64_t host_count(enum rnic_counter counter)
{
    return rnic_counter_read(&bed.host->net.verbs, counter);
}

static void test_v1_serves_io_over_both_families(void **state)
{
    (void)state;
    for (uint8_t local = 0; local < 4; local += 2) {
        start_capture(&(struct bed){.mtu_bytes = 4200, .has_roce_v1 = true});
        assert_int_equal(try_connect(local, true), 0);
        do_io();
        host_disconnect(&bed.host->host);
        bed_expect_idle(&bed);
        assert_int_equal(seen.v2, 0);
        assert_true(seen.v1 > 100);
        assert_int_equal(drive_count(RNIC_COUNT_RETRANSMITTED), 0);
        stop_capture();
    }
}

static void test_v1_works_in_a_vlan(void **state)
{
    (void)state;
    start_capture(&(struct bed){
        .mtu_bytes = 1500, .has_roce_v1 = true, .vlan = 42, .priority = 3});
    assert_int_equal(try_connect(0, true), 0);
    do_io();
    host_disconnect(&bed.host->host);
    assert_true(seen.v1 > 100);
    assert_int_equal(seen.wrong_tag, 0);
    stop_capture();
}

/* RoCE v1 is off by default: such a packet gets no answer, and a counter shows
 * the reason. */
static void test_v1_gets_no_answer_when_it_is_off(void **state)
{
    struct hw_port *port;
    uint64_t frames;

    (void)state;
    start_capture(&(struct bed){.mtu_bytes = 1500});
    port = &bed.drive->machine.ports[0];
    assert_int_not_equal(try_connect(0, true), 0);
    native_world_pass(&bed.world, 1000000); /* Let the last packets arrive. */
    frames = seen.v1;
    assert_true(frames > 1);
    assert_int_equal(drive_net_counter(&bed.drive->drive.net, 0,
                                       PORT_COUNT_RX_ROCE_V1_DROPPED),
                     frames);
    assert_int_equal(port->counters[PORT_COUNT_RX_RNIC], 0);
    assert_int_equal(drive_count(RNIC_COUNT_RX_PACKETS), 0);
    assert_int_equal(try_connect(0, false), 0); /* v2 works as before. */
    do_io();
    host_disconnect(&bed.host->host);
    assert_int_equal(seen.v1, frames);
    stop_capture();
}

/* From the first REQ to the last DREP. */
static void test_v2_works_in_a_vlan_with_priority_and_dscp(void **state)
{
    (void)state;
    start_capture(&(struct bed){.mtu_bytes = 1500, .vlan = 100, .priority = 5});
    seen.dscp = 26;
    assert_int_equal(try_connect(0, false), 0);
    do_io();
    assert_int_equal(seen.wrong_tag, 0);
    assert_true(seen.v2 > 100);
    /* Queue pairs of both sides. */
    for (unsigned int i = 0; i < RDMA_QPS; i++) {
        const struct rnic_state *drive = &bed.drive->machine.rnic.state;

        if (drive->objects.qps[i].state == RNIC_QPS_RTS && i > 1) {
            assert_int_equal(drive->roce.qps[i].path.priority, 5);
            assert_int_equal(drive->roce.qps[i].path.dscp, 26);
        }
    }
    host_disconnect(&bed.host->host);
    assert_int_equal(seen.wrong_tag, 0);
    assert_int_equal(seen.wrong_dscp, 0);
    stop_capture();
}

/* All packets of one side are marked: its data arrives, but slower. */
static void check_congestion(bool marks_drive)
{
    uint64_t fast_ns, start_ns;

    start_capture(&(struct bed){.mtu_bytes = 4200});
    assert_int_equal(try_connect(0, false), 0);
    /* Resolves the neighbours, and does what else takes time only once. */
    do_io();
    start_ns = bed.world.now_ns;
    do_io();
    fast_ns = bed.world.now_ns - start_ns;
    assert_true(seen.capable > 0);
    assert_int_equal(seen.cnps, 0);
    seen.marks_drive = marks_drive;
    seen.marks = !marks_drive;
    start_ns = bed.world.now_ns;
    do_io();
    do_io();
    assert_true(seen.cnps > 0);
    assert_true(bed.world.now_ns - start_ns > 2 * fast_ns + 50000);
    if (marks_drive) {
        assert_int_equal(host_count(RNIC_COUNT_NP_CNP_SENT), seen.cnps);
        assert_int_equal(drive_count(RNIC_COUNT_RP_CNP_HANDLED), seen.cnps);
        assert_true(host_count(RNIC_COUNT_NP_ECN_MARKED) > seen.cnps);
    } else {
        assert_int_equal(drive_count(RNIC_COUNT_NP_CNP_SENT), seen.cnps);
        assert_int_equal(host_count(RNIC_COUNT_RP_CNP_HANDLED), seen.cnps);
        assert_true(drive_count(RNIC_COUNT_NP_ECN_MARKED) > seen.cnps);
    }
    assert_int_equal(drive_count(RNIC_COUNT_RETRANSMITTED), 0);
    assert_int_equal(host_count(RNIC_COUNT_RETRANSMITTED), 0);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
    stop_capture();
}

static void test_ecn_marks_slow_the_drive(void **state)
{
    (void)state;
    check_congestion(true);
}

static void test_ecn_marks_slow_the_host(void **state)
{
    (void)state;
    check_congestion(false);
}

/* ---- PFC */

static void pause_drive(uint8_t priorities, uint16_t quanta)
{
    struct frame_sink sink = cable_sink(&bed.cables[0], 1);
    struct mac_control control = {.opcode = MAC_CONTROL_OP_PFC,
                                  .priorities = priorities};
    struct frame_tx frame = {.head_len = ETH_LEN + MAC_CONTROL_LEN};

    for (unsigned int i = 0; i < MAC_CONTROL_PRIORITIES; i++) {
        control.quanta[i] = priorities >> i & 1 ? quanta : 0;
    }
    eth_emit(&(struct eth){.dst = {{0x01, 0x80, 0xc2, 0, 0, 1}},
                           .src = {{0x02, 0xe5, 0x5d, 0, 2, 0}},
                           .type = ETHERTYPE_MAC_CONTROL},
             frame.head);
    mac_control_emit(&control, frame.head + ETH_LEN);
    assert_int_equal(sink.send(sink.ctx, &frame, 1), 1);
}

static void test_pfc_delays_the_drives_responses(void **state)
{
    const struct hw_port *port;
    uint64_t start_ns;

    (void)state;
    start_capture(&(struct bed){.mtu_bytes = 1500, .vlan = 100, .priority = 5});
    port = &bed.drive->machine.ports[0];
    assert_int_equal(try_connect(0, false), 0);
    do_io();
    start_ns = bed.world.now_ns;
    pause_drive(BIT(5), 65535);
    do_io(); /* The first response waits for the whole pause. */
    assert_true(bed.world.now_ns - start_ns >= 1342157);
    assert_int_equal(port->counters[PORT_COUNT_PRIO_PAUSE + 5], 1);
    assert_int_equal(port->counters[PORT_COUNT_PRIO_PAUSED_NS + 5], 1342157);
    start_ns = bed.world.now_ns;
    pause_drive((uint8_t)~BIT(5), 65535); /* Pauses all other priorities. */
    do_io();
    assert_true(bed.world.now_ns - start_ns < 1342157);
    pause_drive(BIT(5), 65535);
    pause_drive(0xff, 0); /* Ends all pauses. */
    start_ns = bed.world.now_ns;
    do_io();
    assert_true(bed.world.now_ns - start_ns < 1342157);
    assert_int_equal(drive_count(RNIC_COUNT_RETRANSMITTED), 0);
    assert_int_equal(host_count(RNIC_COUNT_RETRANSMITTED), 0);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
    stop_capture();
}

/* The capture has one test after the other; its times do not increase. */
static int open_pcap(void **state)
{
    uint8_t header[PCAP_HEADER_LEN] = {0};

    (void)state;
    pcap = fopen("lossless.pcap", "wb");
    if (pcap == NULL) {
        return -1;
    }
    put_le32(header, 0xa1b23c4d); /* Nanoseconds. */
    put_le16(header + 4, 2);
    put_le16(header + 6, 4);
    put_le32(header + 16, FRAME_LEN_MAX);
    put_le32(header + 20, 1); /* Ethernet */
    return fwrite(header, sizeof(header), 1, pcap) == 1 ? 0 : -1;
}

static int close_pcap(void **state)
{
    (void)state;
    return fclose(pcap);
}

GROUP_FIXTURE(open_pcap, close_pcap)
