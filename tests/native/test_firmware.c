/* SPDX-License-Identifier: BSD-2-Clause */
/* A host updates the firmware of a whole drive, and resets the subsystem. */
#include "bed.h"

#include <string.h>

#include "storage/ftl/state.h"
#include "storage/ftl/map/map.h"
#include "firmware/hal/time.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

enum {
    UNIT = 4096,
    FILE_BYTES = 2 * UNIT, /* header and image */
    UNIT_BLOCKS = 8,
    STORE_ACTIVATE = 1 << 3,
    ACTIVATE = 2 << 3,
};
#define RESTART_NS UINT64_C(8000000000)

static struct bed bed;
static struct flash_ram flash;
static uint8_t file[FILE_BYTES];

static struct image_header make_image(const char *version, uint32_t sequence)
{
    struct image_header header;

    memset(file, 0x6f, sizeof(file));
    header = flash_ram_header(version, sequence, file + UNIT, UNIT);
    image_header_emit(&header, file);
    return header;
}

static int setup_drive(void **state)
{
    const struct bed like = {.mtu_bytes = 1500, .spi_flash = &flash};

    (void)state;
    flash_ram_init(&flash);
    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        struct image_header header = make_image("old", 3u - slot);

        flash_ram_set_slot(&flash, slot, &header, file + UNIT);
    }
    bed_init_like(&bed, &like);
    bed_connect(&bed, 0, 1, 32);
    return 0;
}

static int teardown_drive(void **state)
{
    (void)state;
    bed_end(&bed);
    flash_ram_free(&flash);
    return 0;
}

TEST_FIXTURE(setup_drive, teardown_drive)

static uint16_t send_admin(const struct nvme_sqe *sqe, void *data, uint32_t len)
{
    return host_command(&bed.host->host, 0, sqe, data, len) & NVME_SC_MASK;
}

static uint16_t commit_slot(uint32_t cdw10)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_FIRMWARE_COMMIT,
                                 .cdw10 = cdw10};

    return send_admin(&sqe, NULL, 0);
}

static void download_file(void)
{
    (void)make_image("new", 0);
    for (uint32_t at = 0; at < FILE_BYTES; at += UNIT) {
        const struct nvme_sqe sqe = {.opcode = ADMIN_FIRMWARE_DOWNLOAD,
                                     .cdw10 = UNIT / 4 - 1,
                                     .cdw11 = at / 4};

        assert_int_equal(send_admin(&sqe, file + at, UNIT), 0);
    }
}

static uint8_t read_slots(void)
{
    static uint8_t page[LOG_FIRMWARE_SLOT_LEN];
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LOG_PAGE,
        .cdw10 = (LOG_FIRMWARE_SLOT_LEN / 4 - 1) << 16 | LOG_FIRMWARE_SLOT,
    };

    assert_int_equal(send_admin(&sqe, page, sizeof(page)), 0);
    return page[FIRMWARE_SLOT_AFI];
}

static bool wants_restart(void *ctx)
{
    (void)ctx;
    return bed.drive->wants_restart;
}

/* @return whether the drive restarts */
static bool reset_subsystem(void)
{
    struct nvme_sqe sqe = {0};

    property_command_build(&sqe,
                           &(struct property_command){.size_bytes = 4,
                                                      .offset = PROPERTY_NSSR,
                                                      .value = NSSR_RESET});
    assert_int_equal(send_admin(&sqe, NULL, 0), 0);
    host_vanish(&bed.host->host);
    return native_world_run(&bed.world, wants_restart, NULL, RESTART_NS);
}

