/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bits that flip on the way of the data from a host to NAND flash and back.
 * At each stage, one wrong bit is corrected.  With more of them, a command ends
 * with an error; no host gets wrong data as good data.
 * Reference: docs/decisions/0017-data-path.md
 */
#include "dram_flip.h"
#include "media_spy.h"

#include "firmware/drivers/ecc.h"
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/map.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/nand_faults.h"
#include "tests/test_fixture.h"

enum {
    UNIT_BLOCKS = 8,
    LBA = 80,    /* the first block of a unit */
    REPEATS = 3, /* of an operation whose transfer had a parity error */
};

static const struct bed nand_bed = {.mtu_bytes = 1500, .has_nand = true};
enum { FOUR_DIES_BLOCKS = 24 };
static const struct bed four_dies_bed = {
    .mtu_bytes = 1500,
    .has_nand = true,
    .nand_dies = 2,
    .nand_blocks = FOUR_DIES_BLOCKS,
};

static int setup_like(const struct bed *like)
{
    memset(&flip, 0, sizeof(flip));
    bed_init_like(&bed, like);
    bed_connect(&bed, 0, 1, 64);
    /* Wait until the page that the first start programs is on flash.  Writes
     * would otherwise be programmed in the same row as this page. */
    return bed_flush(&bed, 1);
}

static int setup_nand(void **state)
{
    (void)state;
    return setup_like(&nand_bed);
}

static int setup_four_dies(void **state)
{
    (void)state;
    return setup_like(&four_dies_bed);
}

/* ---- Commands. */

static uint16_t write_blocks(uint64_t lba, uint32_t blocks, uint32_t version)
{
    return bed_write(&bed, 1, lba, blocks, HOST_DATA_KEYED, false, version) &
           NVME_SC_MASK;
}

static void flush_all(void)
{
    assert_int_equal(bed_flush(&bed, 1), 0);
}

static void expect_lost(uint64_t lba, uint32_t blocks)
{
    assert_int_equal(bed_read(&bed, 1, lba, blocks, HOST_DATA_KEYED) &
                         NVME_SC_MASK,
                     NVME_SC_READ_ERROR);
}

static void expect_good(uint64_t lba, uint32_t blocks, uint32_t version)
{
    bed_expect(&bed, 1, lba, blocks, HOST_DATA_KEYED, version);
}

/* Of the unit at LBA, block `lost` cannot be read; the others are good. */
static void expect_one_lost(uint32_t lost, uint32_t version)
{
    expect_lost(LBA + lost, 1);
    expect_lost(LBA, UNIT_BLOCKS);
    expect_good(LBA, lost, version);
    expect_good(LBA + lost + 1, UNIT_BLOCKS - lost - 1, version);
}

static void reset_drive(void)
{
    bed_reset(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

static void cut_power(void)
{
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

/* ---- Stages. */

/* A payload that a host has sent, before it is copied to the write buffer. */
static bool is_payload(uint64_t *addr, uint64_t len)
{
    const struct ftl_move *move = bed.drive->drive.nand.seam.moves.list;

    if (!is_list(*addr, len) || move->kind != FTL_MOVE_COPY ||
        !is_in_slots(move->target)) {
        return false;
    }
    *addr = move->source;
    return true;
}

/* The unit of a row that a move adds to a sum; 0 if the move does no such
 * thing. */
static uint64_t unit_of_row(const struct ftl_moves *moves,
                            const struct ftl_move *move, uint32_t unit)
{
    const uint8_t *list =
        (const uint8_t *)(uintptr_t)(move->source - moves->addr_offset);

    return move->kind == FTL_MOVE_ADD_ROW
               ? get_le64(list + (size_t)unit * NAND_ENTRY_LEN +
                          NAND_ENTRY_DATA)
               : 0;
}

/* A unit in the write buffer, before parity is made of it. */
static bool is_xor(uint64_t *addr, uint64_t len)
{
    const struct ftl_moves *moves = &bed.drive->drive.nand.seam.moves;

    if (!is_list(*addr, len)) {
        return false;
    }
    for (uint32_t i = 0; i < moves->count; i++) {
        uint64_t first = unit_of_row(moves, &moves->list[i], 0);

        if (is_in_slots(first)) {
            *addr = first;
            return true;
        }
        if (moves->list[i].length == FTL_UNIT_DATA &&
            is_in_slots(moves->list[i].source) &&
            !is_in_slots(moves->list[i].target)) {
            *addr = moves->list[i].source;
            return true;
        }
    }
    return false;
}

/* The controller reads or writes a whole slot to program or to fill it; moves
 * do not count. */
static bool is_slot_of_state(uint64_t addr, uint64_t len, uint8_t pool,
                             uint8_t state)
{
    const struct ftl *ftl = drive_ftl();

    if (len != FTL_UNIT_DATA || !is_in_slots(addr) ||
        bed.drive->drive.nand.seam.moves.count != 0) {
        return false;
    }
    for (uint16_t i = 0; i < ftl->buffer.num_slots; i++) {
        if (addr_of(ftl_slot_data(&ftl->buffer, i)) == addr) {
            return ftl->buffer.slots[i].pool == pool &&
                   ftl->buffer.slots[i].state == state;
        }
    }
    return false;
}

static bool is_program(uint64_t *addr, uint64_t len)
{
    return is_slot_of_state(*addr, len, FTL_POOL_HOST, FTL_SLOT_PROGRAMMING);
}

static bool is_moved(uint64_t *addr, uint64_t len)
{
    return is_slot_of_state(*addr, len, FTL_POOL_MOVE, FTL_SLOT_PROGRAMMING);
}

/* Flip bits of the slot that holds the unit at LBA. */
static void flip_slot(uint32_t offset, uint64_t bits)
{
    uint32_t entry = drive_ftl()->map[LBA / UNIT_BLOCKS];

    assert_true(ftl_is_in_slot(entry));
    assert_true(hw_ecc_inject(
        drive_ecc(),
        addr_of(ftl_slot_data(&drive_ftl()->buffer, (uint16_t)entry)) + offset,
        bits));
}

/* ---- The buffer in which the RNIC places payloads. */

static void test_one_wrong_bit_of_a_payload_is_corrected(void **state)
{
    (void)state;
    flip_at(is_payload, 1024, ONE);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    assert_int_equal(flip.flips, 1);
    expect_good(LBA, UNIT_BLOCKS, 1);
    flush_all();
    expect_good(LBA, UNIT_BLOCKS, 1);
}

static void test_a_write_whose_payload_is_lost_fails(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_at(is_payload, 1024, TWO);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 2),
                     NVME_SC_DATA_TRANSFER_ERROR);
    assert_int_equal(flip.flips, 1);
    expect_one_lost(2, 2);
    flush_all();
    expect_one_lost(2, 2);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 3), 0);
    expect_good(LBA, UNIT_BLOCKS, 3);
    flush_all();
    expect_good(LBA, UNIT_BLOCKS, 3);
}

