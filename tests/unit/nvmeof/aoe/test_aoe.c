/* SPDX-License-Identifier: BSD-2-Clause */
/* ATA commands by AoE, and the association with the NVMe-oF target. */
#include "aoe_world.h"
#include "tests/test_fixture.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/base/base.h"

TEST_FIXTURE(world_setup, world_teardown)

enum {
    READ = 0x20,
    READ_EXT = 0x24,
    WRITE = 0x30,
    WRITE_EXT = 0x34,
    FLUSH = 0xe7,
    FLUSH_EXT = 0xea,
    IDENTIFY = 0xec,
    A = 1, /* stations */
    B = 2,
    ATA_AT = AOE_HEADER_LEN,
    DATA_AT = AOE_HEADER_LEN + AOE_ATA_LEN,
    SECTORS_9000 = 16,
};

static uint8_t frame[WORLD_FRAME_LEN];
static uint8_t data[16 * 512];

static void fill_data(uint8_t value)
{
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(value + i / 512);
    }
}

static void give_command(struct world *world, uint8_t from, uint32_t tag,
                         uint8_t command, uint64_t lba, uint8_t count)
{
    bool is_write = command == WRITE || command == WRITE_EXT;

    world_give(
        world, 1, from, frame,
        world_ata(frame, 0, tag, command, lba, count, is_write ? data : NULL));
}

static void send_command(struct world *world, uint8_t from, uint32_t tag,
                         uint8_t command, uint64_t lba, uint8_t count)
{
    give_command(world, from, tag, command, lba, count);
    world_run(world);
}

/* Expect the end of an ATA command, with so many bytes of data. */
static const uint8_t *expect_end(struct world *world, uint32_t tag,
                                 uint8_t status, uint8_t error, size_t len)
{
    const struct world_frame *got = world_take(world);

    assert_non_null(got);
    assert_int_equal(got->data[0], 0x18);
    assert_int_equal(get_be16(got->data + AOE_MAJOR), WORLD_SHELF);
    assert_int_equal(get_be32(got->data + AOE_TAG), tag);
    assert_int_equal(got->data[ATA_AT + AOE_ATA_COMMAND], status);
    assert_int_equal(got->data[ATA_AT + AOE_ATA_FEATURE], error);
    assert_int_equal(got->data[ATA_AT + AOE_ATA_COUNT], 0);
    assert_int_equal(got->len, DATA_AT + len);
    return got->data + DATA_AT;
}

static void expect_error(struct world *world, uint32_t tag,
                         enum aoe_error error)
{
    const struct world_frame *got = world_take(world);

    assert_non_null(got);
    assert_int_equal(got->data[0], 0x1c);
    assert_int_equal(got->data[1], error);
    assert_int_equal(get_be32(got->data + AOE_TAG), tag);
}

static uint64_t count_of(const struct world *world, enum aoe_counter counter)
{
    return aoe_count(world->aoe, 0, counter) +
           aoe_count(world->aoe, 1, counter);
}

/* ---- The bytes of a stock driver. */

static void test_a_stock_drivers_frames_are_answered_as_vblade_does(
    void **state)
{
    /* Frames 2, 4 and 38 of the capture, with device 1 instead of 2; as the
     * capture was shortened, the data is another one. */
    static const uint8_t identify[] = {
        0x10, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x01, 0x56, 0x66, 0x00,
        0x00, 0x01, 0xec, 0x00, 0x00, 0x00, 0xa0, 0x00, 0x00, 0x00, 0x00,
    };
    static const uint8_t identified[] = {
        0x18, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x01, 0x56, 0x66, 0x00,
        0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0xa0, 0x00, 0x00, 0x00, 0x00,
    };
    static const uint8_t read[] = {
        0x10, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x02, 0x56, 0x6a, 0x40,
        0x00, 0x02, 0x24, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    };
    static const uint8_t got[] = {
        0x18, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x02, 0x56, 0x6a, 0x40,
        0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    };
    uint8_t write[DATA_AT + 1024] = {
        0x10, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x10, 0x5d, 0xc8, 0x41,
        0x00, 0x02, 0x34, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    };
    static const uint8_t written[] = {
        0x18, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x10, 0x5d, 0xc8, 0x41,
        0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    };
    struct world *world = *state;

    memset(write + DATA_AT, 0x77, 1024);
    world_send(world, 0, A, identify, sizeof(identify));
    world_expect(world, identified, sizeof(identified));
    world_send(world, 0, A, write, sizeof(write));
    world_expect(world, written, sizeof(written));
    assert_memory_equal(world->fake->blocks[1], write + DATA_AT, 1024);
    world_send(world, 0, A, read, sizeof(read));
    assert_int_equal(world->frames[0].len, DATA_AT + 1024);
    assert_memory_equal(world->frames[0].data + DATA_AT, write + DATA_AT, 1024);
    world_expect(world, got, sizeof(got));
}

