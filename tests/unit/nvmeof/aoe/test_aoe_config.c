/* SPDX-License-Identifier: BSD-2-Clause */
/* Discovery, config strings, mask lists and reservations. */
#include "aoe_world.h"
#include "tests/test_fixture.h"

#include <string.h>

#include "lib/bytes.h"

TEST_FIXTURE(world_setup, world_teardown)

enum { A = 1, B = 2, C = 3, ARGS = AOE_HEADER_LEN };

static uint8_t frame[WORLD_FRAME_LEN];

static size_t put_header(uint8_t minor, uint8_t command)
{
    const struct aoe_header request = {
        .version = 1,
        .major = WORLD_SHELF,
        .minor = minor,
        .command = command,
        .tag = 0x1234,
    };

    memset(frame, 0, sizeof(frame));
    aoe_header_emit(frame, &request);
    return ARGS;
}

static void send_query(struct world *world, uint8_t from, uint8_t minor,
                       uint8_t command, const char *string)
{
    size_t len = put_header(minor, AOE_CONFIG);

    frame[len + AOE_CONFIG_COMMAND] = command;
    put_be16(frame + len + AOE_CONFIG_LENGTH, (uint16_t)strlen(string));
    len += AOE_CONFIG_LEN;
    memcpy(frame + len, string, strlen(string));
    world_send(world, 0, from, frame, len + strlen(string));
}

static void expect_config(struct world *world, uint8_t minor, uint8_t command,
                          const char *string)
{
    const struct world_frame *got = world_take(world);

    assert_non_null(got);
    assert_int_equal(got->data[0], 0x18);
    assert_int_equal(got->data[AOE_MINOR], minor);
    assert_int_equal(get_be32(got->data + AOE_TAG), 0x1234);
    assert_int_equal(get_be16(got->data + ARGS), 16);
    assert_int_equal(got->data[ARGS + AOE_CONFIG_COMMAND], 0x10 | command);
    assert_int_equal(get_be16(got->data + ARGS + AOE_CONFIG_LENGTH),
                     strlen(string));
    assert_memory_equal(got->data + ARGS + AOE_CONFIG_LEN, string,
                        strlen(string));
    assert_int_equal(got->len, ARGS + AOE_CONFIG_LEN + strlen(string));
}

static void expect_error(struct world *world, enum aoe_error error)
{
    const struct world_frame *got = world_take(world);

    assert_non_null(got);
    assert_int_equal(got->data[0], 0x1c);
    assert_int_equal(got->data[1], error);
    world_expect_silence(world);
}

/* ---- Discovery. */

static void test_a_stock_drivers_discovery_is_answered_by_every_device(
    void **state)
{
    /* Frame 33 of the capture. */
    static const uint8_t discovery[] = {
        0x10, 0x00, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    };
    struct world *world = *state;

    for (uint8_t port = 0; port < 2; port++) {
        world_send(world, port, A, discovery, sizeof(discovery));
        for (uint8_t minor = 0; minor < 2; minor++) {
            const struct world_frame *got = world_take(world);
            const uint8_t answer[] = {
                0x18, 0x00, 0x00, 0x01, minor,
                0x01, 0x00, 0x00, 0x00, 0x00,
                0x00, 0x10, 0x00, 0x01, port == 0 ? 2 : 16,
                0x10, 0x00, 0x00,
            };

            assert_non_null(got);
            assert_int_equal(got->to.port, port);
            assert_int_equal(got->to.mac[5], A);
            assert_int_equal(got->len, sizeof(answer));
            assert_memory_equal(got->data, answer, sizeof(answer));
        }
        world_expect_silence(world);
    }
}

static void test_one_device_of_all_shelves_is_asked(void **state)
{
    struct world *world = *state;
    size_t len = put_header(1, AOE_CONFIG) + AOE_CONFIG_LEN;

    frame[AOE_MAJOR] = frame[AOE_MAJOR + 1] = 0xff;
    world_send(world, 0, A, frame, len);
    expect_config(world, 1, AOE_CONFIG_READ, "");
    frame[AOE_MINOR] = 2; /* it is not exported */
    world_send(world, 0, A, frame, len);
    frame[AOE_MINOR] = 1;
    frame[ARGS + AOE_CONFIG_COMMAND] = AOE_CONFIG_FORCE;
    world_send(world, 0, A, frame, len);
    world_expect_silence(world);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_DROP_NOT_OURS), 1);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_DROP_BAD), 1);
}

