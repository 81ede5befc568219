/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces with protection information: bits that flip between the host and
 * the flash.  The NAND controller finds wrong data by its guard, and wrong tags
 * by their checks.  If it finds a lost word of the DRAM instead, the command
 * ends with an error, and the drive goes on.
 * Reference: docs/decisions/0017-data-path.md
 */
#include "dram_flip.h"
#include "media_spy.h"
#include "protection_bed.h"

#include "nvmeof/wire/cqe.h"
#include "storage/ftl/map/map.h"
#include "tests/test_fixture.h"

enum {
    COUNT = 9, /* blocks of a command; with 512 bytes they are in two units */
    FIRST = 16,
    APP_TAGS = 0x1111 | 0xffff0000, /* the tag, and its mask */
};

static uint16_t run_one(uint8_t opcode, uint32_t flags)
{
    return run_io(opcode, FIRST, COUNT, flags, (uint32_t)APP_TAGS);
}

static void check_formats(void (*check)(void))
{
    for (unsigned int pi_type = 1; pi_type <= 3; pi_type++) {
        memset(&flip, 0, sizeof(flip));
        format_with(512, pi_type);
        check();
        memset(&flip, 0, sizeof(flip));
        format_with(4096, pi_type);
        check();
    }
}

static uint32_t all_checks(void)
{
    return CHECK_GUARD | CHECK_APP | (type == 3 ? 0 : CHECK_REF);
}

/* ---- Bits that flip without an error of the DRAM: only the checks find them.
 */

static uint16_t slot_of(uint32_t lba)
{
    uint64_t unit = (uint64_t)lba * block_bytes / FTL_UNIT_DATA;
    uint32_t entry = drive_ftl()->map[unit];

    assert_true(ftl_is_in_slot(entry));
    return (uint16_t)entry;
}

static uint8_t *slot_data(uint32_t lba)
{
    return ftl_slot_data(&drive_ftl()->buffer, slot_of(lba)) +
           (uint64_t)lba * block_bytes % FTL_UNIT_DATA;
}

static uint8_t *slot_meta(uint32_t lba)
{
    return ftl_slot_meta(&drive_ftl()->buffer, slot_of(lba)) +
           (uint64_t)lba * block_bytes % FTL_UNIT_DATA / block_bytes *
               T10_PI_LEN;
}

/* Reads with and without PRACT, and Verify, find the wrong byte. */
static void expect_found(uint32_t lba, uint32_t check, uint16_t status)
{
    assert_int_equal(run_one(NVM_READ, check), status);
    assert_int_equal(logged_lba(), lba);
    assert_int_equal(run_one(NVM_READ, check | PRACT), status);
    assert_int_equal(run_one(NVM_VERIFY, check), status);
    assert_int_equal(run_one(NVM_READ, 0), 0);
}

static void change_byte(uint8_t *byte, uint32_t lba, uint32_t check,
                        uint16_t status)
{
    *byte ^= 0x10;
    expect_found(lba, check, status);
    flush_drive();
    expect_found(lba, check, status);
    write_blocks(FIRST, COUNT, 2, PRACT, 0x1111);
    expect_blocks(FIRST, COUNT);
}