/* ---- IDENTIFY. */

static uint16_t identify_word(const uint8_t *identified, unsigned int number)
{
    return get_le16(identified + 2 * (size_t)number);
}

static void test_identify_describes_the_namespace(void **state)
{
    struct world *world = *state;
    const uint8_t *identified;
    uint8_t sum = 0;

    send_command(world, A, 1, IDENTIFY, 0, 1);
    identified = expect_end(world, 1, 0x40, 0, 512);
    assert_int_equal(identify_word(identified, 49) & 0x200, 0x200); /* LBA */
    assert_int_equal(identify_word(identified, 83) & 0xc400, 0x4400);
    assert_int_equal(identify_word(identified, 86) & 0x400, 0x400); /* LBA48 */
    assert_int_equal(get_le32(identified + 120), FAKE_BLOCKS);
    assert_int_equal(get_le64(identified + 200), FAKE_BLOCKS);
    for (size_t i = 0; i < 512; i++) {
        sum = (uint8_t)(sum + identified[i]);
    }
    assert_int_equal(sum, 0);
}

/* ---- Reads and writes. */

static void test_what_is_written_is_read(void **state)
{
    static const struct {
        uint8_t write, read;
    } forms[] = {{WRITE_EXT, READ_EXT}, {WRITE, READ}};
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        for (uint8_t sectors = 1; sectors <= SECTORS_9000; sectors++) {
            const uint8_t *got;

            fill_data((uint8_t)(17 * sectors + i));
            send_command(world, A, 2, forms[i].write, 40, sectors);
            (void)expect_end(world, 2, 0x40, 0, 0);
            send_command(world, B, 3, forms[i].read, 40, sectors);
            got = expect_end(world, 3, 0x40, 0, sectors * 512u);
            assert_memory_equal(got, data, sectors * 512u);
        }
    }
    assert_int_equal(count_of(world, AOE_WRITES), 32);
    assert_int_equal(count_of(world, AOE_READS), 32);
}

static void test_every_write_is_durable_before_it_is_answered(void **state)
{
    struct world *world = *state;
    const struct media_io *io;

    fill_data(1);
    world->fake->hold_media = true;
    send_command(world, A, 1, WRITE_EXT, 0, 1);
    world_expect_silence(world);
    assert_int_equal(world->fake->media_count, 1);
    io = &world->fake->media[0];
    assert_int_equal(io->op, MEDIA_WRITE);
    assert_true(io->fua);
    world->fake->hold_media = false;
    world_run(world);
    (void)expect_end(world, 1, 0x40, 0, 0);
}

static void test_smart_counts_them(void **state)
{
    struct world *world = *state;
    const struct nvmf_counters *counters =
        nvmf_target_counters(world->fake->target);
    uint64_t reads = counters->host_reads, writes = counters->host_writes;

    fill_data(1);
    send_command(world, A, 1, WRITE_EXT, 0, 4);
    send_command(world, A, 2, READ_EXT, 0, 2);
    assert_int_equal(counters->host_writes, writes + 1);
    assert_int_equal(counters->host_reads, reads + 1);
    assert_int_equal(counters->written_blocks_512, 4);
    assert_int_equal(counters->read_blocks_512, 2);
}

static void test_blocks_beyond_the_end_are_an_error_of_the_device(void **state)
{
    struct world *world = *state;

    fill_data(1);
    send_command(world, A, 1, READ_EXT, FAKE_BLOCKS - 1, 2);
    (void)expect_end(world, 1, 0x41, 0x10, 0);
    send_command(world, A, 2, WRITE_EXT, 0xffffffffffff, 1);
    (void)expect_end(world, 2, 0x41, 0x10, 0);
    send_command(world, A, 3, READ, 0x0fffffff, 1);
    (void)expect_end(world, 3, 0x41, 0x10, 0);
    assert_int_equal(count_of(world, AOE_ATA_ERRORS), 3);
}

static void test_an_old_command_has_28_bits_of_address(void **state)
{
    struct world *world = *state;

    fill_data(9);
    send_command(world, A, 1, WRITE, 0xe0000005, 1); /* as Linux sends it */
    (void)expect_end(world, 1, 0x40, 0, 0);
    assert_int_equal(world->fake->blocks[0][5 * 512], 9);
}