static void test_answers_to_a_discovery_go_on_when_there_is_room(void **state)
{
    struct world *world = *state;

    world->room = 1;
    send_query(world, A, AOE_MINOR_ALL, AOE_CONFIG_READ, "");
    expect_config(world, 0, AOE_CONFIG_READ, "");
    world_expect_silence(world);
    world->room = 5;
    world_run(world);
    expect_config(world, 1, AOE_CONFIG_READ, "");
    world_expect_silence(world);
}

/* Neither by a port that has no room, nor by one whose cable is pulled. */
static void test_a_discovery_that_waits_holds_up_no_other(void **state)
{
    struct world *world = *state;
    size_t len = put_header(AOE_MINOR_ALL, AOE_CONFIG) + AOE_CONFIG_LEN;

    for (unsigned int i = 0; i < 2; i++) {
        world->is_full[0] = i == 0;
        world->no_link[0] = i == 1;
        world_send(world, 0, A, frame, len);
        world_expect_silence(world);
        world_send(world, 1, B, frame, len);
        expect_config(world, 0, AOE_CONFIG_READ, "");
        expect_config(world, 1, AOE_CONFIG_READ, "");
        world_expect_silence(world);
        assert_int_equal(world->aoe->query_count, i == 0 ? 1 : 0);
    }
    world->no_link[0] = false;
    world_run(world);
    world_expect_silence(world);
}

static void test_a_thousand_stations_discover_and_nobody_else_notices(
    void **state)
{
    static uint8_t read[WORLD_FRAME_LEN];
    struct world *world = *state;
    size_t len = world_ata(read, 0, 7, 0x24, 0, 1, NULL);
    struct aoe_station from = {.vlan = 0xffff};
    unsigned int answers = 0;
    size_t ask = put_header(AOE_MINOR_ALL, AOE_CONFIG) + AOE_CONFIG_LEN;

    for (unsigned int i = 0; i < 1000; i++) {
        put_be16(from.mac + 4, (uint16_t)i);
        from.mac[0] = 0x06;
        aoe_receive(world->aoe, &from, frame, ask, world->fake->now_us);
        if (i % 100 == 50) { /* a host reads at the same port */
            world_give(world, 0, A, read, len);
        }
        if (i % 10 == 9) {
            world_run(world);
            answers += world->sent;
            world->room = WORLD_FRAMES;
            while (world_take(world) != NULL) {
            }
        }
    }
    assert_int_equal(answers, 2 * 1000 + 10);
    for (unsigned int i = 0; i < 1000; i++) { /* all before the next turn */
        put_be16(from.mac + 4, (uint16_t)i);
        aoe_receive(world->aoe, &from, frame, ask, world->fake->now_us);
    }
    world_give(world, 0, A, read, len);
    world_run(world);
    assert_int_equal(world->sent, 2 * AOE_PORT_QUERIES + 1);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_DROP_FULL),
                     1000 - AOE_PORT_QUERIES);
}

/* A stranger with many addresses pauses its port, so no query of it ends. */
static void test_queries_of_a_full_port_leave_room_to_the_other_port(
    void **state)
{
    struct world *world = *state;
    struct aoe_station from = {.vlan = 0xffff, .mac = {0x06}};
    size_t ask = put_header(AOE_MINOR_ALL, AOE_CONFIG) + AOE_CONFIG_LEN;

    world->is_full[0] = true;
    for (unsigned int i = 0; i < 100; i++) {
        from.mac[5] = (uint8_t)i;
        aoe_receive(world->aoe, &from, frame, ask, world->fake->now_us);
    }
    world_run(world);
    assert_int_equal(world->aoe->query_count, AOE_PORT_QUERIES);
    world_send(world, 1, B, frame, ask);
    expect_config(world, 0, AOE_CONFIG_READ, "");
    expect_config(world, 1, AOE_CONFIG_READ, "");
    world_expect_silence(world);
}