static void test_a_subsystem_reset_starts_the_image_in_the_other_slot(
    void **state)
{
    (void)state;
    download_file();
    assert_int_equal(commit_slot(2 | STORE_ACTIVATE),
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    assert_int_equal(read_slots(), 0x21);
    assert_true(reset_subsystem());
    bed_power_cycle(&bed);
    bed_connect(&bed, 0, 1, 32);
    assert_int_equal(read_slots(), 2);
    assert_string_equal(bed.drive->version, "new");
}

static void test_a_subsystem_reset_starts_the_new_image_in_the_running_slot(
    void **state)
{
    (void)state;
    download_file();
    assert_int_equal(commit_slot(1 | STORE_ACTIVATE),
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    assert_int_equal(read_slots(), 0x11);
    assert_true(reset_subsystem());
    bed_power_cycle(&bed);
    bed_connect(&bed, 0, 1, 32);
    assert_int_equal(read_slots(), 1);
    assert_string_equal(bed.drive->version, "new");
}

static void test_without_another_image_a_subsystem_reset_restarts_nothing(
    void **state)
{
    (void)state;
    assert_int_equal(commit_slot(2 | ACTIVATE),
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    assert_int_equal(commit_slot(1 | ACTIVATE), 0);
    assert_int_equal(read_slots(), 1);
    assert_false(reset_subsystem());
    bed_connect(&bed, 0, 1, 32);
    assert_int_equal(read_slots(), 1);
}

/* In virtual time: the commit waits until the new image has run for 10 s. */
static void test_a_commit_waits_for_the_end_of_the_trial(void **state)
{
    (void)state;
    download_file();
    assert_int_equal(commit_slot(2 | STORE_ACTIVATE),
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    assert_true(reset_subsystem());
    bed_power_cycle(&bed);
    bed_connect(&bed, 0, 1, 32);
    assert_true(updater_is_on_trial(&bed.drive->drive.firmware.updater));
    download_file();
    assert_int_equal(commit_slot(0 | STORE_ACTIVATE),
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    assert_false(updater_is_on_trial(&bed.drive->drive.firmware.updater));
    assert_int_equal(read_slots(), 0x12);
}

/* ---- Commands of hosts while the SPI flash erases. */

enum { ERASE_US = 400000, PACE_NS = 5000000 };
#define LONGEST_READ_NS UINT64_C(5000000)

static struct {
    bool is_done;
    uint16_t status;
} commit;

static void end_commit(void *ctx, const struct host_result *result)
{
    (void)ctx;
    assert_false(result->is_lost);
    commit.is_done = true;
    commit.status = result->cqe.status & NVME_SC_MASK;
}

/* Begin a commit, and do not wait for its end. */
static void start_commit(uint32_t cdw10)
{
    const struct host_command command = {
        .sqe = {.opcode = ADMIN_FIRMWARE_COMMIT, .cdw10 = cdw10},
        .done = end_commit,
    };

    memset(&commit, 0, sizeof(commit));
    assert_true(host_queue_submit(&bed.host->host.conn[0].queue, &command));
}

/* From now on, an erasure takes 400 ms. */
static void slow_flash(void)
{
    flash.now_us = hal_now_us;
    flash.delay_us = hal_delay_us;
    flash.erase_us = ERASE_US;
}

static void expect_short_read(void)
{
    uint64_t start_ns = bed.world.now_ns;

    assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED), 0);
    assert_true(bed.world.now_ns - start_ns < LONGEST_READ_NS);
    start_ns = bed.world.now_ns;
    native_world_pass(&bed.world, PACE_NS);
    /* The virtual clock has not waited for the end of an erasure either. */
    assert_true(bed.world.now_ns - start_ns < PACE_NS + LONGEST_READ_NS);
}

static void test_reads_go_on_while_a_commit_erases_the_flash(void **state)
{
    uint32_t reads = 0;

    (void)state;
    download_file();
    slow_flash();
    start_commit(2 | STORE_ACTIVATE);
    while (!commit.is_done) {
        expect_short_read();
        reads++;
    }
    assert_int_equal(commit.status, NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    /* It has erased two sectors of the slot, and those of two records. */
    assert_true(reads >= 4 * (uint64_t)ERASE_US * 1000 / PACE_NS / 2);
    assert_int_equal(flash.waits, 0);
    assert_true(reset_subsystem());
    bed_power_cycle(&bed);
    bed_connect(&bed, 0, 1, 32);
    assert_string_equal(bed.drive->version, "new");
}

static void test_reads_go_on_while_the_end_of_a_trial_is_recorded(void **state)
{
    const struct updater *updater;
    uint32_t reads = 0;

    (void)state;
    download_file();
    assert_int_equal(commit_slot(2 | STORE_ACTIVATE),
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    assert_true(reset_subsystem());
    bed_power_cycle(&bed);
    bed_connect(&bed, 0, 1, 32);
    updater = &bed.drive->drive.firmware.updater;
    native_world_pass(&bed.world, UINT64_C(9900000000));
    assert_true(updater_is_on_trial(updater));
    slow_flash();
    while (updater_is_on_trial(updater)) {
        expect_short_read();
        reads++;
    }
    assert_true(reads >= (uint64_t)ERASE_US * 1000 / PACE_NS / 2);
    assert_int_equal(flash.waits, 0);
}

/* ---- A drive with NAND flash, with writes that are not on flash. */

static int setup_nand(void **state)
{
    const struct bed like = {
        .mtu_bytes = 1500, .spi_flash = &flash, .has_nand = true};

    (void)setup_drive(state);
    bed_end(&bed);
    bed_init_like(&bed, &like);
    bed_connect(&bed, 0, 1, 32);
    return bed_flush(&bed, 1);
}

/* Two bits of a word in the write buffer change. */
static void lose_word(uint64_t lba, uint32_t block)
{
    const struct nand_medium *nand = &bed.drive->drive.nand;
    uint32_t entry = nand->ftl->map[lba / UNIT_BLOCKS];
    const uint8_t *data;

    assert_true(ftl_is_in_slot(entry));
    data = ftl_slot_data(&nand->ftl->buffer, (uint16_t)entry);
    assert_true(hw_ecc_inject(
        &bed.drive->machine.ecc,
        (uintptr_t)data + nand->seam.moves.addr_offset + block * BED_BLOCK, 3));
}

/* ---- Shares of the writes to flash outlive the restart. */

/* The state of the slots was written so often that only some writes are left.
 */
static void use_up_records(uint32_t left)
{
    struct slot_record record = {.chosen = 1, .previous = 2};
    uint32_t sequence = 16384 - left - 1;

    bed_power_off(&bed);
    assert_true(slot_record_write(&flash.flash, &record, &sequence));
    bed_power_on(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 32);
}

/* Activate the other slot's image.  @return false when the drive spares its
 * flash */
static bool activate_other(void)
{
    uint8_t running = read_slots() & 7;
    uint16_t status = commit_slot((uint32_t)(3 - running) | ACTIVATE);

    if (status == NVME_SC_COMMAND_INTERRUPTED) {
        return false;
    }
    assert_int_equal(status, NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    return true;
}

static void restart_drive(void)
{
    assert_true(reset_subsystem());
    bed_power_cycle(&bed);
    bed_connect(&bed, 0, 1, 32);
}

/* A host activates and resets until it has used up its share.  The reset does
 * not give it a new one. */
static void test_a_subsystem_reset_does_not_fill_shares_again(void **state)
{
    unsigned int activations = 0;

    (void)state;
    use_up_records(40);
    while (activate_other()) {
        activations++;
        restart_drive();
    }
    /* An activation costs 3 records (the choice, an attempt, the end of the
     * trial), and one back to the proven image costs 1: 4 for two of them. The
     * host may have half of the records that were left. */
    assert_in_range(activations, 8, 12);
    assert_true(bed.drive->drive.firmware.updater.slots.sequence < 16384 - 15);
}

/* The drive writes the buffer to flash before it restarts.  From then on, the
 * block with the lost word cannot be read, and all other blocks are good. */
WITH_FIXTURE(setup_nand, teardown_drive)
static void test_a_word_that_is_lost_before_the_restart_is_never_good(
    void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 80, 8, HOST_DATA_KEYED, false, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 160, 8, HOST_DATA_KEYED, false, 2), 0);
    lose_word(80, 3);
    download_file();
    assert_int_equal(commit_slot(2 | STORE_ACTIVATE),
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    assert_true(reset_subsystem());
    bed_reset(&bed);
    bed_connect(&bed, 0, 1, 32);
    assert_string_equal(bed.drive->version, "new");
    for (unsigned int i = 0; i < 2; i++) {
        bed_expect(&bed, 1, 160, 8, HOST_DATA_KEYED, 2);
        bed_expect(&bed, 1, 80, 3, HOST_DATA_KEYED, 1);
        bed_expect(&bed, 1, 84, 4, HOST_DATA_KEYED, 1);
        assert_int_equal(bed_read(&bed, 1, 83, 1, HOST_DATA_KEYED) &
                             NVME_SC_MASK,
                         NVME_SC_READ_ERROR);
        bed_power_cycle(&bed);
        host_vanish(&bed.host->host);
        bed_connect(&bed, 0, 1, 32);
    }
}
