/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NAND controller through its driver: data, order, times, refusals, resets
 * and power cuts.
 */
#include "tests/native/nand_bed.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

static struct nand_bed_place place_at(uint8_t channel, uint8_t die,
                                      uint8_t planes, uint16_t block,
                                      uint16_t wordline)
{
    return (struct nand_bed_place){.channel = channel,
                                   .die = die,
                                   .planes = planes,
                                   .block = block,
                                   .wordline = wordline};
}

static struct nand_bed *new_bed(const char *profile, uint8_t channels,
                                uint8_t dies, bool is_realtime)
{
    struct nand_bed *bed = malloc(sizeof(*bed));

    assert_non_null(bed);
    nand_bed_init(bed, &(struct nand_bed_config){.profile = profile,
                                                 .channels = channels,
                                                 .dies = dies,
                                                 .blocks = 4,
                                                 .wordlines = 4,
                                                 .is_realtime = is_realtime});
    return bed;
}

static void free_bed(struct nand_bed *bed)
{
    nand_bed_end(bed);
    free(bed);
}

static int setup(void **state)
{
    *state = new_bed("tlc2021", 2, 2, false);
    return 0;
}

static int setup_realtime(void **state)
{
    *state = new_bed("tlc2021", 4, 2, true);
    return 0;
}

static int teardown(void **state)
{
    free_bed(*state);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* The first block of these planes that the factory has not marked as bad. */
static uint16_t good_block(struct nand_bed *bed,
                           const struct nand_bed_place *place)
{
    uint8_t *marks = bed->slots[0].data;

    for (uint16_t block = 0; block < bed->info.blocks; block++) {
        unsigned int bad = 0;

        for (unsigned int plane = 0; plane < bed->info.planes; plane++) {
            if (place->planes & BIT(plane)) {
                const struct nand_command command = {
                    .opcode = NAND_CMD_MARKS,
                    .channel = place->channel,
                    .die = place->die,
                    .planes = (uint8_t)BIT(plane),
                    .list = marks,
                };

                assert_true(nand_submit(&bed->nand, &command));
                assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
                bad += marks[block];
            }
        }
        if (bad == 0) {
            return block;
        }
    }
    fail_msg("all blocks of a die are marked as bad");
    return 0;
}

static void erase_now(struct nand_bed *bed, const struct nand_bed_place *place)
{
    nand_bed_erase(bed, 0, place);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
}

static void program_now(struct nand_bed *bed,
                        const struct nand_bed_place *place, uint32_t version)
{
    nand_bed_program(bed, 0, place, version);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
}

static enum nand_cqe_status read_now(struct nand_bed *bed,
                                     const struct nand_bed_place *place)
{
    nand_bed_read(bed, 1, place, nand_bed_units(bed, place), false);
    return nand_bed_wait_one(bed)->status;
}

/* ---- Data */

static void round_trip(struct nand_bed *bed, struct nand_bed_place place)
{
    unsigned int units = nand_bed_units(bed, &place);

    erase_now(bed, &place);
    assert_int_equal(read_now(bed, &place), NAND_CQE_ERASED);
    assert_int_equal(nand_bed_result(bed, 1, units - 1).status,
                     NAND_CQE_ERASED);
    for (place.wordline = 0; place.wordline < 2; place.wordline++) {
        program_now(bed, &place, place.block * 10u + place.wordline);
    }
    for (place.wordline = 0; place.wordline < 2; place.wordline++) {
        assert_int_equal(read_now(bed, &place), NAND_CQE_OK);
        nand_bed_expect(bed, 1, &place, units,
                        place.block * 10u + place.wordline);
    }
    place.wordline = 0;
    erase_now(bed, &place);
    assert_int_equal(read_now(bed, &place), NAND_CQE_ERASED);
}

WITH_FIXTURE(NULL, NULL)
static void test_nand_every_profile_reads_what_was_programmed(void **state)
{
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        const struct nand_profile *profile = nand_profile(i);

        for (unsigned int is_realtime = 0; is_realtime < 2; is_realtime++) {
            struct nand_bed *bed = new_bed(profile->name, (uint8_t)(1 + i % 3),
                                           (uint8_t)(1 + i % 2), is_realtime);
            uint8_t all = (uint8_t)(BIT(profile->planes) - 1);
            struct nand_bed_place place =
                place_at((uint8_t)(i % 3), (uint8_t)(i % 2), all, 0, 0);

            place.block = good_block(bed, &place);
            round_trip(bed, place);
            place.planes = (uint8_t)BIT(profile->planes - 1);
            round_trip(bed, place);
            if (profile->slc.pages != 0) {
                place.slc = true;
                round_trip(bed, place);
            }
            free_bed(bed);
        }
    }
    (void)state;
}

static void test_nand_geometry_is_that_of_the_array(void **state)
{
    struct nand_bed *bed = *state;
    const struct nand_profile *profile = nand_profile_find("tlc2021");

    assert_int_equal(bed->info.channels, 2);
    assert_int_equal(bed->info.dies, 2);
    assert_int_equal(bed->info.planes, profile->planes);
    assert_int_equal(bed->info.blocks, 4);
    assert_int_equal(bed->info.wordlines, 4);
    assert_int_equal(bed->info.pages, profile->native.pages);
    assert_int_equal(bed->info.units, profile->units);
    assert_int_equal(bed->info.endurance, profile->native.endurance);
    assert_int_equal(bed->info.hard_bits, profile->bits[0]);
    assert_int_equal(bed->info.steps, profile->steps);
}