/* Data in a capsule is not in a buffer of payloads. */
static void test_a_write_whose_capsule_is_lost_fails(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_at(is_payload, 1024, TWO);
    assert_int_equal(
        bed_write(&bed, 1, LBA, UNIT_BLOCKS, HOST_DATA_IN_CAPSULE, false, 2) &
            NVME_SC_MASK,
        NVME_SC_DATA_TRANSFER_ERROR);
    assert_int_equal(flip.flips, 1);
    expect_one_lost(2, 2);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 3), 0);
    expect_good(LBA, UNIT_BLOCKS, 3);
}

/* ---- The write buffer. */

static void test_one_wrong_bit_in_the_write_buffer_is_corrected(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_slot(512, ONE);
    expect_good(LBA, UNIT_BLOCKS, 1);
    flush_all();
    expect_good(LBA, UNIT_BLOCKS, 1);
}

static void test_a_lost_block_in_the_write_buffer_cannot_be_read(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_slot(3 * BED_BLOCK + 8, TWO);
    expect_one_lost(3, 1);
    flush_all();
    expect_one_lost(3, 1);
    cut_power();
    expect_one_lost(3, 1);
    assert_int_equal(write_blocks(LBA + 3, 1, 1), 0);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

static void test_a_write_of_a_part_keeps_the_lost_block_lost(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_slot(3 * BED_BLOCK, TWO);
    assert_int_equal(write_blocks(LBA + 5, 1, 1), 0);
    expect_one_lost(3, 1);
    /* The block that is written is good, although its word was lost before. */
    flip_slot(6 * BED_BLOCK, TWO);
    assert_int_equal(write_blocks(LBA + 6, 1, 1), 0);
    expect_one_lost(3, 1);
    flush_all();
    expect_one_lost(3, 1);
}

static void test_a_word_that_is_lost_while_a_row_is_made_is_never_good(
    void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_at(is_program, BED_BLOCK, TWO);
    flush_all();
    assert_int_equal(flip.flips, 1);
    expect_one_lost(1, 1);
    cut_power();
    expect_one_lost(1, 1);
}

/* A word of a buffer that nobody uses may be wrong when it is used again. */
static void test_a_write_replaces_a_word_that_was_lost_before(void **state)
{
    uint16_t slot = drive_ftl()->buffer.free_slots[FTL_POOL_HOST].head;

    (void)state;
    assert_true(hw_ecc_inject(
        drive_ecc(), addr_of(ftl_slot_data(&drive_ftl()->buffer, slot)), TWO));
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    assert_int_equal(drive_ftl()->map[LBA / UNIT_BLOCKS], FTL_IN_SLOT | slot);
    assert_false(hw_ecc_has_errors(drive_ecc()));
    expect_good(LBA, UNIT_BLOCKS, 1);
    flush_all();
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* Let the patrol check the part of DRAM that has the unit at LBA. */
static void patrol_slot(void)
{
    struct memory_check *memory = &bed.drive->drive.memory;
    uint32_t entry = drive_ftl()->map[LBA / UNIT_BLOCKS];

    memory->patrol_addr =
        (addr_of(ftl_slot_data(&drive_ftl()->buffer, (uint16_t)entry)) -
         memory->config.dram_base) &
        ~UINT64_C(4095);
    memory->patrol_us = 0;
    (void)memory_check_step(memory, bed.drive->drive.now_us);
}

/* Whoever reads the word after the patrol has set it to zero does not notice
 * that it was lost.  So the block gets its mark before. */
static void test_the_patrol_marks_a_lost_block_of_the_write_buffer(void **state)
{
    const struct hw_log *log = &bed.drive->drive.hw_log;

    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_slot(3 * BED_BLOCK + 8, TWO);
    flip_slot(3 * BED_BLOCK, TWO);
    flip_slot(4 * BED_BLOCK, ONE);
    patrol_slot();
    assert_false(hw_ecc_has_errors(drive_ecc()));
    assert_int_equal(bed.drive->drive.memory.lost, 2);
    assert_int_equal(log->records.error[log->records.count - 1].kind,
                     HW_ERROR_MEMORY_LOST);
    assert_true(log->records.error[log->records.count - 1].is_fatal);
    expect_one_lost(3, 1);
    reset_drive();
    expect_one_lost(3, 1);
    flush_all();
    expect_one_lost(3, 1);
    assert_int_equal(write_blocks(LBA + 3, 1, 1), 0);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* The patrol leaves a word alone if the buffer has no contents that wait. */
static void test_the_patrol_marks_nothing_in_a_free_buffer(void **state)
{
    uint16_t slot = drive_ftl()->buffer.free_slots[FTL_POOL_HOST].head;
    struct memory_check *memory = &bed.drive->drive.memory;
    uint64_t addr = addr_of(ftl_slot_data(&drive_ftl()->buffer, slot));

    (void)state;
    assert_true(hw_ecc_inject(drive_ecc(), addr, TWO));
    memory->patrol_addr = (addr - memory->config.dram_base) & ~UINT64_C(4095);
    memory->patrol_us = 0;
    (void)memory_check_step(memory, bed.drive->drive.now_us);
    assert_int_equal(drive_ecc()->count, 1);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    assert_false(hw_ecc_has_errors(drive_ecc()));
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* ---- The same with parity: the dies that are left hold the right data. */

static void lose_die(uint8_t channel, uint8_t die)
{
    struct nand_injection injection =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_DIE);

    injection.channel = channel;
    injection.die = die;
    assert_true(nand_array_inject(bed.drive->machine.nand->array, &injection));
}

/* Read units around the lost block.  Each is right, or cannot be read. */
static void expect_right_or_lost(uint32_t units, uint32_t *lost)
{
    *lost = 0;
    for (uint32_t i = 0; i < units; i++) {
        uint16_t status = bed_read(&bed, 1, (uint64_t)i * UNIT_BLOCKS,
                                   UNIT_BLOCKS, HOST_DATA_KEYED) &
                          NVME_SC_MASK;

        if (status == 0) {
            expect_good((uint64_t)i * UNIT_BLOCKS, UNIT_BLOCKS, 1);
        } else {
            assert_int_equal(status, NVME_SC_READ_ERROR);
            ++*lost;
        }
    }
}

enum { STRIPES_UNITS = 256, MOVED_UNITS = 1024 };

static bool count_program(void *ctx, const struct nand_event *event,
                          struct nand_fault *fault)
{
    uint64_t *programs = ctx;

    (void)fault;
    *programs +=
        event->kind == NAND_OP_PROGRAM && event->stage == NAND_STAGE_BEGINS;
    return false;
}

static void count_programs(uint64_t *programs)
{
    static const uint8_t active = 1;
    const struct nand_fault_hook hook = {
        .active = &active,
        .judge = count_program,
        .ctx = programs,
    };

    *programs = 0;
    nand_array_set_hook(bed.drive->machine.nand->array, &hook);
}

static void lose_word_with_parity(bool (*is_stage)(uint64_t *, uint64_t),
                                  uint32_t skip)
{
    uint32_t lost;

    for (uint32_t i = 0; i < STRIPES_UNITS; i += 16) {
        if (i == STRIPES_UNITS / 4) {
            flip_at(is_stage, 16, TWO);
            flip.skip = skip;
        }
        assert_int_equal(
            write_blocks((uint64_t)i * UNIT_BLOCKS, 16 * UNIT_BLOCKS, 1), 0);
    }
    flush_all();
    assert_int_equal(flip.flips, 1);
    expect_right_or_lost(STRIPES_UNITS, &lost);
    assert_int_equal(lost, 1);
    lose_die(0, 1);
    /* The stripe of the row that failed may have no parity. */
    expect_right_or_lost(STRIPES_UNITS, &lost);
}

/* If it was programmed, it would look good after a power cut that comes before
 * its units are in another row. */
WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_row_with_a_word_lost_before_parity_is_not_programmed(
    void **state)
{
    const struct ftl_counters *counters = ftl_counters(drive_ftl());
    uint64_t rows = counters->rows;
    static uint64_t programs; /* The hook outlives this function. */

    (void)state;
    count_programs(&programs);
    lose_word_with_parity(is_xor, 4);
    assert_int_equal(counters->rows - rows, programs + 1);
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_word_that_is_lost_before_parity_is_made(void **state)
{
    (void)state;
    lose_word_with_parity(is_xor, 0);
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_word_of_a_later_row_that_is_lost_before_parity_is_made(
    void **state)
{
    (void)state;
    lose_word_with_parity(is_xor, 4);
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_word_that_is_lost_after_parity_was_made(void **state)
{
    (void)state;
    lose_word_with_parity(is_program, 0);
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_word_of_a_later_row_that_is_lost_after_parity_was_made(
    void **state)
{
    (void)state;
    lose_word_with_parity(is_program, 40);
}

/* ---- Between the DRAM and the cells of the flash. */

static void inject_fault(enum nand_op_kind kind, enum nand_effect effect,
                         uint16_t bits, uint32_t times)
{
    struct nand_injection injection = fault_anywhere(kind, effect);

    injection.bits = bits;
    injection.trigger.times = times;
    nand_array_clear_injections(bed.drive->machine.nand->array);
    assert_true(nand_array_inject(bed.drive->machine.nand->array, &injection));
}

static void test_a_program_with_a_parity_error_is_repeated(void **state)
{
    const struct ftl_counters *counters = ftl_counters(drive_ftl());

    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0, 1);
    flush_all();
    assert_int_equal(counters->program_errors, 0);
    expect_good(LBA, UNIT_BLOCKS, 1);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 2), 0);
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0, REPEATS + 1);
    flush_all();
    assert_int_equal(counters->program_errors, 1);
    expect_good(LBA, UNIT_BLOCKS, 2);
    cut_power();
    expect_good(LBA, UNIT_BLOCKS, 2);
}

/* If all programs fail, a flush ends with an error. */
static void test_a_flush_fails_while_all_programs_have_parity_errors(
    void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0, 0);
    assert_int_equal(bed_flush(&bed, 1) & NVME_SC_MASK, NVME_SC_WRITE_FAULT);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

static void write_sixteen_units(void)
{
    for (uint32_t unit = 0; unit < 16; unit++) {
        assert_int_equal(
            write_blocks(LBA + (uint64_t)unit * UNIT_BLOCKS, UNIT_BLOCKS, 1),
            0);
    }
}

static void expect_sixteen_units(void)
{
    for (uint32_t unit = 0; unit < 16; unit++) {
        expect_good(LBA + (uint64_t)unit * UNIT_BLOCKS, UNIT_BLOCKS, 1);
    }
}

/* When the cause of the parity errors is gone, the drive writes again.  The
 * attempts have not worn out the flash. */
static void expect_writes_after_parity_errors(void)
{
    struct ftl_erase_counts erased;

    for (uint32_t i = 0; i < 3; i++) {
        write_sixteen_units();
        inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0, 0);
        assert_int_equal(bed_flush(&bed, 1) & NVME_SC_MASK,
                         NVME_SC_WRITE_FAULT);
        nand_array_clear_injections(bed.drive->machine.nand->array);
        expect_sixteen_units();
        assert_int_equal(write_blocks(0, UNIT_BLOCKS, 2 + i), 0);
        flush_all();
        expect_good(0, UNIT_BLOCKS, 2 + i);
    }
    ftl_erase_counts(drive_ftl(), &erased);
    assert_true(erased.most <= 4);
    assert_false(ftl_is_read_only(drive_ftl()));
    cut_power();
    expect_good(0, UNIT_BLOCKS, 4);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

static void test_the_drive_writes_again_after_parity_errors(void **state)
{
    (void)state;
    expect_writes_after_parity_errors();
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_drive_with_parity_writes_again_after_parity_errors(
    void **state)
{
    (void)state;
    expect_writes_after_parity_errors();
}

/* All attempts are at the same place, which is still erased, so they do not use
 * up superblocks. */
static void expect_no_erasure_for_failed_attempts(void)
{
    const struct ftl_counters *counters = ftl_counters(drive_ftl());
    uint32_t attempts = 2 * drive_ftl()->layout.superblocks;
    uint64_t errors = counters->program_errors;
    uint64_t erasures = counters->erasures;

    write_sixteen_units();
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0, 0);
    for (uint32_t i = 0; i < attempts; i++) {
        assert_int_equal(bed_flush(&bed, 1) & NVME_SC_MASK,
                         NVME_SC_WRITE_FAULT);
    }
    assert_true(counters->program_errors - errors >= attempts);
    assert_int_equal(counters->erasures, erasures);
    nand_array_clear_injections(bed.drive->machine.nand->array);
    flush_all();
    expect_sixteen_units();
}

static void test_attempts_with_parity_errors_do_not_wear_out_the_flash(
    void **state)
{
    (void)state;
    expect_no_erasure_for_failed_attempts();
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_attempts_of_a_drive_with_parity_do_not_wear_out_the_flash(
    void **state)
{
    (void)state;
    expect_no_erasure_for_failed_attempts();
}

/* Without a flush, the drive tries again after a while. */
static void test_the_drive_tries_again_by_itself(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0, 0);
    assert_int_equal(bed_flush(&bed, 1) & NVME_SC_MASK, NVME_SC_WRITE_FAULT);
    nand_array_clear_injections(bed.drive->machine.nand->array);
    assert_true(ftl_is_in_slot(drive_ftl()->map[LBA / UNIT_BLOCKS]));
    native_world_pass(&bed.world, UINT64_C(1000000000));
    assert_true(ftl_is_place(drive_ftl()->map[LBA / UNIT_BLOCKS]));
    expect_good(LBA, UNIT_BLOCKS, 1);
}

static void test_parity_errors_are_counted_and_logged(void **state)
{
    const struct hw_error *error;
    struct nvmf_flash_use use;

    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0, REPEATS);
    flush_all();
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0, REPEATS + 1);
    expect_lost(LBA, UNIT_BLOCKS);
    nand_health_read(&bed.drive->drive.nand_health, &use);
    assert_int_equal(use.transfer_errors, 2 * REPEATS + 1);
    assert_int_equal(use.transfers_corrected, REPEATS);
    /* Both operations were for the same place.  The second entry is about the
     * read as a whole, which has failed. */
    assert_int_equal(bed.drive->drive.hw_log.records.count, 2);
    error = &bed.drive->drive.hw_log.records.error[1];
    assert_int_equal(error->kind, HW_ERROR_NAND_TRANSFER);
    assert_true(error->is_fatal);
    assert_int_equal(error->address,
                     bed.drive->drive.hw_log.records.error[0].address);
    error = &bed.drive->drive.hw_log.records.error[0];
    assert_int_equal(error->kind, HW_ERROR_NAND_TRANSFER);
    assert_int_equal(error->info, 2 * REPEATS + 1);
    assert_int_equal(error->repeats, 2 * REPEATS);
    assert_non_null(
        strstr(machine_console(&bed.drive->machine), "had a parity error"));
}

static void (*log_transfer)(void *ctx, const struct ftl_flash_op *op);

/* A word of the data is lost before the operation is repeated. */
static void lose_word_and_log(void *ctx, const struct ftl_flash_op *op)
{
    assert_true(hw_ecc_inject(drive_ecc(),
                              addr_of(op->units[0].data) + BED_BLOCK, TWO));
    log_transfer(ctx, op);
}

static void test_a_parity_error_of_an_operation_that_fails_is_not_corrected(
    void **state)
{
    struct nand_seam *seam = &bed.drive->drive.nand.seam;

    (void)state;
    log_transfer = seam->transfer_failed;
    seam->transfer_failed = lose_word_and_log;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0, 1);
    flush_all();
    assert_int_equal(ftl_counters(drive_ftl())->program_errors, 1);
    assert_int_equal(seam->transfer_errors, 1);
    assert_int_equal(seam->transfers_corrected, 0);
    expect_one_lost(1, 1);
}