static void test_an_unreadable_block_is_an_error_of_the_medium(void **state)
{
    struct world *world = *state;

    world->fake->bad_first = 7;
    world->fake->bad_count = 1;
    send_command(world, A, 1, READ_EXT, 7, 1);
    (void)expect_end(world, 1, 0x41, 0x40, 0);
    send_command(world, A, 2, READ_EXT, 8, 1);
    (void)expect_end(world, 2, 0x40, 0, 512);
}

static unsigned int damaged; /* the number of the check that fails, from 1 */

static bool is_intact(void *ctx, const void *memory, size_t len_bytes)
{
    (void)ctx, (void)memory, (void)len_bytes;
    return damaged == 0 || --damaged != 0;
}

WITH_FIXTURE(NULL, NULL)
static void test_data_that_lost_a_word_in_memory_is_not_sent(void **state)
{
    struct fake *fake = fake_new();
    struct world *world;

    (void)state;
    fake->config.is_intact = is_intact;
    world = world_new_with(fake);
    world_run(world);
    for (damaged = 1; damaged <= 2; damaged++) { /* the first window, too */
        unsigned int now = damaged;

        fake->window_max = 4096;
        send_command(world, A, now, READ_EXT, 0, 16);
        (void)expect_end(world, now, 0x41, 0x40, 0);
        assert_int_equal(damaged, 0);
        damaged = now;
    }
    damaged = 0;
    send_command(world, A, 3, READ_EXT, 0, 16);
    (void)expect_end(world, 3, 0x40, 0, 8192);
    world_free(world);
}

static void test_flushes_succeed_at_once(void **state)
{
    struct world *world = *state;

    send_command(world, A, 1, FLUSH, 0, 0);
    (void)expect_end(world, 1, 0x40, 0, 0);
    send_command(world, A, 2, FLUSH_EXT, 0, 0);
    (void)expect_end(world, 2, 0x40, 0, 0);
    assert_int_equal(world->fake->history_count, 0);
}

static void test_unknown_ata_commands_are_aborted(void **state)
{
    struct world *world = *state;

    for (unsigned int command = 0; command < 256; command++) {
        if (command != READ && command != READ_EXT && command != WRITE &&
            command != WRITE_EXT && command != FLUSH && command != FLUSH_EXT &&
            command != IDENTIFY) {
            send_command(world, A, command, (uint8_t)command, 0, 1);
            (void)expect_end(world, command, 0x41, 0x04, 0);
        }
    }
    assert_int_equal(world->fake->history_count, 0);
}

static void test_bad_arguments_are_refused(void **state)
{
    struct world *world = *state;
    size_t len;

    fill_data(1);
    send_command(world, A, 1, READ_EXT, 0, 0);
    expect_error(world, 1, AOE_ERROR_ARGUMENT);
    send_command(world, A, 2, READ_EXT, 0, SECTORS_9000 + 1);
    expect_error(world, 2, AOE_ERROR_ARGUMENT);
    len = world_ata(frame, 0, 3, WRITE_EXT, 0, 2, data);
    world_send(world, 1, A, frame, len - 1);
    expect_error(world, 3, AOE_ERROR_ARGUMENT);
    world_send(world, 1, A, frame, len + 1);
    expect_error(world, 3, AOE_ERROR_ARGUMENT);
    len = world_ata(frame, 0, 4, READ_EXT, 0, 1, data); /* flag W */
    world_send(world, 1, A, frame, len);
    expect_error(world, 4, AOE_ERROR_ARGUMENT);
    len = world_ata(frame, 0, 5, WRITE_EXT, 0, 1, NULL); /* no flag W */
    world_send(world, 1, A, frame, len);
    expect_error(world, 5, AOE_ERROR_ARGUMENT);
    (void)world_ata(frame, 0, 6, READ_EXT, 0, 1, NULL);
    frame[ATA_AT] = 0; /* no flag E */
    world_send(world, 1, A, frame, DATA_AT);
    expect_error(world, 6, AOE_ERROR_ARGUMENT);
    assert_int_equal(world->fake->history_count, 0);
    assert_int_equal(count_of(world, AOE_ERRORS), 7);
}

static void test_a_small_mtu_allows_two_sectors(void **state)
{
    struct world *world = *state;
    size_t len = world_ata(frame, 0, 1, READ_EXT, 0, 2, NULL);

    world_send(world, 0, A, frame, len);
    (void)expect_end(world, 1, 0x40, 0, 1024);
    len = world_ata(frame, 0, 2, READ_EXT, 0, 3, NULL);
    world_send(world, 0, A, frame, len);
    expect_error(world, 2, AOE_ERROR_ARGUMENT);
}