static void test_nand_parts_of_a_unit_are_read_once(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(1, 0, 1, 0, 0);
    const struct nand_bed_slot *slot = &bed->slots[2];
    struct nand_place unit = {.unit = 1};
    uint8_t want[NAND_DATA_LEN];
    uint64_t units;

    place.block = good_block(bed, &place);
    erase_now(bed, &place);
    program_now(bed, &place, 7);
    memcpy(want, bed->slots[0].data + NAND_DATA_LEN, NAND_DATA_LEN);
    memset(slot->data, 0xa5, NAND_DATA_LEN);
    nand_entry_read(slot->list, &unit, slot->data, 512, 512, NULL, true);
    nand_entry_read(slot->list + NAND_ENTRY_LEN, &unit, slot->data + 1024, 2048,
                    8, slot->meta, false);
    units = nand_counter_read(&bed->nand, NAND_COUNT_UNITS_READ);
    assert_true(
        nand_submit(&bed->nand, &(struct nand_command){.opcode = NAND_CMD_READ,
                                                       .channel = 1,
                                                       .planes = 1,
                                                       .block = {place.block},
                                                       .entries = 2,
                                                       .list = slot->list}));
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
    assert_memory_equal(slot->data, want + 512, 512);
    assert_int_equal(slot->data[512], 0xa5);
    assert_memory_equal(slot->data + 1024, want + 2048, 8);
    assert_int_equal(slot->data[1024 + 8], 0xa5);
    assert_int_equal(slot->meta[0], 8);
    assert_int_equal(nand_bed_result(bed, 2, 1).system[0], 7);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_UNITS_READ),
                     units + 1);
}

/* ---- Refusals */

static void test_nand_rules_of_the_flash_are_refused_by_number(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(0, 1, 1, 0, 1);
    struct nand_bed_place other = place_at(0, 1, 2, 0, 0);
    struct nand_command both = {.opcode = NAND_CMD_PROGRAM,
                                .die = 1,
                                .planes = 3,
                                .list = bed->slots[3].list};

    place.block = good_block(bed, &place);
    other.block = good_block(bed, &other);
    erase_now(bed, &place);
    /* Out of order. */
    nand_bed_program(bed, 0, &place, 1);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_RULE);
    assert_int_equal(nand_bed_done(bed, 0)->rule, 1);
    /* A second time. */
    place.wordline = 0;
    program_now(bed, &place, 1);
    nand_bed_program(bed, 0, &place, 2);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_RULE);
    assert_int_equal(nand_bed_done(bed, 0)->rule, 1);
    /* Two modes. */
    other.slc = true;
    erase_now(bed, &other);
    erase_now(bed, &place);
    for (unsigned int i = 0; i < 2u * bed->info.units; i++) {
        _Alignas(8) const uint8_t system[NAND_SYSTEM_LEN] = {0};

        nand_entry_program(both.list + (size_t)i * NAND_ENTRY_LEN,
                           bed->slots[3].data, NULL, system);
    }
    both.entries = 2u * bed->info.units;
    both.block[0] = place.block;
    both.block[1] = other.block;
    assert_true(nand_submit(&bed->nand, &both));
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_RULE);
    assert_int_equal(bed->done[bed->num_done - 1].rule, 2);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_VIOLATIONS), 3);
    assert_int_equal(bed->machine.nand_violations, 3);
}

struct refusal {
    struct nand_command command;
    enum nand_cqe_status status;
};

static void test_nand_commands_outside_of_their_limits_are_refused(void **state)
{
    struct nand_bed *bed = *state;
    uint8_t *list = bed->slots[1].list;
    const struct nand_command erase = {.opcode = NAND_CMD_ERASE, .planes = 1};
    const struct nand_command read = {
        .opcode = NAND_CMD_READ, .planes = 1, .entries = 1, .list = list};
    struct refusal refusals[16];
    unsigned int n = 0;

#define REFUSE(like, field, value, want)                                       \
    do {                                                                       \
        refusals[n].command = like;                                            \
        refusals[n].command.field = value;                                     \
        refusals[n++].status = want;                                           \
    } while (0)
    REFUSE(erase, opcode, (enum nand_opcode)5, NAND_CQE_BAD_OPCODE);
    REFUSE(erase, channel, 2, NAND_CQE_BAD_ADDRESS);
    REFUSE(erase, die, 2, NAND_CQE_BAD_ADDRESS);
    REFUSE(erase, planes, 0, NAND_CQE_BAD_ARGUMENT);
    REFUSE(erase, planes, 0x10, NAND_CQE_BAD_ADDRESS);
    REFUSE(erase, block[0], 4, NAND_CQE_BAD_ADDRESS);
    REFUSE(erase, urgent, true, NAND_CQE_BAD_ARGUMENT);
    REFUSE(erase, entries, 1, NAND_CQE_BAD_ARGUMENT);
    REFUSE(read, slc, true, NAND_CQE_BAD_ARGUMENT);
    REFUSE(read, entries, 0, NAND_CQE_BAD_ARGUMENT);
    REFUSE(read, entries, 65, NAND_CQE_BAD_ARGUMENT);
    REFUSE(read, list, list + 8, NAND_CQE_BAD_ARGUMENT);
    REFUSE(read, list, NULL, NAND_CQE_BAD_ADDRESS);
#undef REFUSE
    nand_entry_read(list, &(struct nand_place){0}, bed->slots[1].data, 0,
                    NAND_DATA_LEN, NULL, false);
    for (unsigned int i = 0; i < n; i++) {
        assert_true(nand_submit(&bed->nand, &refusals[i].command));
        assert_int_equal(nand_bed_wait_one(bed)->status, refusals[i].status);
    }
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_BLOCKS_ERASED),
                     0);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_UNITS_READ), 0);
}