static void write_stripes(void)
{
    for (uint32_t i = 0; i < STRIPES_UNITS; i += 16) {
        assert_int_equal(
            write_blocks((uint64_t)i * UNIT_BLOCKS, 16 * UNIT_BLOCKS, 1), 0);
    }
    flush_all();
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_unit_whose_transfer_fails_is_rebuilt_from_parity(
    void **state)
{
    (void)state;
    write_stripes();
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0, REPEATS + 1);
    expect_good(LBA, UNIT_BLOCKS, 1);
    assert_int_equal(ftl_counters(drive_ftl())->rebuilt_units, 1);
    assert_int_equal(ftl_dead_dies(drive_ftl()), 0);
}

static void test_a_read_with_a_parity_error_is_repeated(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flush_all();
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0, REPEATS);
    expect_good(LBA, UNIT_BLOCKS, 1);
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0, REPEATS + 1);
    expect_lost(LBA, UNIT_BLOCKS);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

static void test_wrong_bits_of_a_page_are_corrected_or_the_read_fails(
    void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flush_all();
    inject_fault(NAND_OP_READ, NAND_EFFECT_BITS, 1, 1);
    expect_good(LBA, UNIT_BLOCKS, 1);
    inject_fault(NAND_OP_READ, NAND_EFFECT_BITS, UINT16_MAX, 1);
    expect_lost(LBA, UNIT_BLOCKS);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* ---- Units that are rebuilt from parity: the controller makes their sums. */

/* Whether the lost word is in the unit that is added, not in the sum. */
static bool is_source_lost;

static bool is_in_sum(uint64_t addr)
{
    for (unsigned int i = 0; i < FTL_RESCUES; i++) {
        if (addr - addr_of(drive_ftl()->parity.rescues[i].data) <
            (uint64_t)drive_ftl()->layout.row_units * FTL_UNIT_DATA) {
            return true;
        }
    }
    return false;
}

/* The controller adds a unit of another die to a sum. */
static bool is_added(uint64_t *addr, uint64_t len)
{
    const struct ftl_move *move = bed.drive->drive.nand.seam.moves.list;

    if (!is_list(*addr, len) || move->kind != FTL_MOVE_XOR ||
        !is_in_sum(move->target)) {
        return false;
    }
    *addr = is_source_lost ? move->source : move->target;
    return true;
}

/* The controller copies a rebuilt unit to where it is needed. */
static bool is_copied(uint64_t *addr, uint64_t len)
{
    const struct ftl_move *move = bed.drive->drive.nand.seam.moves.list;

    if (!is_list(*addr, len) || move->kind != FTL_MOVE_COPY ||
        !is_in_sum(move->source)) {
        return false;
    }
    *addr = move->source;
    return true;
}

/* The controller copies the sum of a stripe that is not complete. */
static bool is_begun(uint64_t *addr, uint64_t len)
{
    const struct ftl_move *move = bed.drive->drive.nand.seam.moves.list;

    if (!is_list(*addr, len) || move->kind != FTL_MOVE_COPY ||
        !is_in_sum(move->target)) {
        return false;
    }
    *addr = move->source;
    return true;
}

static uint64_t rebuilt_units(void)
{
    return ftl_counters(drive_ftl())->rebuilt_units;
}

/* Read a unit whose transfers all fail. */
static uint16_t read_rebuilt(uint64_t lba)
{
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0, REPEATS + 1);
    return bed_read(&bed, 1, lba, UNIT_BLOCKS, HOST_DATA_KEYED) & NVME_SC_MASK;
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_one_wrong_bit_of_a_sum_is_corrected(void **state)
{
    (void)state;
    write_stripes();
    flip_at(is_added, BED_BLOCK, ONE);
    assert_int_equal(read_rebuilt(LBA), 0);
    assert_int_equal(flip.flips, 1);
    assert_int_equal(rebuilt_units(), 1);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* Expect that LBA is rebuilt although a word is lost. */
static void rebuild_with_lost_word(bool (*is_stage)(uint64_t *, uint64_t))
{
    flip_at(is_stage, BED_BLOCK, TWO);
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0, REPEATS + 1);
    expect_good(LBA, UNIT_BLOCKS, 1);
    assert_int_equal(flip.flips, 1);
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_unit_is_rebuilt_again_if_a_word_of_it_is_lost(void **state)
{
    (void)state;
    write_stripes();
    for (uint32_t i = 0; i < 2; i++) {
        is_source_lost = i == 1;
        rebuild_with_lost_word(is_added);
    }
    rebuild_with_lost_word(is_copied);
    assert_int_equal(rebuilt_units(), 3);
    assert_int_equal(ftl_dead_dies(drive_ftl()), 0);
    flush_all();
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* Flip bits of the sum in each attempt. */
static void before_each_dma(void *ctx, uint64_t addr, uint64_t len)
{
    const struct ftl_parity *parity = &drive_ftl()->parity;

    if (flip.bits == 0 && !flip.is_judging &&
        parity->rescues[0].repeats + parity->rescues[1].repeats ==
            (int)flip.flips) {
        flip.bits = TWO;
        flip.skip = 0;
    }
    before_dma(ctx, addr, len);
}

WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_read_fails_if_words_of_all_sums_are_lost(void **state)
{
    (void)state;
    write_stripes();
    is_source_lost = false;
    flip_at(is_added, BED_BLOCK, TWO);
    bed.drive->machine.before_dma = before_each_dma;
    assert_int_equal(read_rebuilt(LBA), NVME_SC_READ_ERROR);
    assert_int_equal(flip.flips, REPEATS + 1);
    bed.drive->machine.before_dma = NULL;
    assert_int_equal(rebuilt_units(), 0);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* A unit that garbage collection or a write of a part rebuilds has no lost
 * block: the flash has the right data. */
WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_write_of_a_part_rebuilds_the_rest_again(void **state)
{
    (void)state;
    write_stripes();
    flip_at(is_copied, BED_BLOCK, TWO);
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0, REPEATS + 1);
    assert_int_equal(write_blocks(LBA, 1, 2), 0);
    expect_good(LBA, 1, 2);
    expect_good(LBA + 1, UNIT_BLOCKS - 1, 1);
    assert_int_equal(flip.flips, 1);
    assert_int_equal(rebuilt_units(), 1);
}

/* ---- Compare: a hart reads the data of the host and that of the medium. */

enum { COMPARED_UNITS = 2 };

static struct {
    bool is_of_host;
    uint64_t bits;
    uint32_t version;
    uint32_t flips;
} compared;

/* Where the host's data is: no other buffer has this version. */
static uint64_t find_host_data(void)
{
    const struct memory_check_config *memory = &bed.drive->drive.memory.config;
    const uint8_t *buffers =
        (const uint8_t *)(uintptr_t)(memory->buffers - addr_of(NULL));
    static uint8_t expected[COMPARED_UNITS * UNIT_BLOCKS * BED_BLOCK];

    bed_fill(expected, LBA, COMPARED_UNITS * UNIT_BLOCKS, compared.version);
    for (size_t at = 0; at + sizeof(expected) <= memory->buffers_bytes;
         at += BED_BLOCK) {
        if (memcmp(buffers + at, expected, sizeof(expected)) == 0) {
            return memory->buffers + at;
        }
    }
    fail();
    return 0;
}

/* Flip bits between the end of the medium's read and the comparison. */
static void flip_compared(const struct media_io *io)
{
    uint64_t addr =
        compared.is_of_host ? find_host_data() : addr_of(io->pieces[0].ptr);

    assert_int_equal(io->op, MEDIA_READ);
    assert_true(hw_ecc_inject(drive_ecc(), addr + BED_BLOCK, compared.bits));
    compared.flips++;
}

/* Write a new version of units, and compare it. */
static uint16_t compare_blocks(bool is_flushed, bool is_of_host, uint64_t bits)
{
    struct host_io io = {
        .qid = 1,
        .opcode = NVM_COMPARE,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = LBA,
        .blocks = COMPARED_UNITS * UNIT_BLOCKS,
        .len_bytes = COMPARED_UNITS * UNIT_BLOCKS * BED_BLOCK,
    };

    compared.is_of_host = is_of_host;
    compared.bits = bits;
    compared.version++;
    for (uint32_t i = 0; i < COMPARED_UNITS; i++) {
        assert_int_equal(bed_write(&bed, 1, LBA + (uint64_t)i * UNIT_BLOCKS,
                                   UNIT_BLOCKS, HOST_DATA_IN_CAPSULE, false,
                                   compared.version),
                         0);
    }
    bed_fill(bed.host->data, LBA, COMPARED_UNITS * UNIT_BLOCKS,
             compared.version);
    if (is_flushed) {
        flush_all();
    }
    if (bits != 0) {
        media_spy_start(bed.drive->drive.target, flip_compared);
    }
    return host_io(&bed.host->host, &io) & NVME_SC_MASK;
}

static void test_a_compare_of_a_lost_word_fails(void **state)
{
    (void)state;
    memset(&compared, 0, sizeof(compared));
    for (uint32_t i = 0; i < 4; i++) {
        bool is_flushed = i / 2 != 0;
        bool is_of_host = i % 2 != 0;

        assert_int_equal(compare_blocks(is_flushed, is_of_host, ONE), 0);
        assert_int_equal(compare_blocks(is_flushed, is_of_host, TWO),
                         NVME_SC_DATA_TRANSFER_ERROR);
        assert_false(hw_ecc_has_errors(drive_ecc()));
        assert_int_equal(compare_blocks(is_flushed, is_of_host, 0), 0);
    }
    assert_int_equal(compared.flips, 8);
    expect_good(LBA, UNIT_BLOCKS, compared.version);
    assert_int_equal(bed.drive->drive.memory.lost, 4);
}

/* ---- The buffer from which the RNIC sends what was read. */

/* The RNIC takes the data of one packet. */
static bool is_sent(uint64_t *addr, uint64_t len)
{
    const struct memory_check_config *memory = &bed.drive->drive.memory.config;

    return len < FTL_UNIT_DATA && len >= BED_BLOCK &&
           *addr - memory->buffers < memory->buffers_bytes;
}

static void test_one_wrong_bit_of_a_payload_that_is_sent_is_corrected(
    void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flush_all();
    flip_at(is_sent, 8, ONE);
    expect_good(LBA, UNIT_BLOCKS, 1);
    assert_int_equal(flip.flips, 1);
}

static void test_a_lost_payload_is_not_sent(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flush_all();
    flip_at(is_sent, 8, TWO);
    assert_int_not_equal(bed_read(&bed, 1, LBA, UNIT_BLOCKS, HOST_DATA_KEYED),
                         0);
    assert_int_equal(flip.flips, 1);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* ---- Between the DRAM and the RNIC. */

static struct {
    bool is_to_dram;
    uint32_t skip; /* transfers before the one that fails */
    uint32_t failed;
    uint32_t qpn; /* of the transfer that has failed */
} transfer;

static uint8_t judge_message(void *ctx, uint32_t qpn, uint8_t opcode)
{
    (void)ctx;
    (void)qpn;
    (void)opcode;
    return 0;
}

static bool judge_transfer(void *ctx, uint32_t qpn, bool is_to_dram)
{
    (void)ctx;
    if (transfer.failed != 0 || is_to_dram != transfer.is_to_dram ||
        transfer.skip-- != 0) {
        return false;
    }
    transfer.failed++;
    transfer.qpn = qpn;
    return true;
}

/* One transfer of the RNIC has a parity error from now on. */
static void fail_transfer(bool is_to_dram, uint32_t skip)
{
    static const struct roce_fault_hook hook = {
        .judge = judge_message,
        .judge_transfer = judge_transfer,
    };

    transfer.is_to_dram = is_to_dram;
    transfer.skip = skip;
    transfer.failed = 0;
    bed.drive->machine.rnic.roce.faults = &hook;
}

static void connect_again(void)
{
    assert_int_equal(transfer.failed, 1);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

/* Each unit is written as a whole: it has the old contents or the new ones. */
static void test_a_write_whose_transfer_fails_ends_without_effect(void **state)
{
    static const enum host_data kinds[] = {HOST_DATA_KEYED,
                                           HOST_DATA_IN_CAPSULE};

    (void)state;
    bed_provokes(&bed, BED_PARITY);
    for (uint32_t i = 0; i < 2 * ARRAY_LEN(kinds); i++) {
        assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
        /* The capsule is transferred first. */
        fail_transfer(true, i % 2 + (i / 2 == 0 ? 1 : 0));
        assert_int_not_equal(
            bed_write(&bed, 1, LBA, UNIT_BLOCKS, kinds[i / 2], false, 2), 0);
        connect_again();
        expect_good(LBA, UNIT_BLOCKS, 1);
        flush_all();
        expect_good(LBA, UNIT_BLOCKS, 1);
    }
}

static void test_data_whose_transfer_fails_is_not_sent(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_PARITY);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    for (uint32_t i = 0; i < 3; i++) {
        fail_transfer(false, i);
        assert_int_not_equal(
            bed_read(&bed, 1, LBA, UNIT_BLOCKS, HOST_DATA_KEYED), 0);
        connect_again();
        expect_good(LBA, UNIT_BLOCKS, 1);
    }
}

static void test_parity_errors_of_the_rnic_are_counted_and_logged(void **state)
{
    const struct hw_log *log = &bed.drive->drive.hw_log;
    struct nvmf_flash_use use;

    (void)state;
    bed_provokes(&bed, BED_PARITY);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    for (uint32_t i = 0; i < 2; i++) {
        bool is_to_dram = i == 0;
        uint32_t entry;

        fail_transfer(is_to_dram, 0);
        assert_int_not_equal(
            bed_read(&bed, 1, LBA, UNIT_BLOCKS, HOST_DATA_KEYED), 0);
        entry = log->records.count - 1u;
        assert_int_equal(entry, i);
        assert_int_equal(log->records.error[entry].kind,
                         HW_ERROR_RNIC_TRANSFER);
        assert_true(log->records.error[entry].is_fatal);
        assert_int_equal(log->records.error[entry].address,
                         (uint64_t)!is_to_dram << 32 | transfer.qpn);
        assert_int_equal(log->records.error[entry].info, i + 1);
        /* The drive does not wait before it writes the error to its SPI flash.
         */
        assert_int_equal(log->saved, log->number);
        connect_again();
    }
    nand_health_read(&bed.drive->drive.nand_health, &use);
    assert_int_equal(use.transfer_errors, 2);
    assert_int_equal(use.transfers_corrected, 0);
    assert_non_null(strstr(machine_console(&bed.drive->machine),
                           "had a parity error on its way to DRAM"));
}

/* ---- Garbage collection. */

static void test_a_unit_that_is_moved_is_read_again(void **state)
{
    static uint32_t versions[MOVED_UNITS + 16];

    (void)state;
    flip_at(is_moved, 256, TWO);
    for (uint32_t round = 0; round < 12 && flip.flips == 0; round++) {
        for (uint32_t i = 0; i < MOVED_UNITS; i += 16 + round) {
            assert_int_equal(write_blocks((uint64_t)i * UNIT_BLOCKS,
                                          16 * UNIT_BLOCKS, round + 1),
                             0);
            for (uint32_t unit = i; unit < i + 16; unit++) {
                versions[unit] = round + 1;
            }
        }
        flush_all();
    }
    assert_int_equal(flip.flips, 1);
    flush_all();
    for (uint32_t i = 0; i < MOVED_UNITS; i++) {
        expect_good((uint64_t)i * UNIT_BLOCKS, UNIT_BLOCKS, versions[i]);
    }
}

/* ---- Resets: the next start adopts the write buffer. */

/* What the firmware's panic does when a hart has read a lost word. */
static void panic_at(uint64_t addr)
{
    struct ecc ecc;

    assert_true(ecc_init(&ecc, bed.drive->drive.memory.config.regs));
    assert_false(hw_ecc_read(drive_ecc(), addr, ECC_WORD_BYTES, false));
    assert_true(ecc_clear_trap_word(&ecc, addr));
}

static void panic_at_lost_word(void)
{
    panic_at(drive_ecc()->words[0].addr);
}

static void test_after_a_panic_the_lost_block_is_not_adopted_as_good(
    void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_slot(4 * BED_BLOCK, TWO);
    panic_at_lost_word();
    reset_drive();
    expect_one_lost(4, 1);
    reset_drive();
    expect_one_lost(4, 1);
    flush_all();
    expect_one_lost(4, 1);
    cut_power();
    expect_one_lost(4, 1);
}

/* A device has found a lost word, and the firmware has not handled this yet
 * when a hart stops at another one.  Only this one is set to zero, so its
 * address is all that the next start has to know. */
static void test_after_a_panic_two_lost_blocks_are_not_adopted_as_good(
    void **state)
{
    uint64_t words[2];

    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    for (uint32_t i = 0; i < 2; i++) {
        flip_slot((2 + 2 * i) * BED_BLOCK, TWO);
        words[i] = drive_ecc()->words[i].addr;
    }
    assert_false(hw_ecc_read(drive_ecc(), words[0], 1, true));
    panic_at(words[1] + 4);
    assert_int_equal(drive_ecc()->count, 1);
    assert_int_equal(drive_ecc()->uncorrected_addr, words[1]);
    reset_drive();
    expect_lost(LBA + 4, 1);
    expect_lost(LBA + 2, 1);
    expect_good(LBA + 3, 1, 1);
    flush_all();
    reset_drive();
    expect_lost(LBA + 2, 1);
    expect_lost(LBA + 4, 1);
    expect_good(LBA, 2, 1);
}

/* If a hart stops for another reason, the word that a device has found stays
 * the one that the next start knows. */
static void test_a_panic_for_another_reason_clears_no_word(void **state)
{
    struct ecc ecc;
    uint64_t word;

    (void)state;
    assert_true(ecc_init(&ecc, bed.drive->drive.memory.config.regs));
    assert_false(
        ecc_clear_trap_word(&ecc, bed.drive->drive.memory.config.dram_base));
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_slot(4 * BED_BLOCK, TWO);
    word = drive_ecc()->words[0].addr;
    assert_false(hw_ecc_read(drive_ecc(), word, 1, true));
    assert_false(ecc_clear_trap_word(&ecc, word + 8));
    assert_int_equal(drive_ecc()->count, 1);
    assert_int_equal(drive_ecc()->uncorrected_addr, word);
    assert_int_not_equal(drive_ecc()->status, 0);
    reset_drive();
    expect_one_lost(4, 1);
}

static void test_a_reset_before_anybody_reads_the_lost_word(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_slot(4 * BED_BLOCK, TWO);
    reset_drive();
    flush_all();
    expect_one_lost(4, 1);
}

static void test_a_reset_after_the_lost_word_was_found(void **state)
{
    (void)state;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    flip_slot(4 * BED_BLOCK, TWO);
    expect_lost(LBA + 4, 1);
    reset_drive();
    expect_one_lost(4, 1);
    assert_int_equal(write_blocks(LBA + 4, 1, 1), 0);
    reset_drive();
    expect_good(LBA, UNIT_BLOCKS, 1);
}

/* If a die does not answer, a start looks for the capacity on the flash before
 * it finds the write buffer.  In this test, another reset comes before the
 * start has found the capacity.  Two words are lost: a device has found the
 * first one, and a hart has stopped at the second one. */
WITH_FIXTURE(setup_four_dies, teardown)
static void test_another_reset_does_not_forget_the_lost_block(void **state)
{
    uint32_t lost;

    (void)state;
    for (uint32_t i = 0; i < STRIPES_UNITS; i += 16) {
        assert_int_equal(
            write_blocks((uint64_t)i * UNIT_BLOCKS, 16 * UNIT_BLOCKS, 1), 0);
    }
    flush_all();
    lose_die(0, 1);
    expect_right_or_lost(STRIPES_UNITS, &lost);
    assert_int_equal(ftl_dead_dies(drive_ftl()), 1);
    flush_all();
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 2), 0);
    flip_slot(2 * BED_BLOCK, TWO);
    assert_false(hw_ecc_read(drive_ecc(), drive_ecc()->words[0].addr, 1, true));
    flip_slot(4 * BED_BLOCK, TWO);
    panic_at(drive_ecc()->words[1].addr);
    bed.nand_is_held = true;
    bed_reset(&bed);
    assert_false(ftl_capacity_is_known(drive_ftl()));
    bed.nand_is_held = false;
    reset_drive();
    expect_lost(LBA + 2, 1);
    expect_lost(LBA + 4, 1);
    expect_good(LBA, 2, 2);
    expect_good(LBA + 3, 1, 2);
}

/* ---- The description of the write buffer, which the next start reads. */

/* The first word of the trims, of a head, or of the entry of the unit at LBA.
 * Each of the three has two copies. */
static const void *find_description(unsigned int part, unsigned int copy)
{
    const struct ftl_keep *keep = &drive_ftl()->keep;
    uint32_t entry = drive_ftl()->map[LBA / UNIT_BLOCKS];
    const void *parts[] = {
        &keep->trims[copy][0],
        keep->heads + (size_t)copy * FTL_KEEP_HEAD_LEN,
        &keep->entries[copy]
                      [ftl_is_in_slot(entry)
                           ? drive_ftl()->buffer.slots[(uint16_t)entry].buffer
                           : 0],
    };

    return parts[part];
}

enum {
    PARTS = 3,
    COPIES = FTL_KEEP_COPIES,
    TRIM_BLOCKS = 4 * UNIT_BLOCKS,
    DEALLOCATE = 1 << 25, /* CDW12 of Write Zeroes */
};

/* Write a unit, and trim units of the first word of trims. */
static void fill_description(uint32_t version)
{
    const struct nvme_sqe sqe = {
        .opcode = NVM_WRITE_ZEROES,
        .nsid = 1,
        .cdw12 = (TRIM_BLOCKS - 1) | DEALLOCATE,
    };

    assert_int_equal(
        host_command(&bed.host->host, 1, &sqe, NULL, 0) & NVME_SC_MASK, 0);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, version), 0);
}