static void test_padding_is_ignored(void **state)
{
    struct world *world = *state;

    (void)world_ata(frame, 0, 1, READ_EXT, 0, 1, NULL);
    world_send(world, 0, A, frame, 46);
    (void)expect_end(world, 1, 0x40, 0, 512);
}

/* ---- Frames that get no answer. */

static void test_malformed_frames_are_ignored(void **state)
{
    struct world *world = *state;
    size_t len = world_ata(frame, 0, 1, READ_EXT, 0, 1, NULL);

    for (size_t i = 0; i < len; i++) {
        world_send(world, 0, A, frame, i);
    }
    assert_int_equal(count_of(world, AOE_DROP_BAD), len);
    frame[0] = 0x18; /* an answer, from a target or from ourselves */
    world_send(world, 0, A, frame, len);
    assert_int_equal(count_of(world, AOE_DROP_BAD), len + 1);
    world_expect_silence(world);
}

static void test_others_are_not_answered_for(void **state)
{
    struct world *world = *state;
    size_t len = world_ata(frame, 2, 1, READ_EXT, 0, 1, NULL);

    world_send(world, 0, A, frame, len); /* not exported */
    frame[AOE_MINOR] = 200;              /* no NSID */
    world_send(world, 0, A, frame, len);
    frame[AOE_MINOR] = 0;
    frame[AOE_MAJOR] = 7; /* another shelf */
    world_send(world, 0, A, frame, len);
    world_expect_silence(world);
    assert_int_equal(count_of(world, AOE_DROP_NOT_OURS), 3);
}

static void test_no_data_moves_for_all_devices_or_all_shelves_at_once(
    void **state)
{
    struct world *world = *state;
    size_t len;

    fill_data(1);
    len = world_ata(frame, AOE_MINOR_ALL, 1, WRITE_EXT, 0, 1, data);
    world_send(world, 1, A, frame, len);
    frame[AOE_MINOR] = 0;
    frame[AOE_MAJOR] = frame[AOE_MAJOR + 1] = 0xff;
    world_send(world, 1, A, frame, len);
    world_expect_silence(world);
    assert_int_equal(count_of(world, AOE_DROP_BAD), 2);
    assert_int_equal(world->fake->history_count, 0);
}

static void test_other_versions_and_commands_are_refused(void **state)
{
    struct world *world = *state;
    size_t len = world_ata(frame, 0, 1, READ_EXT, 0, 1, NULL);

    frame[0] = 0x20;
    world_send(world, 0, A, frame, len);
    expect_error(world, 1, AOE_ERROR_VERSION);
    frame[0] = 0x10;
    frame[AOE_COMMAND] = 4;
    world_send(world, 0, A, frame, len);
    expect_error(world, 1, AOE_ERROR_COMMAND);
    frame[AOE_COMMAND] = 0xf0;
    world_send(world, 0, A, frame, len);
    expect_error(world, 1, AOE_ERROR_COMMAND);
}

/* ---- Repetitions. */

static void test_a_repeated_write_is_answered_but_not_executed_again(
    void **state)
{
    struct world *world = *state;

    fill_data(1);
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    (void)expect_end(world, 5, 0x40, 0, 0);
    fill_data(2);
    send_command(world, B, 5, WRITE_EXT, 3,
                 2); /* newer data, of somebody else */
    (void)expect_end(world, 5, 0x40, 0, 0);
    fill_data(1);
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    (void)expect_end(world, 5, 0x40, 0, 0);
    assert_int_equal(world->fake->blocks[0][3 * 512], 2);
    assert_int_equal(count_of(world, AOE_REPEATED), 1);
    assert_int_equal(count_of(world, AOE_WRITES), 2);
}

static void test_a_write_that_runs_is_not_started_twice(void **state)
{
    struct world *world = *state;

    fill_data(1);
    world->fake->hold_media = true;
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    assert_int_equal(world->fake->history_count, 1);
    world->fake->hold_media = false;
    world_run(world);
    (void)expect_end(world, 5, 0x40, 0, 0);
    world_expect_silence(world);
}

static void test_what_differs_from_a_write_is_no_repetition(void **state)
{
    struct world *world = *state;

    fill_data(1);
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    send_command(world, A, 6, WRITE_EXT, 3, 2); /* tag */
    send_command(world, A, 5, WRITE_EXT, 4, 2); /* block */
    send_command(world, A, 5, WRITE_EXT, 3, 1); /* number of blocks */
    fill_data(2);
    send_command(world, A, 5, WRITE_EXT, 3, 2); /* data */
    fill_data(1);
    world_send(world, 1, A, frame,
               world_ata(frame, 1, 5, WRITE_EXT, 3, 2, data)); /* device */
    assert_int_equal(world->fake->history_count, 6);
    assert_int_equal(count_of(world, AOE_REPEATED), 0);
}

