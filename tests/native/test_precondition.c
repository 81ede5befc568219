/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive whose array `essd-nand age --fill` has filled and overwritten while
 * it was off: it mounts the array with its checkpoint, hosts read the pattern
 * of tools/nand/fill.h, and garbage collection goes on where it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bed_fixture.h"

#include "firmware/store/area.h"
#include "firmware/store/flash_layout.h"
#include "firmware/store/identity.h"
#include "lib/bytes.h"
#include "lib/crc32.h"
#include "lib/random.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"
#include "tools/nand/fill.h"

enum {
    UNIT_BLOCKS = FTL_UNIT_DATA / BED_BLOCK,
    DRIVE_WRITES = 3,
    FILL = 80,
    DIES = 4,
    SUPERBLOCKS = 60,
    OUTPUT = 256,
};

/* The last die of each stripe holds parity. */
static const struct bed parity_bed = {
    .mtu_bytes = 1500,
    .has_nand = true,
    .nand_dies = DIES / 2,
    .nand_blocks = SUPERBLOCKS,
};

static const struct bed plp_bed = {
    .mtu_bytes = 1500,
    .has_nand = true,
    .nand_dies = DIES / 2,
    .nand_blocks = SUPERBLOCKS,
    .has_capacitors = true,
    .capacity_bytes = 16 << 20,
};

/* The files that essd-nand works on. */
struct files {
    char folder[32];
    char array[64];
    char flash[64];
};

static void make_folder(struct files *files)
{
    snprintf(files->folder, sizeof(files->folder), "/tmp/essd-XXXXXX");
    assert_non_null(mkdtemp(files->folder));
    snprintf(files->array, sizeof(files->array), "%s/nand.img", files->folder);
    snprintf(files->flash, sizeof(files->flash), "%s/flash.img", files->folder);
}

static void delete_folder(const struct files *files)
{
    unlink(files->array);
    unlink(files->flash);
    assert_int_equal(rmdir(files->folder), 0);
}

static void save_bytes(const char *path, const void *bytes, size_t len,
                       size_t file_len)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate(path, (off_t)file_len), 0);
}

/* Add the table of namespaces, as the first copy of its area. */
static void save_namespaces(const char *path)
{
    const struct native_namespaces *table = &bed.namespaces;
    uint8_t header[AREA_HEADER_LEN] = {0};
    FILE *file = fopen(path, "r+b");

    put_le32(header, 1);
    put_le32(header + 4, (uint32_t)table->len);
    put_le32(header + 8, crc32_update(0, table->record, table->len));
    put_le32(header + 20, crc32_update(0, header, 20));
    memcpy(header + 24, "ESSD-NS1", 8);
    assert_non_null(file);
    assert_int_equal(fseek(file, FLASH_NAMESPACES_ADDR, SEEK_SET), 0);
    assert_int_equal(fwrite(header, 1, sizeof(header), file), sizeof(header));
    assert_int_equal(fwrite(table->record, 1, table->len, file), table->len);
    assert_int_equal(fclose(file), 0);
}

/* The drive's SPI flash, of which only the identity, and the table of
 * namespaces if there is one, are there. */
static void save_flash(const char *path, uint64_t capacity_bytes)
{
    const struct identity identity = {
        .serial = "1",
        .model = "1",
        .subsystem_nqn = "nqn.2014-08.org.nvmexpress:1",
        .capacity_bytes = capacity_bytes,
    };
    uint8_t buf[IDENTITY_LEN];

    identity_emit(&identity, buf);
    save_bytes(path, buf, sizeof(buf), SOC_FLASH_SIZE);
    if (bed.namespaces.writes != 0) {
        save_namespaces(path);
    }
}

static void load_array(const char *path)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fread(bed.nand.bytes, 1, bed.nand.size_bytes, file),
                     bed.nand.size_bytes);
    assert_int_equal(fclose(file), 0);
}

/*
 * Fill and overwrite the array while the drive is off.
 * @return how many units were programmed for each unit that was written
 */
static double precondition_array(void)
{
    static const char before[] = "without parity: ";
    char command[OUTPUT], output[OUTPUT];
    const char *found;
    FILE *program;
    struct files files;

    bed_power_off(&bed);
    make_folder(&files);
    save_flash(files.flash, bed.capacity_bytes);
    save_bytes(files.array, bed.nand.bytes, bed.nand.size_bytes,
               bed.nand.size_bytes);
    snprintf(command, sizeof(command),
             "'%s' age %s --flash %s --fill %u --drive-writes %u%s",
             ESSD_NAND_PROGRAM, files.array, files.flash, FILL, DRIVE_WRITES,
             bed.has_capacitors ? " --plp" : "");
    program = popen(command, "r");
    assert_non_null(program);
    assert_non_null(fgets(output, sizeof(output), program));
    assert_int_equal(pclose(program), 0);
    found = strstr(output, before);
    assert_non_null(found);
    load_array(files.array);
    delete_folder(&files);
    bed_power_on(&bed);
    return strtod(found + strlen(before), NULL);
}

static uint32_t namespace_units(void)
{
    return (uint32_t)(bed.drive->drive.medium.size_blocks / UNIT_BLOCKS);
}

static void run_unit(uint8_t opcode, uint32_t unit)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = opcode,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = (uint64_t)unit * UNIT_BLOCKS,
        .blocks = UNIT_BLOCKS,
        .len_bytes = FTL_UNIT_DATA,
    };

    assert_int_equal(host_io(&bed.host->host, &io), 0);
}