static void expect_description(uint32_t version)
{
    static const uint8_t zeroes[TRIM_BLOCKS * BED_BLOCK];
    const struct ftl_adopted *adopted;

    expect_good(LBA, UNIT_BLOCKS, version); /* The buffer is adopted now. */
    adopted = ftl_adopted(drive_ftl());
    assert_int_equal(adopted->damaged, 0);
    assert_false(adopted->is_refused);
    assert_int_equal(bed_read(&bed, 1, 0, TRIM_BLOCKS, HOST_DATA_KEYED), 0);
    assert_memory_equal(bed.host->data, zeroes, sizeof(zeroes));
}

static void test_a_lost_word_of_the_description_loses_no_write(void **state)
{
    uint32_t version = 1;

    (void)state;
    for (unsigned int part = 0; part < COPIES * PARTS; part++) {
        for (unsigned int is_panic = 0; is_panic < 2; is_panic++) {
            fill_description(version);
            flush_all();
            assert_int_equal(write_blocks(0, TRIM_BLOCKS, version), 0);
            flush_all();
            fill_description(++version);
            assert_true(hw_ecc_inject(
                drive_ecc(),
                addr_of(find_description(part / COPIES, part % COPIES)), TWO));
            if (is_panic != 0) {
                panic_at_lost_word();
            }
            reset_drive();
            expect_description(version);
            assert_false(hw_ecc_has_errors(drive_ecc()));
        }
    }
}