struct bad_entry {
    struct nand_place place;
    uint16_t offset;
    uint16_t length;
    bool more;
    enum nand_cqe_status status;
};

static void test_nand_entries_outside_of_their_limits_are_refused(void **state)
{
    static const struct bad_entry entries[] = {
        {{.plane = 1}, 0, 4096, false, NAND_CQE_BAD_ARGUMENT},
        {{.wordline = 4}, 0, 4096, false, NAND_CQE_BAD_ADDRESS},
        {{.page = 3}, 0, 4096, false, NAND_CQE_BAD_ADDRESS},
        {{.unit = 4}, 0, 4096, false, NAND_CQE_BAD_ADDRESS},
        {{.unit = 0}, 4, 8, false, NAND_CQE_BAD_ARGUMENT},
        {{.unit = 0}, 8, 12, false, NAND_CQE_BAD_ARGUMENT},
        {{.unit = 0}, 8, 4096, false, NAND_CQE_BAD_ARGUMENT},
        {{.unit = 0}, 0, 0, false, NAND_CQE_BAD_ARGUMENT},
        {{.unit = 0}, 0, 8, true, NAND_CQE_BAD_ARGUMENT},
    };
    struct nand_bed *bed = *state;

    for (unsigned int i = 0; i < ARRAY_LEN(entries); i++) {
        const struct bad_entry *bad = &entries[i];
        struct nand_bed_slot *slot = &bed->slots[1];

        nand_entry_read(slot->list, &bad->place, slot->data, bad->offset,
                        bad->length, NULL, bad->more);
        assert_true(nand_submit(&bed->nand,
                                &(struct nand_command){.opcode = NAND_CMD_READ,
                                                       .planes = 1,
                                                       .entries = 1,
                                                       .list = slot->list}));
        assert_int_equal(nand_bed_wait_one(bed)->status, bad->status);
    }
}

/* ---- Time.  The profile's numbers are in nand_profile.c. */

static const struct nand_profile *tlc_part(void)
{
    return nand_profile_find("tlc2021");
}

/* The time for which a transfer of units occupies the channel. */
static uint64_t transfer_ns(unsigned int units)
{
    return (uint64_t)units * (NAND_DATA_LEN + tlc_part()->spare_bytes / 4) *
           1000 / tlc_part()->channel_mbps;
}

/* The time for which a PROGRAM of one plane occupies the channel. */
static uint64_t program_input_ns(void)
{
    return 3u * tlc_part()->command_ns + transfer_ns(12);
}

/* Erase the same block of these dies; the clock is at the end of it. */
static struct nand_bed_place erased_block(struct nand_bed *bed, uint8_t channel,
                                          uint8_t die)
{
    struct nand_bed_place place = place_at(channel, die, 1, 0, 0);

    place.block = good_block(bed, &place);
    erase_now(bed, &place);
    return place;
}

/* Microseconds, rounded up. */
static uint64_t to_us(uint64_t ns)
{
    return (ns + 999) / 1000;
}

/* All planes of a die are programmed in one operation. */
WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_registers_say_how_long_operations_take(void **state)
{
    struct nand_bed *bed = *state;
    const struct nand_profile *part = tlc_part();
    const struct nand_info *info = &bed->info;

    assert_int_equal(info->program_us, to_us(part->native.program_ns));
    assert_int_equal(info->transfer_us,
                     to_us(12u * part->command_ns + transfer_ns(48) +
                           part->program_copy_ns));
    assert_int_equal(info->erase_us, to_us(part->native.erase_ns));
    assert_int_equal(info->read_us, 56);
}