static void test_a_station_that_repeats_a_discovery_has_one(void **state)
{
    struct world *world = *state;
    size_t ask = put_header(AOE_MINOR_ALL, AOE_CONFIG) + AOE_CONFIG_LEN;

    for (unsigned int i = 0; i < 100; i++) {
        world_give(world, 0, A, frame, ask);
    }
    world_run(world);
    assert_int_equal(world->sent, 2);
}

/* ---- Config strings. */

static void test_a_string_is_set_once_and_tested(void **state)
{
    struct world *world = *state;

    send_query(world, A, 0, AOE_CONFIG_SET, "rack 7");
    expect_config(world, 0, AOE_CONFIG_SET, "rack 7");
    send_query(world, B, 0, AOE_CONFIG_SET, "rack 8");
    expect_error(world, AOE_ERROR_STRING);
    send_query(world, B, 0, AOE_CONFIG_SET, "rack 7"); /* it is set again */
    expect_config(world, 0, AOE_CONFIG_SET, "rack 7");
    send_query(world, B, 0, AOE_CONFIG_READ, "");
    expect_config(world, 0, AOE_CONFIG_READ, "rack 7");
    send_query(world, B, 0, AOE_CONFIG_TEST, "rack 7");
    expect_config(world, 0, AOE_CONFIG_TEST, "rack 7");
    send_query(world, B, 0, AOE_CONFIG_TEST, "rack");
    send_query(world, B, 0, AOE_CONFIG_PREFIX, "rack 77");
    send_query(world, B, 0, AOE_CONFIG_PREFIX, "back");
    world_expect_silence(world);
    send_query(world, B, 0, AOE_CONFIG_PREFIX, "rack");
    expect_config(world, 0, AOE_CONFIG_PREFIX, "rack 7");
    send_query(world, B, 0, AOE_CONFIG_FORCE, "");
    expect_config(world, 0, AOE_CONFIG_FORCE, "");
    send_query(world, B, 0, 5, "");
    expect_error(world, AOE_ERROR_ARGUMENT);
}

static void test_a_test_of_all_devices_finds_those_with_the_string(void **state)
{
    struct world *world = *state;

    send_query(world, A, 1, AOE_CONFIG_SET, "mine");
    expect_config(world, 1, AOE_CONFIG_SET, "mine");
    send_query(world, A, AOE_MINOR_ALL, AOE_CONFIG_TEST, "mine");
    expect_config(world, 1, AOE_CONFIG_TEST, "mine");
    world_expect_silence(world);
}

static void test_no_string_is_set_for_all_devices_at_once(void **state)
{
    struct world *world = *state;

    send_query(world, A, AOE_MINOR_ALL, AOE_CONFIG_SET, "mine");
    send_query(world, A, AOE_MINOR_ALL, AOE_CONFIG_FORCE, "mine");
    world_expect_silence(world);
    assert_int_equal(aoe_device_info(world->aoe, 1).string_len, 0);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_DROP_BAD), 2);
}

static void test_the_longest_string_fits(void **state)
{
    static char string[AOE_STRING_MAX + 2];
    struct world *world = *state;

    memset(string, 'x', AOE_STRING_MAX);
    send_query(world, A, 0, AOE_CONFIG_SET, string);
    expect_config(world, 0, AOE_CONFIG_SET, string);
    string[AOE_STRING_MAX] = 'x';
    send_query(world, A, 0, AOE_CONFIG_FORCE, string);
    world_expect_silence(world);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_DROP_BAD), 1);
}

/* ---- Mask lists. */

static size_t put_mask(uint8_t command, uint8_t directives)
{
    size_t len = put_header(0, AOE_MASK);

    frame[len + AOE_MASK_COMMAND] = command;
    frame[len + AOE_MASK_COUNT] = directives;
    return len + AOE_MASK_LEN;
}