/* Without its entry, the unit has older contents, so the host is warned. */
static void test_both_copies_of_an_entry_are_lost(void **state)
{
    static uint8_t smart[LOG_SMART_LEN];

    (void)state;
    fill_description(1);
    flush_all();
    for (unsigned int i = 0; i < 2; i++) {
        bool is_lost = i == 1;

        assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 2 + i), 0);
        assert_true(ftl_is_in_slot(drive_ftl()->map[LBA / UNIT_BLOCKS]));
        for (unsigned int copy = 0; is_lost && copy < COPIES; copy++) {
            assert_true(
                hw_ecc_inject(drive_ecc(),
                              addr_of(find_description(PARTS - 1, copy)) +
                                  offsetof(struct ftl_keep_entry, unit),
                              TWO));
        }
        reset_drive();
        /* The answer shows that the drive has adopted the buffer. */
        expect_good(LBA, UNIT_BLOCKS, 2);
        assert_int_equal(ftl_adopted(drive_ftl())->damaged, is_lost);
        assert_int_equal(
            host_get_log(&bed.host->host, LOG_SMART, 0, smart, sizeof(smart)),
            0);
        assert_int_equal(smart[0], is_lost ? SMART_WARN_RELIABILITY : 0);
        flush_all();
    }
}

/* ---- All stages. */

