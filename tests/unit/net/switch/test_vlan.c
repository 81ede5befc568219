/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/test_fixture.h"
#include "tests/unit/net/switch/switch_test.h"

TEST_FIXTURE(bed_setup, bed_teardown)

enum { LEN = 64, NO_TAG = -1, NOTHING = -2 };

static struct switch_vlan access_port(uint16_t vid)
{
    return (struct switch_vlan){.mode = SWITCH_VLAN_ACCESS, .vid = vid};
}

/* A trunk of two VLANs with a native one. */
static struct switch_vlan trunk_port(uint16_t a, uint16_t b, uint16_t native)
{
    struct switch_vlan vlan = {.mode = SWITCH_VLAN_TRUNK, .vid = native};

    vlan.allowed[a / 8] |= (uint8_t)BIT(a % 8);
    vlan.allowed[b / 8] |= (uint8_t)BIT(b % 8);
    return vlan;
}

static void set_vlan(struct bed *bed, uint8_t port, struct switch_vlan vlan)
{
    struct switch_port_config config = bed_config(bed, port);

    config.vlan = vlan;
    switch_port_set(bed->core, port, &config);
}

/* The tag that a frame of ours has when it leaves a port: TCI or NO_TAG. */
static int take_tci(struct bed *bed, uint8_t port)
{
    uint8_t frame[LEN + 4], expected[LEN];
    size_t len = bed_take(bed, port, frame, sizeof(frame));
    int tci = NO_TAG;

    if (len == 0) {
        return NOTHING;
    }
    if (len == LEN + 4) {
        assert_int_equal(get_be16(frame + 12), 0x8100);
        tci = get_be16(frame + 14);
        memmove(frame + 12, frame + 16, LEN - 12);
    }
    bed_frame(expected, LEN, 9, 1, 0x3c);
    assert_memory_equal(frame, expected, LEN);
    return tci;
}

static void send_tci(struct bed *bed, uint8_t port, int tci)
{
    uint8_t frame[LEN + 4];

    bed_frame(frame, LEN, 9, 1, 0x3c);
    if (tci != NO_TAG) {
        memmove(frame + 16, frame + 12, LEN - 12);
        put_be16(frame + 12, 0x8100);
        put_be16(frame + 14, (uint16_t)tci);
    }
    bed_send(bed, port, frame, tci == NO_TAG ? LEN : LEN + 4);
}

static void test_transparent_ports_change_nothing(void **state)
{
    static const int tcis[] = {NO_TAG, 0x0000, 0x6000, 1, 0x7005, 10, 4094};
    struct bed *bed = *state;

    for (size_t i = 0; i < ARRAY_LEN(tcis); i++) {
        send_tci(bed, 0, tcis[i]);
        assert_int_equal(take_tci(bed, 1), tcis[i]);
        (void)bed_take_all(bed, 2);
    }
    send_tci(bed, 0, 4095);
    assert_int_equal(take_tci(bed, 1), NOTHING);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_BAD_VLAN), 1);
}