static size_t put_directive(size_t len, uint8_t command, uint8_t station)
{
    const uint8_t mac[AOE_MAC_LEN] = {0x02, 0, 0, 0, 0, station};

    frame[len + AOE_DIRECTIVE_COMMAND] = command;
    memcpy(frame + len + AOE_DIRECTIVE_MAC, mac, sizeof(mac));
    return len + AOE_DIRECTIVE_LEN;
}

static void expect_masks(struct world *world, uint8_t command, uint8_t error,
                         uint8_t masks)
{
    const struct world_frame *got = world_take(world);

    assert_non_null(got);
    assert_int_equal(got->data[0], 0x18);
    assert_int_equal(got->data[ARGS + AOE_MASK_COMMAND], command);
    assert_int_equal(got->data[ARGS + AOE_MASK_ERROR], error);
    assert_int_equal(got->data[ARGS + AOE_MASK_COUNT], masks);
    assert_int_equal(got->len,
                     ARGS + AOE_MASK_LEN + masks * (size_t)AOE_DIRECTIVE_LEN);
}

static void test_a_mask_list_admits_its_stations_only(void **state)
{
    struct world *world = *state;
    size_t len = put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD, A);

    world_send(world, 0, A, frame, len);
    expect_masks(world, AOE_MASK_EDIT, 0, 1);
    send_query(world, B, 0, AOE_CONFIG_READ, "");
    send_query(world, B, AOE_MINOR_ALL, AOE_CONFIG_READ, "");
    expect_config(world, 1, AOE_CONFIG_READ, ""); /* the other device */
    world_expect_silence(world);
    world_send(world, 0, B, frame, world_ata(frame, 0, 1, 0x24, 0, 1, NULL));
    world_expect_silence(world);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_DROP_MASKED), 2);
    send_query(world, A, 0, AOE_CONFIG_READ, "");
    expect_config(world, 0, AOE_CONFIG_READ, "");
    len = put_directive(
        put_directive(put_mask(AOE_MASK_EDIT, 2), AOE_MAC_DELETE, A),
        AOE_MAC_DELETE, B);
    world_send(world, 0, A, frame, len);
    expect_masks(world, AOE_MASK_EDIT, 0, 0);
    send_query(world, B, 0, AOE_CONFIG_READ, "");
    expect_config(world, 0, AOE_CONFIG_READ, "");
}

static void test_a_mask_list_is_read(void **state)
{
    struct world *world = *state;
    size_t len =
        put_directive(put_directive(put_mask(AOE_MASK_EDIT, 2), AOE_MAC_ADD, A),
                      AOE_MAC_NOTHING, B);

    world_send(world, 0, A, frame, len);
    expect_masks(world, AOE_MASK_EDIT, 0, 1);
    world_send(world, 0, A, frame, put_mask(AOE_MASK_READ, 0));
    assert_int_equal(
        world->frames[0].data[ARGS + AOE_MASK_LEN + AOE_DIRECTIVE_MAC + 5], A);
    expect_masks(world, AOE_MASK_READ, 0, 1);
}

static void test_mask_lists_have_errors_of_their_own(void **state)
{
    struct world *world = *state;
    size_t len;

    for (uint8_t i = 0; i < AOE_MACS; i++) {
        world_send(world, 0, 1, frame,
                   put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD,
                                 (uint8_t)(i + 1)));
        expect_masks(world, AOE_MASK_EDIT, 0, (uint8_t)(i + 1));
    }
    len = put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD, 200);
    world_send(world, 0, 1, frame, len);
    expect_masks(world, AOE_MASK_EDIT, AOE_MASK_FULL, AOE_MACS);
    len = put_directive(put_mask(AOE_MASK_EDIT, 1), 3, 1);
    world_send(world, 0, 1, frame, len);
    expect_masks(world, AOE_MASK_EDIT, AOE_MASK_BAD, AOE_MACS);
    world_send(world, 0, 1, frame, put_mask(2, 0));
    expect_error(world, AOE_ERROR_ARGUMENT);
    len = put_directive(put_mask(AOE_MASK_EDIT, 2), AOE_MAC_ADD,
                        1); /* one is missing */
    world_send(world, 0, 1, frame, len);
    world_expect_silence(world);
}

/* ---- Reservations. */