/* At a stage, bits flip while a unit is written, flushed and read. */
struct stage {
    const char *name;
    bool (*is_stage)(uint64_t *addr, uint64_t len); /* of a word of the DRAM */
    void (*start)(bool is_one); /* otherwise: let a stage flip bits */
    bool is_rnic;               /* an error ends the connection */
    bool is_reread;             /* the unit is written before bits flip */
};

static void flip_page(bool is_one)
{
    inject_fault(NAND_OP_READ, NAND_EFFECT_BITS, is_one ? 1 : UINT16_MAX, 1);
}

static void fail_program_transfers(bool is_one)
{
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0,
                 is_one ? 1 : REPEATS + 1);
}

static void fail_read_transfers(bool is_one)
{
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0,
                 is_one ? 1 : REPEATS + 1);
}

static void fail_transfer_in(bool is_one)
{
    if (!is_one) { /* Parity finds one wrong bit, but corrects none. */
        fail_transfer(true, 1);
    }
}

static void fail_transfer_out(bool is_one)
{
    if (!is_one) {
        fail_transfer(false, 0);
    }
}

static void flip_buffered(bool is_one)
{
    flip_slot(BED_BLOCK, is_one ? ONE : TWO);
}

static const struct stage stages[] = {
    {"transfer from the RNIC", NULL, fail_transfer_in, true, false},
    {"buffer of a payload", is_payload, NULL, false, false},
    {"program from the write buffer", is_program, NULL, false, false},
    {"transfer to a die", NULL, fail_program_transfers, false, false},
    {"page", NULL, flip_page, false, true},
    {"transfer from a die", NULL, fail_read_transfers, false, true},
    {"buffer of data that is sent", is_sent, NULL, true, true},
    {"transfer to the RNIC", NULL, fail_transfer_out, true, true},
};

