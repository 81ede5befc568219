/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write Uncorrectable on a drive with a NAND array: which commands fail, what
 * makes blocks readable again, what logs and counters say, and power cuts.
 */
#include "protection_bed.h"

#include "nvmeof/wire/lba_status.h"
#include "tests/test_fixture.h"

/* Blocks that must not be readable. */
static bool marked[BLOCKS];

static uint32_t flags_of_read(void)
{
    return type != 0 ? CHECK_GUARD | (type == 3 ? 0 : CHECK_REF) : 0;
}

static uint16_t mark_blocks(uint32_t first, uint32_t count)
{
    const struct nvme_sqe sqe = {
        .opcode = NVM_WRITE_UNCORRECTABLE,
        .nsid = 1,
        .cdw10 = first,
        .cdw12 = count - 1,
    };

    return send_command(1, &sqe);
}

static void set_marks(uint32_t first, uint32_t count)
{
    assert_int_equal(mark_blocks(first, count), 0);
    memset(marked + first, true, count);
}

static void clear_marks(uint32_t first, uint32_t count)
{
    memset(marked + first, false, count);
}

static void write_again(uint32_t first, uint32_t count, uint32_t version)
{
    write_blocks(first, count, version, PRACT, 0x1111);
    clear_marks(first, count);
}

static bool has_marked(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        if (marked[i]) {
            return true;
        }
    }
    return false;
}

/* Read blocks together. */
static void expect_range(uint32_t first, uint32_t count)
{
    memset(area, 0xa5, (size_t)count * block_stride());
    if (has_marked(first, count)) {
        assert_int_equal(run_io(NVM_READ, first, count, flags_of_read(), 0),
                         NVME_SC_READ_ERROR);
        return;
    }
    assert_int_equal(run_io(NVM_READ, first, count, flags_of_read(), 0), 0);
    expect_area(first, count, block_stride());
}

static void expect_all(void)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        expect_range(i, 1);
    }
    expect_range(0, 16);
    expect_range(3, 21);
    expect_range(40, 40);
}

static void begin_with(uint32_t bytes, unsigned int pi_type)
{
    format_with(bytes, pi_type);
    clear_marks(0, BLOCKS);
    write_again(0, BLOCKS / 2, 1);
    write_again(BLOCKS / 2, BLOCKS / 2, 2);
}

/* Formats with metadata of 512 and 4096 bytes. */
static void with_formats(void (*check)(void))
{
    for (unsigned int i = 0; i < 4; i++) {
        begin_with(i % 2 == 0 ? 512 : 4096, i < 2 ? 1 : 3);
        check();
    }
}

static uint64_t media_errors(void)
{
    uint8_t page[LOG_SMART_LEN];

    assert_int_equal(
        host_get_log(&bed.host->host, LOG_SMART, 0, page, sizeof(page)), 0);
    return get_le64(page + SMART_MEDIA_ERRORS);
}

/* ---- Reads and writes. */

static void check_marks(void)
{
    set_marks(5, 1); /* in the buffer */
    set_marks(19, 3);
    expect_all();
    flush_drive();
    expect_all();
    set_marks(24, 9); /* on flash: a whole unit and a part of one */
    set_marks(41, 2);
    expect_all();
    flush_drive();
    expect_all();
    write_again(20, 1, 3);
    write_again(26, 3, 4);
    expect_all();
    flush_drive();
    expect_all();
    write_again(0, 24, 5);
    expect_all();
}

WITH_FIXTURE(setup_nand, teardown)
static void test_marked_blocks_cannot_be_read_until_they_are_written(
    void **state)
{
    (void)state;
    with_formats(check_marks);
}

/* Reads of namespaces without metadata take another path in the firmware. */
static void check_plain(uint32_t lbaf)
{
    uint32_t bytes = lbaf == 0 ? 512 : 4096;

    assert_int_equal(send_format(lbaf | ERASE_USER_DATA), 0);
    for (unsigned int pass = 0; pass < 2; pass++) {
        struct host_io io = {.qid = 1,
                             .opcode = NVM_WRITE,
                             .kind = HOST_DATA_KEYED,
                             .nsid = 1,
                             .blocks = 64,
                             .len_bytes = 64 * bytes};

        memset(area, 0x5a, io.len_bytes);
        assert_int_equal(host_io(&bed.host->host, &io), 0);
        if (pass == 1) {
            flush_drive();
        }
        assert_int_equal(mark_blocks(11, 2), 0);
        if (pass == 1) {
            flush_drive();
        }
        io.opcode = NVM_READ;
        assert_int_equal(host_io(&bed.host->host, &io) & NVME_SC_MASK,
                         NVME_SC_READ_ERROR);
        io.blocks = 1;
        io.len_bytes = bytes;
        for (io.lba = 8; io.lba < 16; io.lba++) {
            uint16_t expected =
                io.lba == 11 || io.lba == 12 ? NVME_SC_READ_ERROR : 0;

            area[0] = area[bytes - 1] = 0;
            assert_int_equal(host_io(&bed.host->host, &io) & NVME_SC_MASK,
                             expected);
            assert_int_equal(area[0], expected == 0 ? 0x5a : 0);
            assert_int_equal(area[bytes - 1], expected == 0 ? 0x5a : 0);
        }
    }
}