static void check_silent_changes(void)
{
    uint32_t lba = FIRST + COUNT - 2;

    write_blocks(FIRST, COUNT, 1, PRACT, 0x1111);
    change_byte(slot_data(lba) + 17, lba, CHECK_GUARD, NVME_SC_GUARD_CHECK);
    change_byte(slot_meta(lba) + 1, lba, CHECK_GUARD, NVME_SC_GUARD_CHECK);
    change_byte(slot_meta(lba) + 2, lba, CHECK_APP, NVME_SC_APP_TAG_CHECK);
    if (type != 3) {
        change_byte(slot_meta(lba) + 4, lba, CHECK_REF, NVME_SC_REF_TAG_CHECK);
    }
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_wrong_bit_of_buffer_or_flash_is_found_by_its_check(
    void **state)
{
    (void)state;
    check_formats(check_silent_changes);
}

/* ---- Lost words.  In these tests, a stage is the source of a move in the list
 * that the controller is about to do. */

static struct {
    uint8_t kind;
    bool (*is_memory)(uint64_t addr); /* the source */
} wanted;

static bool is_in_meta(uint64_t addr)
{
    return addr - addr_of(drive_ftl()->buffer.meta) <
           (uint64_t)drive_ftl()->buffer.num_slots * FTL_UNIT_META;
}

static bool is_in_requests(uint64_t addr)
{
    return addr - addr_of(drive_ftl()->ops.requests) <
           drive_ftl()->config.num_requests * sizeof(struct ftl_request);
}

static bool is_in_payload(uint64_t addr)
{
    const struct memory_check_config *memory = &bed.drive->drive.memory.config;

    return addr - memory->buffers < memory->buffers_bytes;
}

static bool is_wanted_move(uint64_t *addr, uint64_t len)
{
    const struct ftl_moves *moves = &bed.drive->drive.nand.seam.moves;

    if (!is_list(*addr, len)) {
        return false;
    }
    for (uint32_t i = 0; i < moves->count; i++) {
        if (moves->list[i].kind == wanted.kind && moves->list[i].source != 0 &&
            wanted.is_memory(moves->list[i].source)) {
            *addr = moves->list[i].source & ~UINT64_C(7);
            return true;
        }
    }
    return false;
}

static void flip_source(enum ftl_move_kind kind, bool (*is_memory)(uint64_t),
                        uint64_t bits)
{
    wanted.kind = (uint8_t)kind;
    wanted.is_memory = is_memory;
    flip_at(is_wanted_move, 0, bits);
}

/* A command succeeds if one bit of the stage is wrong, and ends with `status`
 * if a word of it is lost. */
static void expect_stage(uint8_t opcode, uint32_t flags,
                         enum ftl_move_kind kind, bool (*is_memory)(uint64_t),
                         uint16_t status)
{
    uint32_t step = flags & PRACT ? block_bytes : block_stride();

    put_area(FIRST, COUNT, step);
    flip_source(kind, is_memory, ONE);
    assert_int_equal(run_one(opcode, flags), 0);
    assert_int_equal(flip.flips, 1);
    expect_area(FIRST, COUNT, step);
    flip_source(kind, is_memory, TWO);
    assert_int_equal(run_one(opcode, flags), status);
    assert_int_equal(flip.flips, 1);
    assert_false(hw_ecc_has_errors(drive_ecc()));
}

/* The check of a write comes before anything changes. */
static void check_lost_writes(void)
{
    write_blocks(FIRST, COUNT, 1, PRACT, 0x1111);
    expect_stage(NVM_WRITE, all_checks(), FTL_MOVE_ADD_GUARD, is_in_payload,
                 NVME_SC_DATA_TRANSFER_ERROR);
    expect_blocks(FIRST, COUNT);
    expect_stage(NVM_WRITE, all_checks(), FTL_MOVE_PROTECT, is_in_payload,
                 NVME_SC_DATA_TRANSFER_ERROR);
    expect_blocks(FIRST, COUNT);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_word_that_is_lost_in_the_check_of_a_write_changes_nothing(
    void **state)
{
    (void)state;
    check_formats(check_lost_writes);
}

static void expect_lost_until_written(void)
{
    assert_int_equal(run_one(NVM_READ, 0), NVME_SC_READ_ERROR);
    assert_int_equal(run_one(NVM_READ, CHECK_GUARD), NVME_SC_READ_ERROR);
    flush_drive();
    assert_int_equal(run_one(NVM_READ, CHECK_GUARD | PRACT),
                     NVME_SC_READ_ERROR);
    write_blocks(FIRST, COUNT, 3, all_checks(), 0x1111);
    expect_blocks(FIRST, COUNT);
}

/* Data or metadata is lost while it is copied. */
static void check_lost_copies(void)
{
    write_blocks(FIRST, COUNT, 1, PRACT, 0x1111);
    expect_stage(NVM_WRITE, PRACT, FTL_MOVE_ADD_GUARD, is_in_payload,
                 NVME_SC_DATA_TRANSFER_ERROR);
    expect_lost_until_written();
    expect_stage(NVM_WRITE, 0, FTL_MOVE_COPY, is_in_payload,
                 NVME_SC_DATA_TRANSFER_ERROR);
    expect_lost_until_written();
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_word_that_is_lost_in_the_copy_of_a_write_marks_its_block(
    void **state)
{
    (void)state;
    check_formats(check_lost_copies);
}

/* The write buffer: the block stays lost until it is written. */
static void check_lost_buffer(void)
{
    static const uint32_t flags[] = {CHECK_GUARD, CHECK_GUARD | PRACT};

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        write_blocks(FIRST, COUNT, 1, PRACT, 0x1111);
        expect_stage(NVM_READ, flags[i], FTL_MOVE_ADD_GUARD, is_in_slots,
                     NVME_SC_READ_ERROR);
        expect_lost_until_written();
        expect_stage(NVM_READ, flags[i], FTL_MOVE_PROTECT, is_in_meta,
                     NVME_SC_READ_ERROR);
        expect_lost_until_written();
    }
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_word_that_is_lost_in_the_check_of_a_slot_marks_its_block(
    void **state)
{
    (void)state;
    check_formats(check_lost_buffer);
}

/* A word of data or metadata that was read from the flash is lost: the next
 * read gets it from the flash again. */
static void check_lost_reads(void)
{
    static const uint32_t flags[] = {CHECK_GUARD, CHECK_GUARD | PRACT};

    write_blocks(FIRST, COUNT, 1, PRACT, 0x1111);
    flush_drive();
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        expect_stage(NVM_READ, flags[i], FTL_MOVE_ADD_GUARD, is_in_payload,
                     NVME_SC_DATA_TRANSFER_ERROR);
        expect_blocks(FIRST, COUNT);
        expect_stage(NVM_READ, flags[i], FTL_MOVE_PROTECT, is_in_requests,
                     NVME_SC_DATA_TRANSFER_ERROR);
        expect_blocks(FIRST, COUNT);
    }
    /* The metadata is copied to the host without a check. */
    expect_stage(NVM_READ, 0, FTL_MOVE_COPY, is_in_requests,
                 NVME_SC_DATA_TRANSFER_ERROR);
    expect_blocks(FIRST, COUNT);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_word_that_is_lost_after_a_read_from_flash_fails_this_read(
    void **state)
{
    (void)state;
    check_formats(check_lost_reads);
}

/* The memory into which the controller writes metadata from the flash has lost
 * words, which the read replaces. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_read_replaces_lost_words_of_its_request(void **state)
{
    struct ftl *ftl = drive_ftl();

    (void)state;
    format_with(512, 1);
    write_blocks(FIRST, COUNT, 1, PRACT, 0x1111);
    flush_drive();
    for (uint32_t i = 0; i < ftl->config.num_requests; i++) {
        if (ftl->ops.requests[i].kind == FTL_REQUEST_FREE) {
            assert_true(hw_ecc_inject(
                drive_ecc(), addr_of(ftl->ops.requests[i].meta) + 8, TWO));
        }
        if (drive_ecc()->count == HW_ECC_WORDS) {
            break;
        }
    }
    expect_blocks(FIRST, COUNT);
    hw_ecc_reset(drive_ecc(), true);
}

/* ---- Parts of units. */

/* A write of a part of a unit copies the unit's other blocks with their
 * metadata.  A lost word in this metadata marks these blocks. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_word_that_is_lost_in_the_metadata_of_the_rest_of_a_unit(
    void **state)
{
    (void)state;
    format_with(512, 1);
    write_blocks(FIRST, 8, 1, PRACT, 0x1111);
    assert_true(hw_ecc_inject(drive_ecc(), addr_of(slot_meta(FIRST + 3)), TWO));
    write_blocks(FIRST + 6, 1, 2, PRACT, 0x1111);
    expect_blocks(FIRST + 6, 1);
    assert_int_equal(run_io(NVM_READ, FIRST + 3, 1, 0, 0), NVME_SC_READ_ERROR);
    flush_drive();
    assert_int_equal(run_io(NVM_READ, FIRST + 3, 1, 0, 0), NVME_SC_READ_ERROR);
    expect_blocks(FIRST + 6, 1);
    write_blocks(FIRST, 8, 3, all_checks(), 0x1111);
    expect_blocks(FIRST, 8);
}

static bool is_programming(void *ctx)
{
    const struct ftl *ftl = drive_ftl();
    uint32_t entry = ftl->map[FIRST / 8];

    (void)ctx;
    return ftl_is_in_slot(entry) &&
           ftl->buffer.slots[(uint16_t)entry].state == FTL_SLOT_PROGRAMMING;
}

static const struct bed realtime_bed = {.mtu_bytes = 1500,
                                        .has_nand = true,
                                        .nand_is_realtime = true,
                                        .keeps_namespaces = true};

static int setup_realtime(void **state)
{
    (void)state;
    memset(&flip, 0, sizeof(flip));
    bed_init_like(&bed, &realtime_bed);
    bed_connect(&bed, 0, 1, 64);
    area = bed.host->data;
    return 0;
}

static void ignore_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    assert_int_equal(result->cqe.status, 0);
}

/* The same while the unit is being programmed, so that the part gets a slot of
 * its own. */
WITH_FIXTURE(setup_realtime, teardown)
static void test_a_word_that_is_lost_in_the_metadata_of_an_older_slot(
    void **state)
{
    const struct host_io flush = {
        .qid = 1, .opcode = NVM_FLUSH, .nsid = 1, .done = ignore_result};

    (void)state;
    format_with(512, 1);
    write_blocks(FIRST, 8, 1, PRACT, 0x1111);
    assert_true(host_io_submit(&bed.host->host, &flush));
    verbs_flush(&bed.host->net.verbs);
    bed.host->sleep.is_asleep = false;
    assert_true(native_world_run(&bed.world, is_programming, NULL,
                                 UINT64_C(10000000000)));
    flip_source(FTL_MOVE_COPY, is_in_meta, TWO);
    flip.offset = 3 * T10_PI_LEN;
    write_blocks(FIRST + 6, 1, 2, PRACT, 0x1111);
    assert_int_equal(flip.flips, 1);
    expect_blocks(FIRST + 6, 1);
    assert_int_equal(run_io(NVM_READ, FIRST + 3, 1, 0, 0), NVME_SC_READ_ERROR);
    flush_drive();
    assert_int_equal(run_io(NVM_READ, FIRST + 3, 1, 0, 0), NVME_SC_READ_ERROR);
    expect_blocks(FIRST + 6, 1);
}

/* A whole unit that is written does not need the old metadata. */
WITH_FIXTURE(setup_nand, teardown)
static void test_lost_metadata_of_a_unit_that_is_replaced_harms_nothing(
    void **state)
{
    (void)state;
    format_with(512, 1);
    write_blocks(FIRST, 8, 1, PRACT, 0x1111);
    assert_true(hw_ecc_inject(drive_ecc(), addr_of(slot_meta(FIRST + 3)), TWO));
    write_blocks(FIRST, 8, 2, all_checks(), 0x1111);
    expect_blocks(FIRST, 8);
    flush_drive();
    expect_blocks(FIRST, 8);
}

/* ---- Data in a capsule, at any offset. */

static uint16_t write_in_capsule(uint32_t blocks, uint32_t flags,
                                 uint32_t offset)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = NVM_WRITE,
        .kind = HOST_DATA_IN_CAPSULE,
        .nsid = 1,
        .lba = FIRST,
        .blocks = blocks,
        .len_bytes = blocks * (flags & PRACT ? block_bytes : block_stride()),
        .capsule_offset = offset,
        .flags = flags,
        .ref_tag = FIRST,
        .app_tags = (uint32_t)APP_TAGS,
    };

    return host_io(&bed.host->host, &io) & NVME_SC_MASK;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_data_at_odd_offsets_of_a_capsule_is_checked_and_stored(
    void **state)
{
    (void)state;
    format_with(512, 1);
    for (uint32_t offset = 0; offset < 9; offset++) {
        uint32_t flags = offset % 2 == 0 ? all_checks() : PRACT;
        uint32_t step = flags & PRACT ? block_bytes : block_stride();

        fill_model(FIRST, 7, offset, 0x1111);
        put_area(FIRST, 7, step);
        assert_int_equal(write_in_capsule(7, flags, offset), 0);
        expect_blocks(FIRST, 7);
        put_area(FIRST, 7, block_stride());
        area[5 * block_stride() + 100] ^= 1;
        assert_int_equal(write_in_capsule(7, CHECK_GUARD, offset),
                         NVME_SC_GUARD_CHECK);
        assert_int_equal(logged_lba(), FIRST + 5);
        expect_blocks(FIRST, 7);
    }
}

/* Capsules are not in the buffers of payloads. */
static bool is_in_capsule(uint64_t addr)
{
    return !is_in_slots(addr) && !is_in_meta(addr) && !is_in_requests(addr) &&
           !is_in_payload(addr);
}

/* First, the lost word begins before the data; then it has bytes of two blocks.
 */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_lost_word_at_the_edge_of_data_in_a_capsule_is_noticed(
    void **state)
{
    (void)state;
    format_with(512, 1);
    write_blocks(FIRST, 7, 1, PRACT, 0x1111);
    put_area(FIRST, 7, block_stride());
    flip_source(FTL_MOVE_ADD_GUARD, is_in_capsule, TWO);
    assert_int_equal(write_in_capsule(7, all_checks(), 3),
                     NVME_SC_DATA_TRANSFER_ERROR);
    assert_int_equal(flip.flips, 1);
    expect_blocks(FIRST, 7);
    put_area(FIRST, 7, block_bytes);
    flip_source(FTL_MOVE_ADD_GUARD, is_in_capsule, TWO);
    flip.offset = 512; /* the data of both blocks is lost */
    assert_int_equal(write_in_capsule(7, PRACT, 3),
                     NVME_SC_DATA_TRANSFER_ERROR);
    assert_int_equal(flip.flips, 1);
    assert_int_equal(run_io(NVM_READ, FIRST, 1, 0, 0), NVME_SC_READ_ERROR);
    assert_int_equal(run_io(NVM_READ, FIRST + 1, 1, 0, 0), NVME_SC_READ_ERROR);
    expect_blocks(FIRST + 2, 5);
}

/* ---- Compare: a hart reads the data of the host and that of the medium. */

static struct {
    uint32_t flips;
} compared;

/* Flip bits of the host's data between the end of the medium's read and the
 * comparison, wherever buffers have its first bytes. */
static void flip_buffers(const struct media_io *io)
{
    const struct memory_check_config *memory = &bed.drive->drive.memory.config;
    const uint8_t *buffers =
        (const uint8_t *)(uintptr_t)(memory->buffers - addr_of(NULL));

    assert_int_equal(io->op, MEDIA_READ);
    for (size_t at = 0; at < memory->buffers_bytes; at += 512) {
        if (memcmp(buffers + at, model[FIRST], 64) == 0) {
            assert_true(hw_ecc_inject(drive_ecc(), memory->buffers + at, TWO));
            compared.flips++;
        }
    }
}

static void check_lost_compare(void)
{
    write_blocks(FIRST, COUNT, 1, PRACT, 0x1111);
    put_area(FIRST, COUNT, block_bytes);
    assert_int_equal(run_one(NVM_COMPARE, PRACT), 0);
    compared.flips = 0;
    media_spy_start(bed.drive->drive.target, flip_buffers);
    assert_int_equal(run_one(NVM_COMPARE, PRACT), NVME_SC_DATA_TRANSFER_ERROR);
    assert_true(compared.flips > 0);
    /* Other buffers with the same bytes have been flipped, too. */
    assert_int_equal(drive_ecc()->count, compared.flips - 1);
    while (hw_ecc_has_errors(drive_ecc())) {
        assert_true(
            hw_ecc_write(drive_ecc(), drive_ecc()->words[0].addr, 8, true));
    }
    assert_int_equal(run_one(NVM_COMPARE, PRACT), 0);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_compare_of_a_lost_word_fails(void **state)
{
    (void)state;
    check_formats(check_lost_compare);
}