static void start_stage(const struct stage *stage, bool is_one)
{
    transfer.failed = 0;
    if (stage->is_stage != NULL) {
        flip_at(stage->is_stage, BED_BLOCK, is_one ? ONE : TWO);
    } else {
        stage->start(is_one);
    }
}

static bool is_proper(const struct stage *stage, uint16_t status)
{
    return status == 0 || status == NVME_SC_READ_ERROR ||
           status == NVME_SC_DATA_TRANSFER_ERROR ||
           (stage->is_rnic && status != 0);
}

/* A unit that can be read has one of two versions, block by block. */
static bool is_good(uint16_t status, uint32_t old, uint32_t new)
{
    static uint8_t expected[2][UNIT_BLOCKS * BED_BLOCK];

    if (status != 0) {
        return true;
    }
    bed_fill(expected[0], LBA, UNIT_BLOCKS, old);
    bed_fill(expected[1], LBA, UNIT_BLOCKS, new);
    for (uint32_t i = 0; i < UNIT_BLOCKS; i++) {
        size_t at = (size_t)i * BED_BLOCK;

        if (memcmp(bed.host->data + at, expected[0] + at, BED_BLOCK) != 0 &&
            memcmp(bed.host->data + at, expected[1] + at, BED_BLOCK) != 0) {
            return false;
        }
    }
    return true;
}