static size_t put_reserve(uint8_t command, uint8_t first, uint8_t macs)
{
    size_t len = put_header(0, AOE_RESERVE);

    frame[len + AOE_RESERVE_COMMAND] = command;
    frame[len + AOE_RESERVE_COUNT] = macs;
    len += AOE_RESERVE_LEN;
    for (uint8_t i = 0; i < macs; i++) {
        const uint8_t mac[AOE_MAC_LEN] = {0x02, 0, 0,
                                          0,    0, (uint8_t)(first + i)};

        memcpy(frame + len, mac, sizeof(mac));
        len += sizeof(mac);
    }
    return len;
}

static void expect_holders(struct world *world, uint8_t command,
                           uint8_t holders)
{
    const struct world_frame *got = world_take(world);

    assert_non_null(got);
    assert_int_equal(got->data[0], 0x18);
    assert_int_equal(got->data[ARGS + AOE_RESERVE_COMMAND], command);
    assert_int_equal(got->data[ARGS + AOE_RESERVE_COUNT], holders);
    assert_int_equal(got->len, ARGS + AOE_RESERVE_LEN + holders * 6u);
}

static void test_a_reserved_device_serves_its_holders(void **state)
{
    struct world *world = *state;

    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, A, 1));
    expect_holders(world, AOE_RESERVE_SET, 1);
    world_send(world, 0, B, frame, world_ata(frame, 0, 1, 0x24, 0, 1, NULL));
    expect_error(world, AOE_ERROR_RESERVED);
    send_query(world, B, 0, AOE_CONFIG_FORCE, "mine");
    expect_error(world, AOE_ERROR_RESERVED);
    world_send(world, 0, B, frame, put_mask(AOE_MASK_EDIT, 0));
    expect_error(world, AOE_ERROR_RESERVED);
    send_query(world, B, 0, AOE_CONFIG_READ, "");
    expect_config(world, 0, AOE_CONFIG_READ, "");
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_READ, 0, 0));
    expect_holders(world, AOE_RESERVE_READ, 1);
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_SET, B, 1));
    expect_error(world, AOE_ERROR_RESERVED);
    world_send(world, 0, A, frame, world_ata(frame, 0, 1, 0x24, 0, 1, NULL));
    assert_int_equal(world_take(world)->data[0], 0x18);
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, 0, 0));
    expect_holders(world, AOE_RESERVE_SET, 0); /* released */
    world_send(world, 0, B, frame, world_ata(frame, 0, 1, 0x24, 0, 1, NULL));
    assert_int_equal(world_take(world)->data[0], 0x18);
}

static void test_a_reservation_is_taken_by_force(void **state)
{
    struct world *world = *state;

    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, A, 1));
    expect_holders(world, AOE_RESERVE_SET, 1);
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_FORCE, B, 2));
    expect_holders(world, AOE_RESERVE_FORCE, 2);
    world_send(world, 0, A, frame, world_ata(frame, 0, 1, 0x24, 0, 1, NULL));
    expect_error(world, AOE_ERROR_RESERVED);
}

static uint64_t count_retries(const struct world *world)
{
    return aoe_count(world->aoe, 0, AOE_DROP_RETRY);
}

static void test_a_write_that_waits_ends_when_others_get_the_device(
    void **state)
{
    static const uint8_t data[512] = {1};
    struct world *world = *state;

    world_give(world, 0, A, frame, world_ata(frame, 0, 1, 0x34, 0, 1, data));
    world_give(world, 0, B, frame, put_reserve(AOE_RESERVE_FORCE, B, 1));
    expect_holders(world, AOE_RESERVE_FORCE, 1);
    world_run(world);
    expect_error(world, AOE_ERROR_RESERVED);
    assert_int_equal(world->fake->history_count, 0);
}

static void test_a_write_that_waits_ends_when_its_station_is_masked(
    void **state)
{
    static const uint8_t data[512] = {1};
    struct world *world = *state;
    size_t len;

    world_give(world, 0, A, frame, world_ata(frame, 0, 1, 0x34, 0, 1, data));
    len = put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD, B);
    world_give(world, 0, B, frame, len);
    expect_masks(world, AOE_MASK_EDIT, 0, 1);
    world_run(world);
    world_expect_silence(world);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_DROP_MASKED), 1);
    assert_int_equal(world->fake->history_count, 0);
}