static void test_a_write_is_forgotten_after_20_seconds(void **state)
{
    struct world *world = *state;

    fill_data(1);
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    world->fake->now_us += 19999999;
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    assert_int_equal(world->fake->history_count, 1);
    world->fake->now_us += 1;
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    assert_int_equal(world->fake->history_count, 2);
}

static void test_a_failed_write_is_executed_again(void **state)
{
    struct world *world = *state;

    fill_data(1);
    world->fake->media_status = MEDIA_WRITE_ERROR;
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    (void)expect_end(world, 5, 0x41, 0x04, 0);
    world->fake->media_status = MEDIA_OK;
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    (void)expect_end(world, 5, 0x40, 0, 0);
    assert_int_equal(world->fake->history_count, 2);
}

static void test_a_repeated_read_is_executed_again(void **state)
{
    struct world *world = *state;
    const uint8_t *got;

    send_command(world, A, 5, READ_EXT, 3, 1);
    got = expect_end(world, 5, 0x40, 0, 512);
    assert_int_equal(got[0], 0);
    fill_data(7);
    send_command(world, B, 9, WRITE_EXT, 3, 1);
    (void)expect_end(world, 9, 0x40, 0, 0);
    send_command(world, A, 5, READ_EXT, 3, 1);
    got = expect_end(world, 5, 0x40, 0, 512);
    assert_int_equal(got[0], 7);
}

static void test_many_stations_displace_no_entry_without_writing(void **state)
{
    struct world *world = *state;

    fill_data(1);
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    (void)expect_end(world, 5, 0x40, 0, 0);
    for (unsigned int i = 0; i < 250; i++) {
        send_command(world, (uint8_t)(3 + i), i, READ_EXT, 0, 1);
        (void)expect_end(world, i, 0x40, 0, 512);
        send_command(world, (uint8_t)(3 + i), i, WRITE_EXT, FAKE_BLOCKS, 1);
        (void)expect_end(world, i, 0x41, 0x10, 0);
    }
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    assert_int_equal(count_of(world, AOE_REPEATED), 1);
}

/* ---- Traces. */

static unsigned int traced[TRACE_TYPES];
static struct trace_record last_record;
static uint32_t trace_mask;

static void keep_record(void *ctx, const struct trace_record *record,
                        const char *text)
{
    (void)ctx, (void)text;
    traced[record->type]++;
    last_record = *record;
}

static void test_commands_are_traced_when_somebody_asks(void **state)
{
    static const struct trace trace = {.mask = &trace_mask,
                                       .emit = keep_record};
    struct world *world = *state;

    world->aoe->trace = &trace;
    memset(traced, 0, sizeof(traced));
    trace_mask = 0;
    fill_data(1);
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    assert_int_equal(traced[TRACE_AOE_COMMAND], 0);
    trace_mask = BIT(TRACE_GROUP_AOE);
    send_command(world, A, 5, WRITE_EXT, 3, 2);
    assert_int_equal(traced[TRACE_AOE_REPEATED], 1);
    assert_int_equal(last_record.arg[2], 3); /* LBA */
    send_command(world, A, 6, READ_EXT, 3, 2);
    assert_int_equal(traced[TRACE_AOE_COMMAND], 1);
    assert_int_equal(traced[TRACE_AOE_END], 1);
    assert_int_equal(last_record.arg[0], READ_EXT);
    assert_int_equal(last_record.arg[2], 6); /* tag */
    assert_int_equal(last_record.arg[3], 0); /* error */
}

/* ---- The order of writes. */

static void test_overlapping_writes_are_executed_as_they_arrived(void **state)
{
    struct world *world = *state;

    world->fake->hold_media = true;
    fill_data(1);
    send_command(world, A, 1, WRITE_EXT, 10, 4);
    fill_data(2);
    send_command(world, B, 2, WRITE_EXT, 13, 1); /* waits for the first one */
    fill_data(3);
    send_command(world, A, 3, WRITE_EXT, 14, 1); /* waits for nothing */
    fill_data(4);
    send_command(world, A, 4, WRITE_EXT, 12, 4); /* waits for all of them */
    assert_int_equal(world->fake->history_count, 2);
    assert_int_equal(world->fake->history[1].first_lba, 14);
    world->fake->hold_media = false;
    world_run(world);
    assert_int_equal(world->fake->history_count, 4);
    assert_int_equal(world->fake->blocks[0][13 * 512], 4 + 1);
    assert_int_equal(world->sent, 4);
}

/* ---- Shares. */