WITH_FIXTURE(setup, teardown)
static void test_nand_registers_say_that_operations_take_no_time(void **state)
{
    struct nand_bed *bed = *state;
    const struct nand_info *info = &bed->info;

    assert_int_equal(info->program_us + info->transfer_us, 0);
    assert_int_equal(info->erase_us + info->read_us, 0);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_dies_of_different_channels_program_at_the_same_time(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place places[4];
    uint64_t started_ns;

    for (uint8_t i = 0; i < 4; i++) {
        places[i] = erased_block(bed, i, 0);
    }
    started_ns = bed->world.now_ns;
    for (unsigned int i = 0; i < 4; i++) {
        nand_bed_program(bed, i, &places[i], i);
    }
    nand_bed_wait(bed, 4);
    for (unsigned int i = 0; i < 4; i++) {
        assert_int_equal(nand_bed_done(bed, i)->status, NAND_CQE_OK);
        assert_int_equal(nand_bed_done(bed, i)->time_ns - started_ns,
                         program_input_ns() + tlc_part()->native.program_ns);
    }
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_dies_of_one_channel_wait_for_each_others_transfers(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place places[2];
    uint64_t started_ns;

    for (uint8_t i = 0; i < 2; i++) {
        places[i] = erased_block(bed, 1, i);
    }
    started_ns = bed->world.now_ns;
    for (unsigned int i = 0; i < 2; i++) {
        nand_bed_program(bed, i, &places[i], i);
    }
    nand_bed_wait(bed, 2);
    for (unsigned int i = 0; i < 2; i++) {
        assert_int_equal(nand_bed_done(bed, i)->status, NAND_CQE_OK);
        assert_int_equal(nand_bed_done(bed, i)->time_ns - started_ns,
                         (i + 1) * program_input_ns() +
                             tlc_part()->native.program_ns);
    }
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_a_read_takes_the_time_of_each_of_its_pages(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    uint64_t started_ns, want_ns = 0;
    const struct nand_done *done;

    program_now(bed, &place, 1);
    started_ns = bed->world.now_ns;
    assert_int_equal(read_now(bed, &place), NAND_CQE_OK);
    done = nand_bed_done(bed, 1);
    assert_int_equal(done->steps, 0);
    /* A page is sent while the next one is read. */
    for (unsigned int page = 0; page < 3; page++) {
        want_ns += tlc_part()->command_ns + tlc_part()->native.read_ns[page] +
                   (page > 0 ? tlc_part()->read_copy_ns : 0);
    }
    want_ns += tlc_part()->read_copy_ns + transfer_ns(4);
    assert_int_equal(done->time_ns - started_ns,
                     want_ns + tlc_part()->decode_ns);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_a_block_in_slc_mode_has_the_times_of_this_mode(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    const struct nand_cell_mode *slc = &tlc_part()->slc;
    uint64_t started_ns;

    place.slc = true;
    erase_now(bed, &place);
    started_ns = bed->world.now_ns;
    program_now(bed, &place, 1);
    assert_int_equal(bed->world.now_ns - started_ns,
                     tlc_part()->command_ns + transfer_ns(4) + slc->program_ns);
    started_ns = bed->world.now_ns;
    assert_int_equal(read_now(bed, &place), NAND_CQE_OK);
    assert_int_equal(nand_bed_done(bed, 1)->time_ns - started_ns,
                     tlc_part()->command_ns + slc->read_ns[0] + transfer_ns(4) +
                         tlc_part()->decode_ns);
    started_ns = bed->world.now_ns;
    erase_now(bed, &place);
    assert_int_equal(bed->world.now_ns - started_ns,
                     tlc_part()->command_ns + slc->erase_ns);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_an_urgent_read_suspends_an_erase_of_another_block(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    struct nand_bed_place other = place;
    uint64_t started_ns, read_ns, first_ns, second_ns;

    program_now(bed, &place, 1);
    other.block = (uint16_t)(place.block + 1); /* bad ones were not met */
    started_ns = bed->world.now_ns;
    nand_bed_erase(bed, 0, &other);
    nand_bed_read(bed, 2, &place, 1, false);
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 1000000);
    read_ns = bed->world.now_ns;
    nand_bed_read(bed, 3, &place, 1, true);
    nand_bed_read(bed, 4, &place, 1, true);
    nand_bed_wait(bed, 4);
    assert_int_equal(bed->done[bed->num_done - 4].cookie, 3);
    assert_int_equal(bed->done[bed->num_done - 3].cookie, 4);
    assert_int_equal(bed->done[bed->num_done - 2].cookie, 0);
    /* Only the first of two reads waits for the suspension, and the flash is
     * read for the second one while the data of the first one is sent. */
    first_ns = tlc_part()->command_ns + tlc_part()->suspend_ns +
               tlc_part()->native.read_ns[0];
    second_ns = tlc_part()->command_ns + tlc_part()->read_copy_ns +
                tlc_part()->native.read_ns[0] + tlc_part()->read_copy_ns;
    assert_int_equal(nand_bed_done(bed, 3)->time_ns - read_ns,
                     first_ns + tlc_part()->command_ns +
                         tlc_part()->read_copy_ns + transfer_ns(1) +
                         tlc_part()->decode_ns);
    assert_int_equal(nand_bed_done(bed, 4)->time_ns - read_ns,
                     first_ns + second_ns + transfer_ns(1) +
                         tlc_part()->decode_ns);
    assert_int_equal(nand_bed_done(bed, 0)->time_ns - started_ns,
                     tlc_part()->command_ns + tlc_part()->native.erase_ns +
                         first_ns + second_ns + transfer_ns(1) +
                         tlc_part()->resume_ns);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_SUSPENDS), 1);
    /* A read of the block that is being erased waits. */
    nand_bed_erase(bed, 0, &other);
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 1000000);
    nand_bed_read(bed, 3, &other, 1, true);
    nand_bed_wait(bed, 2);
    assert_int_equal(bed->done[bed->num_done - 1].cookie, 3);
    assert_int_equal(bed->done[bed->num_done - 1].status, NAND_CQE_ERASED);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_SUSPENDS), 1);
}

WITH_FIXTURE(setup_realtime, teardown)
static void
test_nand_an_urgent_read_passes_a_program_that_waits_for_the_channel(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place first = erased_block(bed, 0, 0);
    struct nand_bed_place second = erased_block(bed, 0, 1);
    struct nand_bed_place read = second;
    uint64_t started_ns, read_ns;

    program_now(bed, &second, 1);
    second.wordline = 1;
    started_ns = bed->world.now_ns;
    nand_bed_program(bed, 0, &first, 2);
    nand_bed_program(bed, 2, &second, 3);
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 1000); /* the first one is transferred */
    nand_bed_read(bed, 3, &read, 1, true);
    nand_bed_wait(bed, 3);
    read_ns = started_ns + program_input_ns() + tlc_part()->command_ns +
              tlc_part()->native.read_ns[0] + transfer_ns(1);
    assert_int_equal(nand_bed_done(bed, 3)->time_ns,
                     read_ns + tlc_part()->decode_ns);
    nand_bed_expect(bed, 3, &read, 1, 1);
    assert_int_equal(nand_bed_done(bed, 2)->time_ns,
                     read_ns + program_input_ns() +
                         tlc_part()->native.program_ns);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_SUSPENDS), 0);
}