/* Station A writes or reads, and the medium does not answer yet. */
static void hold_command(struct world *world, uint8_t command)
{
    static const uint8_t data[512] = {1};

    world->fake->hold_media = true;
    world_send(
        world, 0, A, frame,
        world_ata(frame, 0, 1, command, 0, 1, command == 0x34 ? data : NULL));
    world_expect_silence(world);
}

/* The medium answers, and so does the drive: to A's command first. */
static void release_command(struct world *world)
{
    const struct world_frame *got;

    world->fake->hold_media = false;
    world_run(world);
    got = world_take(world);
    assert_non_null(got);
    assert_int_equal(got->data[0], 0x18);
    assert_int_equal(got->to.mac[5], A);
    assert_int_equal(get_be32(got->data + AOE_TAG), 1);
}

static void test_a_reservation_is_answered_after_the_commands_that_it_excludes(
    void **state)
{
    static const uint8_t commands[] = {0x34, 0x24}; /* write, read */
    struct world *world = *state;

    for (unsigned int i = 0; i < ARRAY_LEN(commands); i++) {
        hold_command(world, commands[i]);
        world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_FORCE, B, 1));
        release_command(world);
        expect_holders(world, AOE_RESERVE_FORCE, 1);
        world_expect_silence(world);
        assert_int_equal(count_retries(world), 0);
        world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_SET, B, 0));
        expect_holders(world, AOE_RESERVE_SET, 0);
    }
}

static void test_a_mask_list_is_answered_after_the_writes_that_it_excludes(
    void **state)
{
    struct world *world = *state;
    size_t len;

    hold_command(world, 0x34);
    len = put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD, B);
    world_send(world, 0, B, frame, len);
    world_expect_silence(world);
    release_command(world);
    expect_masks(world, AOE_MASK_EDIT, 0, 1);
    world_expect_silence(world);
}

/* Who excludes itself could not repeat its request. */
static void test_who_excludes_itself_is_answered_after_its_write(void **state)
{
    struct world *world = *state;
    size_t len;

    hold_command(world, 0x34);
    len = put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD, B);
    world_send(world, 0, A, frame, len);
    world_expect_silence(world);
    release_command(world);
    expect_masks(world, AOE_MASK_EDIT, 0, 1);
}

/* It repeats its request before the first one is answered, and is not refused
 * what it has done.  Afterwards it is. */
static void test_who_hands_a_device_over_may_repeat_that(void **state)
{
    struct world *world = *state;

    hold_command(world, 0x34);
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, B, 1));
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, B, 1));
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, B, 1));
    world_expect_silence(world);
    assert_int_equal(count_retries(world), 2);
    world_send(world, 0, C, frame, put_reserve(AOE_RESERVE_SET, C, 1));
    expect_error(world, AOE_ERROR_RESERVED);
    release_command(world);
    expect_holders(world, AOE_RESERVE_SET, 1);
    world_expect_silence(world);
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, B, 1));
    expect_error(world, AOE_ERROR_RESERVED);
}

/* If another station changed something before the answer, the repetition could
 * not be told from a new request, and would be refused. */
static void test_other_stations_change_nothing_before_the_answer(void **state)
{
    struct world *world = *state;
    size_t len;

    hold_command(world, 0x34);
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, B, 1));
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_SET, B, 2));
    assert_int_equal(aoe_device_info(world->aoe, 1).holders, 1);
    len = put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD, B);
    world_send(world, 0, B, frame, len);
    assert_int_equal(aoe_device_info(world->aoe, 1).masks, 0);
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, B, 1));
    world_expect_silence(world);
    assert_int_equal(count_retries(world), 3);
    release_command(world);
    expect_holders(world, AOE_RESERVE_SET, 1);
    world_expect_silence(world);
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_SET, B, 2));
    expect_holders(world, AOE_RESERVE_SET, 2);
    len = put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD, B);
    world_send(world, 0, B, frame, len);
    expect_masks(world, AOE_MASK_EDIT, 0, 1);
}