static void test_a_station_and_a_port_have_shares_of_the_slots(void **state)
{
    struct world *world = *state;

    world->fake->hold_media = true;
    for (uint32_t i = 0; i < 20; i++) {
        send_command(world, A, i, READ_EXT, i, 1);
    }
    assert_int_equal(aoe_slots_used(world->aoe), AOE_PEER_SLOTS);
    assert_int_equal(count_of(world, AOE_DROP_FULL), 4);
    for (uint32_t i = 0; i < 100; i++) {
        send_command(world, (uint8_t)(10 + i), i, READ_EXT, i, 1);
    }
    assert_int_equal(aoe_slots_used(world->aoe), AOE_PORT_SLOTS);
    for (uint32_t i = 0; i < 100; i++) { /* the other port */
        size_t len = world_ata(frame, 0, i, READ_EXT, i, 1, NULL);

        world_send(world, 0, (uint8_t)(10 + i), frame, len);
    }
    assert_int_equal(aoe_slots_used(world->aoe), AOE_SLOTS);
    world->fake->hold_media = false;
    world_run(world);
    assert_int_equal(world->sent, AOE_SLOTS);
    assert_int_equal(aoe_slots_used(world->aoe), 0);
}

static void test_answers_wait_for_room_at_the_port(void **state)
{
    struct world *world = *state;

    world->room = 1;
    for (uint32_t i = 0; i < 3; i++) {
        give_command(world, A, i, READ_EXT, i, 1);
    }
    world_run(world);
    assert_int_equal(world->sent, 1);
    assert_int_equal(aoe_slots_used(world->aoe), 2);
    world->room = 5;
    world_run(world);
    assert_int_equal(world->sent, 3);
    assert_int_equal(aoe_slots_used(world->aoe), 0);
}

static void give_write(struct world *world, uint8_t port, uint8_t from,
                       uint32_t tag, uint8_t value)
{
    fill_data(value);
    world_send(world, port, from, frame,
               world_ata(frame, 0, tag, WRITE_EXT, 7, 1, data));
}

/* A host has a card at each port.  One port takes no frames any more, so the
 * host repeats its write by the other one. */
static void test_an_answer_that_waits_holds_up_no_write(void **state)
{
    struct world *world = *state;

    world->is_full[0] = true;
    give_write(world, 0, A, 1, 0x11);
    world_expect_silence(world);
    assert_int_equal(aoe_slots_used(world->aoe), 1);
    give_write(world, 1, B, 2, 0x11);
    (void)expect_end(world, 2, 0x40, 0, 0);
    give_write(world, 1, B, 3, 0x22); /* newer data */
    (void)expect_end(world, 3, 0x40, 0, 0);
    world->is_full[0] = false;
    world_run(world);
    (void)expect_end(world, 1, 0x40, 0, 0);
    assert_int_equal(world->fake->blocks[0][7 * 512], 0x22);
}

static void test_answers_are_given_up_without_a_link(void **state)
{
    struct world *world = *state;

    world->no_link[0] = true;
    give_write(world, 0, A, 1, 0x11);
    world_send(world, 0, A, frame,
               world_ata(frame, 0, 2, READ_EXT, 7, 1, NULL));
    assert_int_equal(aoe_slots_used(world->aoe), 0);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_DROP_NO_LINK), 2);
    world->no_link[0] = false;
    world_run(world);
    world_expect_silence(world);
    assert_int_equal(world->fake->blocks[0][7 * 512], 0x11);
    /* It was executed, so its repetition is not. */
    give_write(world, 0, A, 1, 0x11);
    (void)expect_end(world, 1, 0x40, 0, 0);
    assert_int_equal(aoe_count(world->aoe, 0, AOE_REPEATED), 1);
}

/* The cable is pulled while answers wait for room. */
static void test_a_pulled_cable_ends_what_waits_for_room(void **state)
{
    struct world *world = *state;

    world->is_full[0] = true;
    give_write(world, 0, A, 1, 0x11);
    assert_int_equal(aoe_slots_used(world->aoe), 1);
    world->no_link[0] = true;
    world_run(world);
    assert_int_equal(aoe_slots_used(world->aoe), 0);
}

static void test_data_may_come_in_several_windows(void **state)
{
    struct world *world = *state;
    const uint8_t *got;

    fill_data(1);
    send_command(world, A, 1, WRITE_EXT, 0, 16);
    (void)expect_end(world, 1, 0x40, 0, 0);
    world->fake->window_max = 4096;
    send_command(world, A, 2, READ_EXT, 0, 16);
    got = expect_end(world, 2, 0x40, 0, sizeof(data));
    assert_memory_equal(got, data, sizeof(data));
}

/* ---- The association. */