/* @return whether the host has noticed an error */
static bool run_stage(const struct stage *stage, bool is_one, uint32_t version)
{
    uint16_t status[3] = {0};
    bool is_noticed = false;

    if (!stage->is_reread) {
        start_stage(stage, is_one);
    }
    status[0] = write_blocks(LBA, UNIT_BLOCKS, version);
    if (status[0] != 0 && stage->is_rnic) {
        connect_again();
    }
    status[1] = bed_flush(&bed, 1) & NVME_SC_MASK;
    if (stage->is_reread) {
        start_stage(stage, is_one);
    }
    status[2] =
        bed_read(&bed, 1, LBA, UNIT_BLOCKS, HOST_DATA_KEYED) & NVME_SC_MASK;
    assert_true(
        is_good(status[2], status[0] == 0 ? version : version - 1, version));
    if (status[2] != 0 && stage->is_rnic) {
        host_vanish(&bed.host->host);
        bed_connect(&bed, 0, 1, 64);
    }
    for (uint32_t i = 0; i < ARRAY_LEN(status); i++) {
        assert_true(is_proper(stage, status[i]));
        is_noticed |= status[i] != 0;
    }
    return is_noticed;
}

/* A wrong bit is corrected, at every stage.  With more of them, the host gets
 * an error, or the right data after repetitions, but never wrong data. */
static void test_a_flip_at_each_stage_is_never_delivered_as_good(void **state)
{
    uint32_t version = 1;

    (void)state;
    bed_provokes(&bed, BED_PARITY);
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, version), 0);
    for (uint32_t i = 0; i < ARRAY_LEN(stages); i++) {
        const struct stage *stage = &stages[i];
        bool repeats = stage->start == fail_program_transfers;

        print_message("%s\n", stage->name);
        assert_false(run_stage(stage, true, ++version));
        assert_int_equal(run_stage(stage, false, ++version), !repeats);
        assert_int_equal(flip.bits, 0); /* The bits have flipped. */
        flip.bits = 0;
        nand_array_clear_injections(bed.drive->machine.nand->array);
        assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, version), 0);
        flush_all();
        expect_good(LBA, UNIT_BLOCKS, version);
    }
    /* The write buffer, before it is programmed. */
    for (uint32_t bits = ONE; bits <= TWO; bits += TWO - ONE) {
        assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, ++version), 0);
        flip_buffered(bits == ONE);
        if (bits == ONE) {
            expect_good(LBA, UNIT_BLOCKS, version);
        } else {
            expect_lost(LBA, UNIT_BLOCKS);
        }
        flush_all();
    }
}

/* Whether a unit is on flash, in a stripe that takes more rows. */
static bool is_in_open_stripe(uint32_t unit)
{
    uint32_t entry = drive_ftl()->map[unit];
    const struct ftl_accumulator *at =
        ftl_is_place(entry)
            ? ftl_parity_find(&drive_ftl()->rows_floor,
                              entry / drive_ftl()->layout.row_units)
            : NULL;

    return at != NULL && !at->is_closed && at->written == 0;
}

/* Write until there is such a unit, and return its number. */
static uint32_t open_stripe(void)
{
    for (uint32_t i = 0; i < STRIPES_UNITS; i++) {
        assert_int_equal(
            write_blocks((uint64_t)i * UNIT_BLOCKS, UNIT_BLOCKS, 1), 0);
        for (uint32_t unit = 0; unit <= i; unit++) {
            if (is_in_open_stripe(unit)) {
                return unit;
            }
        }
    }
    fail();
    return 0;
}

/* The sum of a stripe that is not complete is only in DRAM. */
WITH_FIXTURE(setup_four_dies, teardown)
static void test_nothing_is_rebuilt_from_a_sum_with_a_lost_word(void **state)
{
    uint64_t lba = (uint64_t)open_stripe() * UNIT_BLOCKS;

    (void)state;
    assert_int_equal(read_rebuilt(lba), 0);
    assert_int_equal(rebuilt_units(), 1);
    flip_at(is_begun, BED_BLOCK, TWO);
    assert_int_equal(read_rebuilt(lba), NVME_SC_READ_ERROR);
    assert_int_equal(flip.flips, 1);
    assert_int_equal(rebuilt_units(), 1);
    expect_good(lba, UNIT_BLOCKS, 1);
    /* Nothing is rebuilt from the parity of this stripe on flash, either. */
    write_stripes();
    expect_good(lba, UNIT_BLOCKS, 1);
    flush_all();
    cut_power();
    lose_die(0, 1);
    for (uint32_t i = 0; i < STRIPES_UNITS; i++) {
        uint16_t status = bed_read(&bed, 1, (uint64_t)i * UNIT_BLOCKS,
                                   UNIT_BLOCKS, HOST_DATA_KEYED) &
                          NVME_SC_MASK;

        assert_true(status == 0 || status == NVME_SC_READ_ERROR);
        if (status == 0) {
            expect_good((uint64_t)i * UNIT_BLOCKS, UNIT_BLOCKS, 1);
        }
    }
}

/* ---- The cache of a block engine. */

static const struct bed block_bed = {.mtu_bytes = 1500};
static uint32_t cached_bits;

static uint32_t count_cached_bits(void *ctx, uint64_t first, uint64_t end)
{
    (void)ctx;
    return first < (LBA + UNIT_BLOCKS) * BED_BLOCK && LBA * BED_BLOCK < end
               ? cached_bits
               : 0;
}

static int setup_block(void **state)
{
    (void)state;
    return setup_like(&block_bed);
}

WITH_FIXTURE(setup_block, teardown)
static void test_a_flip_in_the_cache_is_never_delivered_as_good(void **state)
{
    struct hw_media *media = bed.drive->machine.media;

    (void)state;
    cached_bits = 0;
    media->config.cache_bits = count_cached_bits;
    assert_int_equal(write_blocks(LBA, UNIT_BLOCKS, 1), 0);
    cached_bits = 1;
    expect_good(LBA, UNIT_BLOCKS, 1);
    assert_int_equal(media->regs.counters[MEDIA_COUNT_CACHE_CORRECTED], 1);
    cached_bits = 2;
    expect_lost(LBA, UNIT_BLOCKS);
    assert_int_equal(media->regs.counters[MEDIA_COUNT_CACHE_LOST], 1);
    cached_bits = 0;
    expect_good(LBA, UNIT_BLOCKS, 1);
    flush_all();
    expect_good(LBA, UNIT_BLOCKS, 1);
}

TEST_FIXTURE(setup_nand, teardown)