static void test_nand_urgent_reads_pass_commands_that_have_not_begun(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(0, 0, 1, 0, 0);

    place.block = good_block(bed, &place);
    nand_bed_erase(bed, 0, &place);
    nand_bed_read(bed, 1, &place, 1, false);
    nand_bed_read(bed, 2, &place, 1, true);
    nand_bed_read(bed, 3, &place, 1, true);
    nand_bed_wait(bed, 4);
    assert_int_equal(bed->done[bed->num_done - 4].cookie, 2);
    assert_int_equal(bed->done[bed->num_done - 3].cookie, 3);
    assert_int_equal(bed->done[bed->num_done - 2].cookie, 0);
    assert_int_equal(bed->done[bed->num_done - 1].cookie, 1);
}

/*
 * All dies of the largest array erase at the same time, except for blocks that
 * the factory has marked as bad.
 */
WITH_FIXTURE(NULL, NULL)
static void test_nand_the_largest_array_refuses_exactly_its_marked_blocks(
    void **state)
{
    const struct nand_profile *profile = nand_profile_find("slc");
    struct nand_bed *bed = malloc(sizeof(*bed));
    unsigned int bad = 0;

    (void)state;
    assert_non_null(bed);
    nand_bed_init(bed, &(struct nand_bed_config){.profile = profile->name,
                                                 .channels = 16,
                                                 .dies = 16,
                                                 .blocks = 2,
                                                 .wordlines = 1,
                                                 .is_realtime = true});
    assert_int_equal(bed->info.channels * bed->info.dies, 256);
    for (unsigned int batch = 0; batch < 256; batch += NAND_BED_COMMANDS) {
        uint64_t started_ns = 0;

        for (unsigned int i = 0; i < NAND_BED_COMMANDS; i++) {
            assert_true(nand_submit(
                &bed->nand,
                &(struct nand_command){.opcode = NAND_CMD_MARKS,
                                       .channel = (uint8_t)(i % 16),
                                       .die = (uint8_t)((batch + i) / 16),
                                       .planes = 1,
                                       .list = bed->slots[i].data}));
        }
        nand_bed_wait(bed, NAND_BED_COMMANDS);
        started_ns = bed->world.now_ns;
        for (unsigned int i = 0; i < NAND_BED_COMMANDS; i++) {
            struct nand_bed_place place = place_at(
                (uint8_t)(i % 16), (uint8_t)((batch + i) / 16), 1, 1, 0);

            nand_bed_erase(bed, i, &place);
        }
        nand_bed_wait(bed, NAND_BED_COMMANDS);
        for (unsigned int i = 0; i < NAND_BED_COMMANDS; i++) {
            const struct nand_done *done = nand_bed_done(bed, i);
            uint64_t input_ns = (i / 16 + 1) * profile->command_ns;

            if (bed->slots[i].data[1]) {
                assert_int_equal(done->status, NAND_CQE_RULE);
                assert_int_equal(done->rule, 3);
                bad++;
                continue;
            }
            assert_int_equal(done->status, NAND_CQE_OK);
            assert_int_equal(done->time_ns - started_ns,
                             input_ns + profile->native.erase_ns);
        }
        bed->num_done = 0;
    }
    assert_in_range(bad, 1, 20);
    free_bed(bed);
}

/* ---- Errors of the flash */

/* Inject a fault into a channel's first die. */
static void inject_fault(struct nand_bed *bed, uint8_t channel,
                         struct nand_injection injection)
{
    injection.channel = channel;
    injection.die = 0;
    injection.trigger =
        (struct fault_trigger){.times = 1, .chance = FAULT_CHANCE_ALWAYS};
    assert_true(nand_array_inject(bed->machine.nand->array, &injection));
}

static const struct nand_injection anywhere = {
    .plane = NAND_ANYWHERE,
    .block = NAND_ANYWHERE,
    .wordline = NAND_ANYWHERE,
    .page = NAND_ANYWHERE,
    .unit = NAND_ANYWHERE,
};