WITH_FIXTURE(NULL, NULL)
static void test_nothing_is_answered_before_the_target_is_connected(
    void **state)
{
    struct world *world = world_new();
    size_t len = world_ata(frame, 0, 1, READ_EXT, 0, 1, NULL);

    (void)state;
    world_give(world, 0, A, frame, len);
    world_expect_silence(world);
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_NOT_CONNECTED);
    world_run(world);
    assert_int_equal(world->connected, 1);
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_EXPORTED);
    world_send(world, 0, A, frame, len);
    assert_int_equal(world->sent, 1);
    world_free(world);
}

static bool find_no_host(void *ctx, const char *hostnqn, struct nvmf_host *host)
{
    (void)ctx, (void)hostnqn, (void)host;
    return false;
}

WITH_FIXTURE(NULL, NULL)
static void test_the_list_of_hosts_does_not_concern_it(void **state)
{
    struct nvmf_ctrl_info info;
    struct fake *fake = fake_new();
    struct world *world;

    (void)state;
    fake->config.hosts.find = find_no_host;
    world = world_new_with(fake);
    world_run(world);
    assert_true(nvmf_target_ctrl_info(fake->target, 0, &info));
    assert_string_equal(info.hostnqn, AOE_HOSTNQN);
    assert_int_equal(info.qpairs, 2);
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_EXPORTED);
    world_free(world);
}

static void test_it_connects_again_after_an_end_of_its_association(void **state)
{
    struct world *world = *state;

    world->fake->hold_media = true;
    fill_data(1);
    send_command(world, A, 1, WRITE_EXT, 0, 1);
    send_command(world, A, 2, READ_EXT, 8, 1);
    assert_int_equal(
        nvmf_target_end_ctrls(world->fake->target, NULL, world->fake->now_us),
        1);
    world_run(world);
    assert_int_equal(world->aoe->host_state, AOE_HOST_ENDING);
    send_command(world, A, 3, READ_EXT, 0, 1);
    world_expect_silence(world);
    world->fake->hold_media = false;
    world_run(world);
    assert_int_equal(world->aoe->host_state, AOE_HOST_IDLE);
    assert_int_equal(aoe_slots_used(world->aoe), 0);
    world_expect_silence(world); /* their hosts repeat them */
    assert_int_equal(world->binding.ops->watch(world->aoe),
                     world->fake->now_us + 1000000);
    world->fake->now_us += 1000000;
    world_run(world);
    assert_int_equal(world->aoe->host_state, AOE_HOST_LIVE);
    send_command(world, A, 1, WRITE_EXT, 0, 1);
    (void)expect_end(world, 1, 0x40, 0, 0);
}

static void test_a_command_without_an_answer_ends_the_association(void **state)
{
    struct world *world = *state;
    uint64_t at_us = world->fake->now_us + 30000000;

    world->fake->hold_media = true;
    send_command(world, A, 1, READ_EXT, 0, 1);
    assert_int_equal(world->binding.ops->watch(world->aoe), at_us);
    world->fake->now_us = at_us - 1;
    world_run(world);
    assert_int_equal(world->binding.ops->watch(world->aoe), at_us);
    assert_int_equal(world->aoe->host_state, AOE_HOST_LIVE);
    world->fake->now_us = at_us;
    world_run(world);
    (void)world->binding.ops->watch(world->aoe);
    assert_int_equal(world->aoe->host_state, AOE_HOST_ENDING);
    world->fake->hold_media = false;
    world_run(world);
    world->fake->now_us += 1000000;
    world_run(world);
    send_command(world, A, 2, READ_EXT, 0, 1);
    (void)expect_end(world, 2, 0x40, 0, 512);
}

static void test_a_drive_that_shuts_down_is_not_in_use(void **state)
{
    struct world *world = *state;

    assert_true(nvmf_target_is_in_use(world->fake->target));
    aoe_stop(world->aoe);
    assert_false(nvmf_target_is_in_use(world->fake->target));
    world_run(world);
    world->fake->now_us += 5000000;
    world_run(world);
    assert_int_equal(world->aoe->host_state, AOE_HOST_IDLE);
    assert_int_equal(world->binding.ops->watch(world->aoe), UINT64_MAX);
    send_command(world, A, 1, READ_EXT, 0, 1);
    world_expect_silence(world);
    aoe_stop(world->aoe);
}

static void test_answers_that_wait_are_given_up_with_the_association(
    void **state)
{
    struct world *world = *state;

    world->room = 0;
    send_command(world, A, 1, READ_EXT, 0, 1);
    assert_int_equal(world->aoe->answering, 1);
    (void)nvmf_target_end_ctrls(world->fake->target, NULL, world->fake->now_us);
    world_run(world);
    assert_int_equal(world->aoe->answering, 0);
    assert_int_equal(world->aoe->host_state, AOE_HOST_IDLE);
    world->room = 10;
    world->fake->now_us += 1000000;
    world_run(world);
    assert_int_equal(world->aoe->host_state, AOE_HOST_LIVE);
    world_expect_silence(world);
}