/* @return the number of the write that has written the unit */
static uint32_t expect_pattern(uint32_t unit)
{
    const uint8_t *data = bed.host->data;

    memset(bed.host->data, 0xa5, FTL_UNIT_DATA);
    run_unit(NVM_READ, unit);
    assert_int_equal(get_le64(data + FILL_PATTERN_UNIT), unit);
    assert_int_equal(get_le32(data + FILL_PATTERN_NSID), BED_NSID);
    assert_memory_equal(data, data + FILL_PATTERN_LEN,
                        FTL_UNIT_DATA - FILL_PATTERN_LEN);
    return get_le32(data + FILL_PATTERN_WRITE);
}

/* Every unit holds the last write to it; the seed decides which one that is. */
static void expect_contents(void)
{
    uint32_t units = namespace_units(), filled = units * FILL / 100;
    uint32_t *last = calloc(filled, sizeof(*last));
    uint64_t random = 1;

    assert_non_null(last);
    for (uint32_t i = 0; i < units * DRIVE_WRITES; i++) {
        last[random_next(&random) % filled] = i + 1;
    }
    for (uint32_t i = 0; i < filled; i++) {
        assert_int_equal(expect_pattern(i), last[i]);
    }
    free(last);
    run_unit(NVM_READ, filled);
    assert_true(bed.host->data[0] == 0);
}

/* A mount reads the first wordline of each block, and its checkpoint. */
static void expect_checkpoint(void)
{
    const struct ftl_counters *counters =
        ftl_counters(bed.drive->drive.nand.ftl);

    assert_true(counters->scanned_rows <= DIES * (SUPERBLOCKS + 8));
}

/* SMART counts the erasures of the preconditioning, too. */
static void expect_wear(void)
{
    struct drive *drive = &bed.drive->drive;
    struct ftl_erase_counts erased;
    struct nvmf_health health;

    ftl_erase_counts(drive->nand.ftl, &erased);
    assert_true(erased.average != 0);
    drive->nand.endurance = erased.average * 2;
    nand_health_fill(&drive->nand_health, &health);
    assert_int_equal(health.percentage_used, 50);
}

/* @return how many units are programmed for each unit of further writes */
static double overwrite_units(void)
{
    const struct ftl_counters *counters =
        ftl_counters(bed.drive->drive.nand.ftl);
    uint32_t units = namespace_units(), filled = units * FILL / 100;
    uint64_t random = 2;

    for (uint32_t i = 0; i < units; i++) {
        run_unit(NVM_WRITE, (uint32_t)(random_next(&random) % filled));
    }
    return (double)counters->units /
           (double)(counters->units - counters->moved_units);
}

static void check_drive(const struct bed *like)
{
    double expected, found;

    bed_init_like(&bed, like);
    bed_connect(&bed, 0, 1, 64);
    expected = precondition_array();
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    expect_checkpoint();
    expect_contents();
    found = overwrite_units();
    if (found < expected * 0.9 || found > expected * 1.1) {
        fail_msg("%.2f units are programmed for each, not %.2f", found,
                 expected);
    }
}

static void test_a_preconditioned_drive_goes_on_in_the_steady_state(
    void **state)
{
    (void)state;
    check_drive(&parity_bed);
    expect_wear();
}

static void test_a_drive_with_capacitors_and_a_capacity_is_preconditioned(
    void **state)
{
    (void)state;
    check_drive(&plp_bed);
}

/* ---- Blocks with metadata. */

enum { META = 8, EXTENDED = 1 << 4, TYPE_1 = 1 << 5, CHECKS = 7 << 26 };

static const struct bed metadata_bed = {
    .mtu_bytes = 1500,
    .has_nand = true,
    .nand_dies = DIES / 2,
    .nand_blocks = SUPERBLOCKS,
    .keeps_namespaces = true,
};

static void expect_metadata(uint64_t lba, uint32_t bytes, uint8_t byte)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = NVM_READ,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = lba,
        .blocks = 1,
        .len_bytes = bytes + META,
        .ref_tag = (uint32_t)lba,
        .flags = CHECKS,
    };

    memset(bed.host->data, 0xa5, bytes + META);
    assert_int_equal(host_io(&bed.host->host, &io), 0);
    for (unsigned int i = 0; i < META; i++) {
        assert_int_equal(bed.host->data[bytes + i], byte);
    }
}

/* @param format  index of an LBA format */
static void check_metadata(uint32_t format, uint32_t bytes)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_FORMAT_NVM,
                                 .nsid = BED_NSID,
                                 .cdw10 = format | EXTENDED | TYPE_1};
    uint32_t units, blocks = FTL_UNIT_DATA / bytes;

    bed_init_like(&bed, &metadata_bed);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(host_command(&bed.host->host, 0, &sqe, NULL, 0), 0);
    units = namespace_units();
    (void)precondition_array();
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    for (uint32_t unit = 0; unit < units; unit += 100) {
        for (uint32_t i = 0; i < blocks; i++) {
            expect_metadata((uint64_t)unit * blocks + i, bytes, 0xff);
            assert_int_equal(get_le64(bed.host->data),
                             unit < units * FILL / 100 ? unit : 0);
        }
    }
    bed_end(&bed);
}

WITH_FIXTURE(NULL, NULL)
static void test_the_metadata_of_a_preconditioned_drive_is_not_checked(
    void **state)
{
    (void)state;
    check_metadata(2, 512);
    check_metadata(3, 4096);
}

TEST_FIXTURE(NULL, teardown)