/* What each kind of port gets of each kind of frame from each kind of port. */
static void test_frames_leave_with_the_tags_of_their_ports(void **state)
{
    static const struct {
        uint8_t from;
        int tci;
        int out[BED_PORTS]; /* what each port gets */
    } cases[] = {
        /* From the access port of VLAN 10. */
        {0, NO_TAG, {NOTHING, 10, NO_TAG, 10}},
        {0, 0x6000, {NOTHING, 0x600a, NO_TAG, 0x600a}},
        {0, 0x700a, {NOTHING, 0x700a, NO_TAG, 0x700a}},
        {0, 20, {NOTHING, NOTHING, NOTHING, NOTHING}},
        /* From the trunk of 10 and 20, native 30. */
        {1, 10, {NO_TAG, NOTHING, NO_TAG, 10}},
        {1, 0xe014, {NOTHING, NOTHING, NOTHING, 0xe014}},
        {1, NO_TAG, {NOTHING, NOTHING, NOTHING, 30}},
        {1, 30, {NOTHING, NOTHING, NOTHING, 30}},
        {1, 40, {NOTHING, NOTHING, NOTHING, NOTHING}},
        /* From the transparent port. */
        {3, 10, {NO_TAG, 10, NO_TAG, NOTHING}},
        {3, 30, {NOTHING, NO_TAG, NOTHING, NOTHING}},
        {3, NO_TAG, {NOTHING, NOTHING, NOTHING, NOTHING}},
    };
    struct bed *bed = *state;

    set_vlan(bed, 0, access_port(10));
    set_vlan(bed, 1, trunk_port(10, 20, 30));
    set_vlan(bed, 2, access_port(10));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        send_tci(bed, cases[i].from, cases[i].tci);
        for (uint8_t port = 0; port < BED_PORTS; port++) {
            int expected = cases[i].from == 2 ? NOTHING : cases[i].out[port];

            assert_int_equal(take_tci(bed, port), expected);
        }
    }
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_BAD_VLAN), 1);
    assert_int_equal(bed_counter(bed, 1, SWITCH_RX_BAD_VLAN), 1);
}

static void test_a_trunk_without_native_vlan_refuses_untagged_frames(
    void **state)
{
    struct bed *bed = *state;

    set_vlan(bed, 0, trunk_port(10, 20, VLAN_NONE));
    send_tci(bed, 0, NO_TAG);
    send_tci(bed, 0, 0x6000);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_BAD_VLAN), 2);
    assert_int_equal(bed_take_all(bed, 1), 0);
    send_tci(bed, 1, NO_TAG);
    assert_int_equal(bed_take_all(bed, 0), 0);
}

static void test_an_address_is_learned_for_its_vlan_alone(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    set_vlan(bed, 0, access_port(10));
    set_vlan(bed, 1, access_port(20));
    /* Station 5 is in VLAN 10 behind port 0. */
    bed_frame(frame, LEN, 9, 5, 0);
    bed_send(bed, 0, frame, LEN);
    (void)bed_take_all(bed, 2);
    (void)bed_take_all(bed, 3);
    /* In VLAN 20 it is not known: flooded to the other members. */
    bed_frame(frame, LEN, 5, 6, 0);
    bed_send(bed, 1, frame, LEN);
    assert_int_equal(bed_take_all(bed, 0), 0);
    assert_int_equal(bed_take_all(bed, 2) + bed_take_all(bed, 3), 2);
}

static void test_the_longest_frame_has_no_room_for_a_tag(void **state)
{
    struct bed *bed = *state;
    uint8_t *frame = malloc(SWITCH_FRAME_MAX);

    set_vlan(bed, 0, access_port(10));
    bed_frame(frame, SWITCH_FRAME_MAX, 9, 1, 0);
    bed_send(bed, 0, frame, SWITCH_FRAME_MAX);
    assert_int_equal(bed_take_all(bed, 1), 0);
    assert_int_equal(bed_counter(bed, 1, SWITCH_TX_LONG), 1);
    bed_send(bed, 0, frame, SWITCH_FRAME_MAX - 4);
    assert_int_equal(bed_take_all(bed, 1), 1);
    free(frame);
}

static void test_addresses_are_forgotten_when_the_vlan_of_a_port_changes(
    void **state)
{
    struct bed *bed = *state;

    send_tci(bed, 0, NO_TAG);
    assert_int_equal(fdb_port(switch_fdb(bed->core),
                              &(struct mac_addr){{2, 0, 0, 0, 0, 1}}, 1,
                              switch_fdb_seconds(bed->now_ns)),
                     0);
    set_vlan(bed, 0, access_port(10));
    assert_int_equal(fdb_port(switch_fdb(bed->core),
                              &(struct mac_addr){{2, 0, 0, 0, 0, 1}}, 1,
                              switch_fdb_seconds(bed->now_ns)),
                     FDB_NO_PORT);
}