/* ---- Namespaces that are no devices. */

static void test_only_plain_namespaces_of_512_bytes_are_exported(void **state)
{
    struct world *world = *state;
    struct nvmf_ns *ns = &world->fake->target->ns[0];
    const struct nvmf_ns good = *ns;

    assert_int_equal(aoe_is_exported(world->aoe, 3), AOE_NOT_LISTED);
    ns->geometry.block_shift = 12;
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_BLOCKS_4096);
    send_command(world, A, 1, IDENTIFY, 0, 1);
    world_expect_silence(world);
    ns->geometry.block_shift = 9;
    ns->geometry.has_metadata = true;
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_METADATA);
    ns->geometry.has_metadata = false;
    ns->geometry.zone_blocks = 64;
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_ZONED);
    ns->geometry.zone_blocks = 0;
    ns->volume.is_private = true;
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_PRIVATE);
    ns->volume.is_private = false;
    world->fake->target->ctrl[0].active_ns[0] = 0x2;
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_NOT_ATTACHED);
    world->fake->target->ctrl[0].active_ns[0] = 0x3;
    ns->state = NS_FREE;
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_NO_NAMESPACE);
    *ns = good;
    assert_int_equal(aoe_is_exported(world->aoe, 1), AOE_EXPORTED);
    for (int reason = 0; reason < AOE_EXPORT_REASONS; reason++) {
        assert_non_null(aoe_export_text((enum aoe_export)reason));
    }
}

/* ---- One gate with the commands of NVMe hosts. */

static void test_a_protected_namespace_is_not_written(void **state)
{
    struct world *world = *state;

    world->fake->target->ns[0].geometry.is_read_only = true;
    fill_data(1);
    send_command(world, A, 1, WRITE_EXT, 0, 1);
    (void)expect_end(world, 1, 0x41, 0x04, 0);
    send_command(world, A, 2, READ_EXT, 0, 1);
    (void)expect_end(world, 2, 0x40, 0, 512);
}

static void acquire_reservation(struct world *world, uint8_t type)
{
    struct fake *fake = world->fake;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint8_t keys[16] = {0};
    struct nvme_sqe sqe = {.nsid = 1};

    put_le64(keys + 8, 0x11);
    sqe.opcode = NVM_RESERVATION_REGISTER;
    assert_int_equal(fake_exec(fake, io, &sqe, keys, 16).status, 0);
    memset(keys, 0, sizeof(keys));
    put_le64(keys, 0x11);
    sqe.opcode = NVM_RESERVATION_ACQUIRE;
    sqe.cdw10 = (uint32_t)type << 8;
    assert_int_equal(fake_exec(fake, io, &sqe, keys, 16).status, 0);
}

static void test_a_reservation_of_a_host_fences_writes(void **state)
{
    struct world *world = *state;

    acquire_reservation(world, 1); /* Write Exclusive */
    fill_data(1);
    send_command(world, A, 1, WRITE_EXT, 0, 1);
    (void)expect_end(world, 1, 0x41, 0x04, 0);
    send_command(world, A, 2, READ_EXT, 0, 1);
    (void)expect_end(world, 2, 0x40, 0, 512);
}

static void test_an_exclusive_access_reservation_fences_reads_too(void **state)
{
    struct world *world = *state;

    acquire_reservation(world, 2);
    fill_data(1);
    send_command(world, A, 1, WRITE_EXT, 0, 1);
    (void)expect_end(world, 1, 0x41, 0x04, 0);
    send_command(world, A, 2, READ_EXT, 0, 1);
    (void)expect_end(world, 2, 0x41, 0x04, 0);
}

static void test_a_namespace_that_is_formatted_is_not_used(void **state)
{
    struct world *world = *state;

    world->fake->target->ns[0].state = NS_FORMATTING;
    for (unsigned int i = 0; i < NVMF_MAX_HOSTS; i++) {
        world->fake->target->ctrl[i].ns_bars[0] = 0xff;
    }
    fill_data(1);
    send_command(world, A, 1, WRITE_EXT, 0, 1);
    (void)expect_end(world, 1, 0x41, 0x04, 0);
    send_command(world, A, 2, READ_EXT, 0, 1);
    (void)expect_end(world, 2, 0x41, 0x04, 0);
    assert_int_equal(world->fake->history_count, 0);
}