WITH_FIXTURE(setup_nand, teardown)
static void test_blocks_without_metadata_have_marks_too(void **state)
{
    (void)state;
    check_plain(0);
    check_plain(1);
}

/* ---- Other commands. */

static uint16_t copy_blocks(uint32_t from, uint32_t count, uint32_t to)
{
    enum { READ_PRACT = 1 << 15 };
    const struct nvme_sqe sqe = {.opcode = NVM_COPY,
                                 .nsid = 1,
                                 .cdw10 = to,
                                 .cdw12 = READ_PRACT | PRACT,
                                 .cdw14 = to,
                                 .cdw15 = 0x1111};
    uint8_t range[32] = {0};

    put_le64(range + 8, from);
    put_le16(range + 16, (uint16_t)(count - 1));
    return host_command(&bed.host->host, 1, &sqe, range, sizeof(range)) &
           NVME_SC_MASK;
}

static uint16_t deallocate_blocks(uint32_t first, uint32_t count)
{
    const struct nvme_sqe sqe = {
        .opcode = NVM_DATASET_MANAGEMENT, .nsid = 1, .cdw11 = 4};
    uint8_t range[16] = {0};

    put_le32(range + 4, count);
    put_le64(range + 8, first);
    return host_command(&bed.host->host, 1, &sqe, range, sizeof(range)) &
           NVME_SC_MASK;
}

static void check_commands(void)
{
    set_marks(12, 3);
    assert_int_equal(run_io(NVM_VERIFY, 8, 8, 0, 0), NVME_SC_READ_ERROR);
    assert_int_equal(run_io(NVM_VERIFY, 0, 12, 0, 0), 0);
    put_area(8, 8, block_stride());
    assert_int_equal(run_io(NVM_COMPARE, 8, 8, 0, 0), NVME_SC_READ_ERROR);
    put_area(8, 4, block_stride());
    assert_int_equal(run_io(NVM_COMPARE, 8, 4, 0, 0), 0);
    assert_int_equal(copy_blocks(8, 8, 60), NVME_SC_READ_ERROR);
    expect_all();
    /* The destination of a Copy may be marked. */
    set_marks(64, 4);
    assert_int_equal(copy_blocks(0, 8, 62), 0);
    for (uint32_t i = 0; i < 8; i++) {
        memcpy(model[62 + i], model[i], block_bytes);
        put_pi(model[62 + i], 0x1111, type == 3 ? 62 : 62 + i);
    }
    clear_marks(62, 8);
    expect_all();
    /* Blocks that are zeroed or deallocated can be read. */
    set_marks(30, 8);
    assert_int_equal(run_io(NVM_WRITE_ZEROES, 31, 2, DEAC, 0), 0);
    forget_blocks(31, 2);
    clear_marks(31, 2);
    assert_int_equal(deallocate_blocks(34, 2), 0);
    forget_blocks(34, 2);
    clear_marks(34, 2);
    assert_int_equal(run_io(NVM_WRITE_ZEROES, 36, 1, PRACT, 0x1111), 0);
    memset(model[36], 0, block_bytes);
    put_pi(model[36], 0x1111, 36);
    clear_marks(36, 1);
    expect_all();
    flush_drive();
    expect_all();
}

