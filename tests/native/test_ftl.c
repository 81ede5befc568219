/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation layer on the NAND controller, through its driver: what was
 * written is there, also after power cycles.
 */
#include <stdlib.h>
#include <string.h>

#include "firmware/medium/nand_seam.h"
#include "lib/bytes.h"
#include "lib/random.h"
#include "tests/native/nand_bed.h"

enum {
    REQUESTS = 32,
    UNITS = 400,
    IO_BYTES = 8 * FTL_UNIT_DATA,
    WAIT_NS = 2000000000,
};

struct drive {
    struct nand_bed nand;
    struct nand_seam seam;
    struct ftl *ftl;
    uint8_t *buffer; /* in DRAM */
    uint8_t *bad_planes;
    struct media_owner owner; /* of all operations */
    unsigned int done;
    enum media_status status;
    uint32_t version[UNITS];
};

static void end_io(struct media_owner *owner, enum media_status status)
{
    struct drive *drive = container_of(owner, struct drive, owner);

    drive->done++;
    drive->status = status;
}

static bool has_completion(void *ctx)
{
    struct drive *drive = ctx;

    return drive->nand.num_done != 0;
}

/*
 * Step translation layer and controller until `done` operations have ended, or
 * if it is 0, until the mount has.
 */
static void run_until(struct drive *drive, unsigned int done)
{
    for (unsigned int i = 0; i < 100000; i++) {
        uint64_t deadline_us = UINT64_MAX;

        while (ftl_step(drive->ftl, i, &deadline_us)) {
        }
        if (done != 0 ? drive->done >= done
                      : ftl_state(drive->ftl) != FTL_MOUNTING) {
            return;
        }
        nand_kick(&drive->nand.nand);
        assert_true(native_world_run(&drive->nand.world, has_completion, drive,
                                     WAIT_NS));
        for (unsigned int j = 0; j < drive->nand.num_done; j++) {
            nand_seam_done(&drive->seam, &drive->nand.done[j]);
        }
        drive->nand.num_done = 0;
    }
    fail_msg("The translation layer does not get on.");
}

/* Read which blocks the factory has marked as bad. */
static void read_marks(struct drive *drive)
{
    const struct nand_info *info = &drive->nand.info;
    uint8_t *marks = drive->nand.slots[0].data;

    for (unsigned int die = 0; die < info->channels * info->dies; die++) {
        for (unsigned int plane = 0; plane < info->planes; plane++) {
            const struct nand_command command = {
                .opcode = NAND_CMD_MARKS,
                .channel = (uint8_t)(die / info->dies),
                .die = (uint8_t)(die % info->dies),
                .planes = (uint8_t)BIT(plane),
                .list = marks,
            };

            assert_true(nand_submit(&drive->nand.nand, &command));
            assert_int_equal(nand_bed_wait_one(&drive->nand)->status,
                             NAND_CQE_OK);
            for (unsigned int block = 0; block < info->blocks; block++) {
                if (marks[block] != 0) {
                    drive->bad_planes[block * info->channels * info->dies +
                                      die] |= (uint8_t)BIT(plane);
                }
            }
        }
    }
    drive->nand.num_done = 0;
}

/* The power has come on: mount. */
static void start_drive(struct drive *drive)
{
    struct dram *dram = &drive->nand.machine.dram;
    const struct nand_info *info = &drive->nand.info;
    struct ftl_config config = {
        .geometry = nand_seam_geometry(info),
        .logical_units = UNITS,
        .buffer_units = 128,
        .num_ops = 8,
        .num_requests = REQUESTS,
        .idle_us = 1000,
        .wear_spread = 16,
    };

    drive->done = 0;
    drive->owner.done = end_io;
    drive->buffer = dram_alloc(dram, IO_BYTES, 64);
    drive->bad_planes =
        dram_alloc(dram, (size_t)info->blocks * config.geometry.dies, 64);
    assert_non_null(drive->bad_planes);
    read_marks(drive);
    assert_true(
        nand_seam_init(&drive->seam, &drive->nand.nand, info, dram, &config));
    config.flash = nand_seam_flash(&drive->seam);
    config.bad_planes = drive->bad_planes;
    config.memory = dram_reserve(dram, ftl_bytes(&config), 64);
    config.keep = dram_reserve(dram, ftl_keep_bytes(&config), 64);
    assert_non_null(config.memory);
    assert_non_null(config.keep);
    drive->ftl = ftl_start(&config);
    assert_non_null(drive->ftl);
    drive->seam.ftl = drive->ftl;
    run_until(drive, 0);
    assert_int_equal(ftl_state(drive->ftl), FTL_READY);
}

static void run_io(struct drive *drive, enum media_op op, uint32_t unit)
{
    const struct nvmf_piece piece = {.ptr = drive->buffer,
                                     .len_bytes = FTL_UNIT_DATA};
    const struct media_io io = {
        .op = op,
        .piece_count = 1,
        .pieces = &piece,
        .first_lba = (uint64_t)unit * 8,
        .count_blocks = op == MEDIA_FLUSH ? 0 : 8,
        .owner = &drive->owner,
    };

    assert_true(ftl_submit(drive->ftl, &io));
    run_until(drive, drive->done + 1);
    assert_int_equal(drive->status, MEDIA_OK);
}

static void write_unit(struct drive *drive, uint32_t unit)
{
    uint32_t version = ++drive->version[unit];

    for (uint32_t i = 0; i < FTL_UNIT_DATA; i += 8) {
        put_le64(drive->buffer + i,
                 random_mix((uint64_t)version << 32 | unit << 12 | i));
    }
    run_io(drive, MEDIA_WRITE, unit);
}

static void check_units(struct drive *drive)
{
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        uint32_t version = drive->version[unit];

        memset(drive->buffer, 0xa5, FTL_UNIT_DATA);
        run_io(drive, MEDIA_READ, unit);
        for (uint32_t i = 0; i < FTL_UNIT_DATA; i += 8) {
            assert_int_equal(get_le64(drive->buffer + i),
                             version == 0 ? 0
                                          : random_mix((uint64_t)version << 32 |
                                                       unit << 12 | i));
        }
    }
}

static void use_drive(bool is_realtime)
{
    struct drive *drive = calloc(1, sizeof(*drive));
    uint64_t random = 1;

    assert_non_null(drive);
    nand_bed_init(&drive->nand,
                  &(struct nand_bed_config){.profile = "tlc2021",
                                            .channels = 2,
                                            .dies = 1,
                                            .blocks = 12,
                                            .wordlines = 4,
                                            .is_realtime = is_realtime});
    start_drive(drive);
    for (unsigned int cycle = 0; cycle < 3; cycle++) {
        for (unsigned int i = 0; i < 1000; i++) {
            write_unit(drive, (uint32_t)(random_next(&random) % UNITS));
        }
        run_io(drive, MEDIA_FLUSH, 0);
        check_units(drive);
        nand_bed_power_cycle(&drive->nand, cycle);
        start_drive(drive);
        check_units(drive);
    }
    nand_bed_end(&drive->nand);
    free(drive);
}

static void test_data_is_there_after_power_cycles(void **state)
{
    (void)state;
    use_drive(false);
}

static void test_the_same_with_the_times_of_the_flash(void **state)
{
    (void)state;
    use_drive(true);
}