/* Who forces has its own reasons not to wait. */
static void test_a_device_is_taken_by_force_before_the_answer(void **state)
{
    struct world *world = *state;

    hold_command(world, 0x34);
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, B, 1));
    world_send(world, 0, C, frame, put_reserve(AOE_RESERVE_FORCE, C, 2));
    world_expect_silence(world);
    assert_int_equal(count_retries(world), 1);
    release_command(world);
    expect_holders(world, AOE_RESERVE_FORCE, 2);
    world_expect_silence(world);
}

/* A station that sees itself in the list would believe that it is alone. */
static void test_nobody_is_told_a_list_before_its_change_is_answered(
    void **state)
{
    struct world *world = *state;

    hold_command(world, 0x34);
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_FORCE, B, 1));
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_READ, 0, 0));
    world_send(world, 0, B, frame, put_mask(AOE_MASK_READ, 0));
    world_expect_silence(world);
    assert_int_equal(count_retries(world), 2);
    release_command(world);
    expect_holders(world, AOE_RESERVE_FORCE, 1);
    world_expect_silence(world);
}

static void test_the_last_of_several_changes_is_answered(void **state)
{
    struct world *world = *state;

    hold_command(world, 0x34);
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_FORCE, B, 1));
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_SET, B, 2));
    world_expect_silence(world);
    assert_int_equal(count_retries(world), 1);
    release_command(world);
    expect_holders(world, AOE_RESERVE_SET, 2);
    world_expect_silence(world);
}

static void test_other_devices_are_answered_at_once(void **state)
{
    struct world *world = *state;

    hold_command(world, 0x34);
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_FORCE, B, 1));
    world_expect_silence(world);
    put_reserve(AOE_RESERVE_SET, B, 1);
    frame[AOE_MINOR] = 1;
    world_send(world, 0, B, frame, AOE_HEADER_LEN + AOE_RESERVE_LEN + 6);
    expect_holders(world, AOE_RESERVE_SET, 1);
    release_command(world);
    expect_holders(world, AOE_RESERVE_FORCE, 1);
}

/* The operator's command drops the change, and its answer. */
static void test_a_forgotten_change_is_not_answered(void **state)
{
    struct world *world = *state;

    hold_command(world, 0x34);
    world_send(world, 0, B, frame, put_reserve(AOE_RESERVE_FORCE, B, 1));
    aoe_forget(world->aoe);
    release_command(world);
    world_expect_silence(world);
}

static void test_bad_reservations_change_nothing(void **state)
{
    struct world *world = *state;
    size_t len = put_reserve(AOE_RESERVE_SET, A, 2);

    world_send(world, 0, A, frame, len - 1);
    world_expect_silence(world);
    world_send(world, 0, A, frame, put_reserve(3, A, 1));
    expect_error(world, AOE_ERROR_ARGUMENT);
    world_send(world, 0, A, frame,
               put_reserve(AOE_RESERVE_SET, A, AOE_MACS + 1));
    expect_error(world, AOE_ERROR_ARGUMENT);
    assert_int_equal(aoe_device_info(world->aoe, 1).holders, 0);
}

static void test_what_hosts_have_set_is_forgotten_on_demand(void **state)
{
    struct world *world = *state;

    send_query(world, A, 0, AOE_CONFIG_SET, "mine");
    world_send(world, 0, A, frame, put_reserve(AOE_RESERVE_SET, A, 1));
    world_send(world, 0, A, frame,
               put_directive(put_mask(AOE_MASK_EDIT, 1), AOE_MAC_ADD, A));
    assert_int_equal(aoe_device_info(world->aoe, 1).masks, 1);
    assert_int_equal(aoe_device_info(world->aoe, 1).holders, 1);
    assert_int_equal(aoe_device_info(world->aoe, 1).string_len, 4);
    aoe_forget(world->aoe);
    assert_int_equal(aoe_device_info(world->aoe, 1).masks, 0);
    assert_int_equal(aoe_device_info(world->aoe, 1).holders, 0);
    assert_int_equal(aoe_device_info(world->aoe, 1).string_len, 0);
}