static void test_nand_a_failure_names_the_planes_that_failed(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(1, 0, 0xf, 0, 0);
    struct nand_injection fault = anywhere;
    const struct nand_done *done;

    place.block = good_block(bed, &place);
    erase_now(bed, &place);
    fault.kind = NAND_OP_PROGRAM;
    fault.effect = NAND_EFFECT_FAIL;
    fault.plane = 2;
    inject_fault(bed, 1, fault);
    nand_bed_program(bed, 0, &place, 5);
    done = nand_bed_wait_one(bed);
    assert_int_equal(done->status, NAND_CQE_FAILED);
    assert_int_equal(done->failed_planes, 4);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_PROGRAM_FAILURES),
                     1);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_UNITS_PROGRAMMED),
                     3 * 12);
    /* The others have succeeded. */
    nand_bed_read(bed, 1, &place, nand_bed_units(bed, &place), false);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_UNCORRECTABLE);
    for (unsigned int i = 0; i < nand_bed_units(bed, &place); i++) {
        assert_int_equal(nand_bed_result(bed, 1, i).status,
                         i / 4 % 4 == 2 ? NAND_CQE_UNCORRECTABLE : NAND_CQE_OK);
    }
    fault.kind = NAND_OP_ERASE;
    fault.plane = 0;
    inject_fault(bed, 1, fault);
    nand_bed_erase(bed, 0, &place);
    done = nand_bed_wait_one(bed);
    assert_int_equal(done->status, NAND_CQE_FAILED);
    assert_int_equal(done->failed_planes, 1);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_ERASE_FAILURES),
                     1);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_BLOCKS_ERASED),
                     4 + 3);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_steps_of_correction_are_reported_and_take_time(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    struct nand_injection fault = anywhere;
    const struct nand_done *done;
    uint64_t started_ns;

    program_now(bed, &place, 3);
    fault.kind = NAND_OP_READ;
    fault.effect = NAND_EFFECT_BITS;
    fault.bits = (uint16_t)(tlc_part()->bits[1] + 1); /* takes two steps */
    fault.unit = 1;
    inject_fault(bed, 0, fault);
    started_ns = bed->world.now_ns;
    nand_bed_read(bed, 1, &place, 2, false);
    done = nand_bed_wait_one(bed);
    assert_int_equal(done->status, NAND_CQE_OK);
    assert_int_equal(done->steps, 2);
    assert_int_equal(done->bits, fault.bits);
    assert_int_equal(nand_bed_result(bed, 1, 0).steps, 0);
    assert_int_equal(nand_bed_result(bed, 1, 1).steps, 2);
    assert_int_equal(nand_bed_result(bed, 1, 1).bits, fault.bits);
    nand_bed_expect(bed, 1, &place, 2, 3);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_SOFT_READS), 1);
    assert_int_equal(done->time_ns - started_ns,
                     tlc_part()->command_ns +
                         3u * tlc_part()->native.read_ns[0] +
                         transfer_ns(1 + 3) + tlc_part()->decode_ns +
                         2u * tlc_part()->soft_decode_ns);
}

static void test_nand_an_uncorrectable_unit_does_not_hide_the_others(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(0, 0, 1, 0, 0);
    struct nand_injection fault = anywhere;

    place.block = good_block(bed, &place);
    erase_now(bed, &place);
    program_now(bed, &place, 3);
    fault.kind = NAND_OP_READ;
    fault.effect = NAND_EFFECT_UNCORRECTABLE;
    fault.unit = 3;
    inject_fault(bed, 0, fault);
    nand_bed_read(bed, 1, &place, 4, false);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_UNCORRECTABLE);
    nand_bed_expect(bed, 1, &place, 3, 3);
    assert_int_equal(nand_bed_result(bed, 1, 3).status, NAND_CQE_UNCORRECTABLE);
    assert_int_equal(nand_bed_result(bed, 1, 3).bits, 0);
    assert_int_equal(nand_bed_result(bed, 1, 3).steps, tlc_part()->steps);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_UNCORRECTABLE),
                     1);
}

static void test_nand_a_dead_die_answers_nothing(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(1, 0, 1, 0, 0);
    struct nand_injection fault = anywhere;
    const struct nand_command marks = {.opcode = NAND_CMD_MARKS,
                                       .channel = 1,
                                       .planes = 1,
                                       .list = bed->slots[0].data};

    place.block = good_block(bed, &place);
    fault.kind = NAND_OP_ERASE;
    fault.effect = NAND_EFFECT_DIE;
    inject_fault(bed, 1, fault);
    nand_bed_erase(bed, 0, &place);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_DEAD);
    assert_int_equal(read_now(bed, &place), NAND_CQE_DEAD);
    assert_true(nand_submit(&bed->nand, &marks));
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_DEAD);
    place.die = 1;
    place.block = good_block(bed, &place);
    erase_now(bed, &place); /* the other die of the channel answers */
}

/* ---- Reset, power */

/*
 * Program wordline 1 in an erased block that has wordline 0; after `ns` and
 * `steps` steps of the world comes what `interrupt` does.
 */
static struct nand_bed_place begin_program(struct nand_bed *bed, uint64_t ns,
                                           unsigned int steps)
{
    struct nand_bed_place place = erased_block(bed, 0, 0);

    program_now(bed, &place, 10);
    place.wordline = 1;
    nand_bed_program(bed, 0, &place, 11);
    nand_kick(&bed->nand);
    if (ns != 0) {
        native_world_pass(&bed->world, ns);
    }
    for (unsigned int i = 0; i < steps; i++) {
        native_world_step(&bed->world);
    }
    return place;
}

/*
 * Wordline 0 is as it was.  Then the block is erased and programmed.
 * @return what a read of wordline 1 found
 */
static enum nand_cqe_status check_after(struct nand_bed *bed,
                                        struct nand_bed_place place)
{
    unsigned int units = nand_bed_units(bed, &place);
    enum nand_cqe_status found = read_now(bed, &place);

    if (found == NAND_CQE_OK) {
        nand_bed_expect(bed, 1, &place, units, 11);
    }
    place.wordline = 0;
    assert_int_equal(read_now(bed, &place), NAND_CQE_OK);
    nand_bed_expect(bed, 1, &place, units, 10);
    erase_now(bed, &place);
    program_now(bed, &place, 12);
    assert_int_equal(read_now(bed, &place), NAND_CQE_OK);
    nand_bed_expect(bed, 1, &place, units, 12);
    return found;
}