WITH_FIXTURE(setup_nand, teardown)
static void test_all_reading_commands_fail_and_all_writes_repair(void **state)
{
    (void)state;
    with_formats(check_commands);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_format_clears_marks(void **state)
{
    (void)state;
    begin_with(512, 1);
    set_marks(0, BLOCKS);
    flush_drive();
    format_with(512, 1);
    clear_marks(0, BLOCKS);
    expect_all();
}

WITH_FIXTURE(setup_nand, teardown)
static void test_sanitize_clears_marks(void **state)
{
    enum { BLOCK_ERASE = 2 };
    const struct nvme_sqe sqe = {.opcode = ADMIN_SANITIZE,
                                 .cdw10 = BLOCK_ERASE};
    uint8_t page[LOG_SANITIZE_LEN];

    (void)state;
    begin_with(4096, 2);
    set_marks(0, BLOCKS);
    flush_drive();
    assert_int_equal(send_command(0, &sqe), 0);
    do {
        native_world_pass(&bed.world, UINT64_C(1000000000));
        assert_int_equal(
            host_get_log(&bed.host->host, LOG_SANITIZE, 0, page, sizeof(page)),
            0);
    } while (get_le16(page + SANITIZE_PROGRESS) != 0xffff);
    forget_blocks(0, BLOCKS);
    clear_marks(0, BLOCKS);
    expect_all();
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_mark_beyond_the_end_is_refused(void **state)
{
    const struct nvme_sqe sqe = {.opcode = NVM_WRITE_UNCORRECTABLE,
                                 .nsid = 1,
                                 .cdw10 = UINT32_MAX,
                                 .cdw11 = 1};

    (void)state;
    begin_with(512, 1);
    assert_int_equal(send_command(1, &sqe), NVME_SC_LBA_RANGE);
    expect_all();
}

/* ---- Logs, counters and self-tests. */

/* The descriptors that Get LBA Status returns for the model's blocks. */
static uint32_t lba_status(uint32_t action, uint8_t *list, uint32_t len)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_GET_LBA_STATUS,
                                 .nsid = 1,
                                 .cdw12 = len / 4 - 1,
                                 .cdw13 = action << LBA_STATUS_ATYPE | BLOCKS};

    assert_int_equal(host_command(&bed.host->host, 0, &sqe, list, len), 0);
    return get_le32(list + LBA_STATUS_NLSD);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_marks_are_no_errors_of_the_medium(void **state)
{
    uint8_t list[256];
    const uint8_t *first = list + LBA_STATUS_HEADER_LEN;

    (void)state;
    begin_with(512, 1);
    set_marks(17, 3);
    flush_drive();
    expect_all();
    assert_int_equal(lba_status(LBA_ACTION_SCAN, list, sizeof(list)), 1);
    assert_int_equal(get_le64(first + LBA_DESCRIPTOR_DSLBA), 17);
    assert_int_equal(get_le32(first + LBA_DESCRIPTOR_NLB), 2);
    assert_int_equal(first[LBA_DESCRIPTOR_STATUS], LBA_UNREADABLE);
    /* The drive tracks errors that it has found itself. */
    assert_int_equal(lba_status(LBA_ACTION_TRACKED, list, sizeof(list)), 0);
    assert_int_equal(media_errors(), 0);
    assert_int_equal(run_io(NVM_READ, 17, 1, 0, 0), NVME_SC_READ_ERROR);
    assert_int_equal(logged_lba(), 17);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_self_test_passes_marked_blocks(void **state)
{
    enum { EXTENDED_TEST = 2, PASSED = EXTENDED_TEST << 4 };
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_DEVICE_SELF_TEST, .nsid = 1, .cdw10 = EXTENDED_TEST};
    uint8_t page[LOG_SELF_TEST_LEN];

    (void)state;
    begin_with(4096, 2);
    set_marks(0, BLOCKS);
    flush_drive();
    assert_int_equal(send_command(0, &sqe), 0);
    do {
        native_world_pass(&bed.world, UINT64_C(1000000000));
        assert_int_equal(
            host_get_log(&bed.host->host, LOG_SELF_TEST, 0, page, sizeof(page)),
            0);
    } while (page[0] != 0);
    assert_int_equal(page[4], PASSED);
}

/* ---- Power cuts. */

WITH_FIXTURE(setup_nand, teardown)
static void test_marks_survive_power_cuts(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        begin_with(i == 0 ? 512 : 4096, 1);
        set_marks(3, 2);
        set_marks(40, 20);
        flush_drive();
        cut_power();
        expect_all();
        write_again(41, 3, 7);
        flush_drive();
        cut_power();
        expect_all();
    }
}

/* As after a shutdown: the mount reads the map from a checkpoint. */
WITH_FIXTURE(setup_nand, teardown)
static void test_marks_survive_an_orderly_power_off(void **state)
{
    (void)state;
    begin_with(512, 2);
    set_marks(3, 2);
    set_marks(40, 20);
    for (unsigned int i = 0; i < 2; i++) {
        drive_stop(&bed.drive->drive);
        cut_power();
        expect_all();
    }
}

/* Random commands; each power cut comes after a flush. */
WITH_FIXTURE(setup_nand, teardown)
static void test_random_marks_match_a_model(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        uint64_t random = seed;

        begin_with(seed % 2 == 0 ? 512 : 4096, 1 + seed % 3);
        for (uint32_t i = 0; i < 300; i++) {
            uint32_t first = (uint32_t)(random_next(&random) % BLOCKS);
            uint32_t most = MIN(BLOCKS - first, 24u);
            uint32_t count = 1 + (uint32_t)(random_next(&random) % most);

            switch (random_next(&random) % 8) {
            case 0:
            case 1:
                write_again(first, count, i);
                break;
            case 2:
            case 3:
                set_marks(first, count);
                break;
            case 4:
                assert_int_equal(deallocate_blocks(first, count), 0);
                forget_blocks(first, count);
                clear_marks(first, count);
                break;
            case 5:
                native_world_pass(&bed.world, random_next(&random) % 200 *
                                                  UINT64_C(1000000));
                break;
            case 6:
                if (random_next(&random) % 8 == 0) {
                    flush_drive();
                    cut_power();
                }
                break;
            default:
                expect_range(first, count);
                break;
            }
        }
        expect_all();
    }
}