WITH_FIXTURE(NULL, NULL)
static void test_nand_a_reset_at_any_moment_programs_all_or_nothing(
    void **state)
{
    unsigned int found[NAND_CQE_ABORTED + 1] = {0};
    uint64_t total_ns = program_input_ns() + tlc_part()->native.program_ns;

    (void)state;
    for (unsigned int i = 0; i <= 40; i++) {
        struct nand_bed *bed = new_bed("tlc2021", 1, 1, true);
        struct nand_bed_place place =
            begin_program(bed, 1 + total_ns * i / 40, 0);

        nand_bed_reset(bed);
        found[check_after(bed, place)]++;
        free_bed(bed);
    }
    assert_true(found[NAND_CQE_OK] > 0 && found[NAND_CQE_ERASED] > 0);
    assert_int_equal(found[NAND_CQE_OK] + found[NAND_CQE_ERASED], 41);
}

WITH_FIXTURE(NULL, NULL)
static void test_nand_a_power_cut_during_a_program_leaves_half_a_wordline(
    void **state)
{
    unsigned int found[NAND_CQE_ABORTED + 1] = {0};
    uint64_t total_ns = program_input_ns() + tlc_part()->native.program_ns;

    (void)state;
    for (unsigned int i = 0; i <= 41; i++) {
        struct nand_bed *bed = new_bed("tlc2021", 1, 1, true);
        struct nand_bed_place place =
            begin_program(bed, 1 + total_ns * i / 40, 0);

        nand_bed_power_cycle(bed, i);
        found[check_after(bed, place)]++;
        free_bed(bed);
    }
    assert_true(found[NAND_CQE_OK] > 0 && found[NAND_CQE_ERASED] > 0 &&
                found[NAND_CQE_UNCORRECTABLE] > 20);
    assert_int_equal(found[NAND_CQE_OK] + found[NAND_CQE_ERASED] +
                         found[NAND_CQE_UNCORRECTABLE],
                     42);
}

WITH_FIXTURE(NULL, NULL)
static void test_nand_a_power_cut_at_any_request_leaves_a_usable_block(
    void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 12; i++) {
        for (unsigned int is_realtime = 0; is_realtime < 2; is_realtime++) {
            struct nand_bed *bed = new_bed("tlc2021", 1, 1, is_realtime);
            struct nand_bed_place place = begin_program(bed, 0, i);

            nand_bed_power_cycle(bed, i);
            (void)check_after(bed, place);
            free_bed(bed);
        }
    }
}

static void test_nand_a_reset_drops_commands_and_completions(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(0, 0, 1, 0, 0);

    place.block = good_block(bed, &place);
    for (unsigned int i = 0; i < 8; i++) {
        nand_bed_erase(bed, i, &place);
    }
    nand_kick(&bed->nand);
    nand_bed_reset(bed);
    native_world_pass(&bed->world, 100000000);
    assert_int_equal(bed->num_done, 0);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_BLOCKS_ERASED),
                     0);
    erase_now(bed, &place);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_a_stop_ends_all_commands_and_updates_the_storage(
    void **state)
{
    struct nand_bed *bed = *state;
    struct hw_nand *core = bed->machine.nand;
    struct nand_bed_place place = erased_block(bed, 0, 0);

    for (uint16_t i = 0; i < 4; i++) {
        place.wordline = i;
        nand_bed_program(bed, i, &place, i);
    }
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 100000);
    assert_int_equal(bed->num_done + nand_outstanding(&bed->nand),
                     bed->nand.queue.cmd_pi);
    hw_nand_quiesce(core);
    while (!hw_nand_is_quiet(core)) {
        assert_true(nand_ram_step(&bed->flash, 0));
    }
    assert_false(core->sync_failed);
    hw_nand_resume(core);
    nand_bed_wait(bed, nand_outstanding(&bed->nand));
    for (uint16_t i = 0; i < 4; i++) {
        assert_int_equal(nand_bed_done(bed, i)->status, NAND_CQE_OK);
    }
    place.wordline = 3;
    assert_int_equal(read_now(bed, &place), NAND_CQE_OK);
    nand_bed_expect(bed, 1, &place, nand_bed_units(bed, &place), 3);
    assert_true(hw_nand_loaded(core));
}

/* ---- Storage, traces */

static void test_nand_a_failure_of_the_storage_is_reported(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(0, 0, 1, 0, 0);

    place.block = good_block(bed, &place);
    erase_now(bed, &place);
    program_now(bed, &place, 1);
    bed->flash.fail_reads = 5;
    assert_int_equal(read_now(bed, &place), NAND_CQE_STORAGE);
    bed->flash.fail_reads = 0;
    assert_int_equal(read_now(bed, &place), NAND_CQE_OK);
    bed->flash.fail_writes = 28;
    nand_bed_erase(bed, 0, &place);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_STORAGE);
    bed->flash.fail_writes = 0;
    erase_now(bed, &place);
}

static void test_nand_commands_are_traced_with_their_place(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = place_at(1, 1, 1, 0, 0);
    unsigned int found = 0;

    place.block = good_block(bed, &place);
    machine_trace(&bed->machine, BIT(TRACE_GROUP_NAND));
    nand_bed_erase(bed, 5, &place);
    nand_bed_wait(bed, 1);
    native_world_pass(&bed->world, 20000000);
    for (size_t at = 0; at < bed->machine.trace_len; at += TRACE_RECORD_LEN) {
        const uint8_t *record = bed->machine.trace + at;
        const uint8_t *args = record + TRACE_AT_ARGS;
        uint16_t type = get_le16(record + TRACE_AT_TYPE);

        if (type != TRACE_NAND_STARTED && type != TRACE_NAND_ENDED) {
            continue;
        }
        assert_int_equal(type,
                         found == 0 ? TRACE_NAND_STARTED : TRACE_NAND_ENDED);
        found++;
        assert_int_equal(record[TRACE_AT_SOURCE], TRACE_SOURCE_NAND);
        assert_int_equal(get_le32(record + TRACE_AT_REQUEST), 5);
        assert_int_equal(get_le32(args), NAND_CMD_ERASE);
        assert_int_equal(get_le32(args + 4), 1);
        assert_int_equal(get_le32(args + 8), 1);
        assert_int_equal(get_le32(args + 16), place.block);
        /* The cause follows the other arguments. */
        assert_int_equal(
            get_le32(args + (type == TRACE_NAND_STARTED ? 28 : 36)), 6);
    }
    assert_int_equal(found, 2);
}

/* A phase of a register, as an event says it. */
struct phase {
    uint32_t state, opcode, request, cause;
    bool is_cut;
    uint64_t begun_ns, end_ns;
};

/* The phases of die 0 of channel 0. @return how many there are */
static unsigned int find_phases(const struct nand_bed *bed,
                                struct phase *phases, unsigned int most)
{
    unsigned int count = 0;

    for (size_t at = 0; at < bed->machine.trace_len; at += TRACE_RECORD_LEN) {
        const uint8_t *record = bed->machine.trace + at;
        const uint8_t *args = record + TRACE_AT_ARGS;
        uint64_t begun_ns = get_le64(args + 32);

        if (get_le16(record + TRACE_AT_TYPE) != TRACE_NAND_PHASE) {
            continue;
        }
        assert_true(count < most);
        assert_int_equal(get_le64(args + 8), 0); /* channel and die */
        phases[count++] = (struct phase){
            .state = get_le32(args),
            .opcode = get_le32(args + 4),
            .request = get_le32(record + TRACE_AT_REQUEST),
            .cause = get_le32(args + 24),
            .is_cut = get_le32(args + 28) != 0,
            .begun_ns = begun_ns,
            .end_ns = begun_ns + get_le32(args + 40),
        };
    }
    return count;
}

/* A read that suspends an erase: the events show each nanosecond of the die and
 * of its channel, and for whom it is. */
WITH_FIXTURE(setup_realtime, teardown)
static void test_nand_events_show_what_a_die_does_all_the_time(void **state)
{
    static const struct {
        uint8_t state, opcode, slot;
        bool is_cut;
    } expected[] = {
        {HW_DIE_RECEIVES, NAND_CMD_ERASE, 0, false},
        {HW_DIE_BUSY, NAND_CMD_ERASE, 0, true},
        {HW_DIE_RECEIVES, NAND_CMD_READ, 3, false},
        {HW_DIE_BUSY, NAND_CMD_READ, 3, false},
        {HW_DIE_SENDS, NAND_CMD_READ, 3, false},
        {HW_DIE_BUSY, NAND_CMD_ERASE, 0, false},
    };
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    struct nand_bed_place other = place;
    struct phase phases[ARRAY_LEN(expected)];
    const struct hw_nand *core = bed->machine.nand;
    uint64_t busy_ns;

    program_now(bed, &place, 1);
    other.block = (uint16_t)(place.block + 1); /* bad ones were not met */
    machine_trace(&bed->machine, BIT(TRACE_GROUP_NAND));
    busy_ns = hw_nand_busy_time(core, 0);
    nand_bed_erase(bed, 0, &other);
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 1000000);
    nand_bed_read(bed, 3, &place, 1, true);
    nand_bed_wait(bed, 2);
    native_world_pass(&bed->world, 20000000);
    assert_int_equal(find_phases(bed, phases, ARRAY_LEN(phases)),
                     ARRAY_LEN(expected));
    for (unsigned int i = 0; i < ARRAY_LEN(expected); i++) {
        assert_int_equal(phases[i].state, expected[i].state);
        assert_int_equal(phases[i].opcode, expected[i].opcode);
        assert_int_equal(phases[i].request, expected[i].slot);
        assert_int_equal(phases[i].cause, expected[i].slot + 1);
        assert_int_equal(phases[i].is_cut, expected[i].is_cut);
        assert_true(i == 0 || phases[i].begun_ns == phases[i - 1].end_ns);
    }
    assert_int_equal(phases[1].end_ns - phases[1].begun_ns + phases[5].end_ns -
                         phases[5].begun_ns,
                     tlc_part()->native.erase_ns + tlc_part()->resume_ns);
    assert_int_equal(phases[3].end_ns - phases[3].begun_ns,
                     tlc_part()->suspend_ns + tlc_part()->native.read_ns[0]);
    assert_int_equal(phases[4].end_ns - phases[4].begun_ns, transfer_ns(1));
    assert_int_equal(hw_nand_busy_time(core, 0) - busy_ns,
                     tlc_part()->native.erase_ns + tlc_part()->resume_ns +
                         tlc_part()->suspend_ns +
                         tlc_part()->native.read_ns[0]);
    assert_int_equal(hw_nand_busy_time(core, 1), 0);
}
