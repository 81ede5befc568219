/* SPDX-License-Identifier: BSD-2-Clause */
/* Firmware updates at the target: which controller's pieces make an image, and
 * what happens to the image when hosts connect and disconnect. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "nvmeof/target/target.h"
#include "nvmeof/wire/log.h"
#include "tests/test_fixture.h"

enum {
    UNIT = NVMF_FIRMWARE_UNIT,
    STORE = 0 << 3, /* actions in dword 10 of Firmware Commit */
    STORE_ACTIVATE = 1 << 3,
    ACTIVATE = 2 << 3,
    BLOCK_ERASE = 2,
    MUD = 1,
    IDLE_US = 60 * 1000 * 1000,
};

static struct {
    uint8_t *image;
    struct nvmf_firmware_commit commit;
    unsigned int commits;
    bool is_spared; /* commits are refused to spare the flash */
    uint8_t next;
} drive;

static bool begin_commit(void *ctx, const struct nvmf_firmware_commit *commit)
{
    (void)ctx;
    if (drive.is_spared) {
        return false;
    }
    drive.commit = *commit;
    drive.commits++;
    return true;
}

static void describe_slots(void *ctx, struct nvmf_firmware_now *now)
{
    (void)ctx;
    *now = (struct nvmf_firmware_now){.active = 1, .next = drive.next};
}

static enum nvmf_volume_result start_sanitize(void *ctx,
                                              const struct nvmf_sanitize *job)
{
    (void)ctx;
    (void)job;
    fail_msg("a sanitize operation has begun");
    return NVMF_VOLUME_FAILED;
}

static void sanitize_now(void *ctx, struct nvmf_sanitize_now *now)
{
    (void)ctx;
    *now = (struct nvmf_sanitize_now){0};
}

static int setup(void **state)
{
    struct fake *fake = fake_new();

    memset(&drive, 0, sizeof(drive));
    drive.image = malloc(NVMF_FIRMWARE_MAX);
    assert_non_null(drive.image);
    memset(drive.image, 0xa5, NVMF_FIRMWARE_MAX);
    fake->config.firmware = (struct nvmf_firmware){
        .image = drive.image,
        .commit = begin_commit,
        .describe = describe_slots,
    };
    fake->config.operations = (struct nvmf_operations){
        .start_sanitize = start_sanitize,
        .sanitize_now = sanitize_now,
    };
    fake_start(fake);
    *state = fake;
    return 0;
}

static int teardown(void **state)
{
    free(drive.image);
    return fake_teardown(state);
}

TEST_FIXTURE(setup, teardown)

/* A host of its own, with its own controller. */
static uint16_t another_host(struct fake *fake)
{
    fake->hostid++;
    return fake_host(fake, 0);
}

static struct fake_request *send_piece(struct fake *fake, uint16_t admin,
                                       uint32_t unit, uint32_t units,
                                       uint8_t value)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_FIRMWARE_DOWNLOAD, 0,
                                     units * UNIT / 4 - 1, unit * UNIT / 4);

    memset(fake->data, value, (size_t)units * UNIT);
    return fake_send(fake, admin, &sqe, fake->data, units * UNIT);
}

static uint16_t download_units(struct fake *fake, uint16_t admin, uint32_t unit,
                               uint32_t units, uint8_t value)
{
    struct fake_request *sent = send_piece(fake, admin, unit, units, value);

    fake_run(fake);
    assert_true(sent->is_answered);
    return sent->cqe.status & (uint16_t)~MORE;
}

static struct fake_request *send_commit(struct fake *fake, uint16_t admin,
                                        uint32_t cdw10)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_FIRMWARE_COMMIT, 0, cdw10, 0);
    struct fake_request *sent = fake_send(fake, admin, &sqe, NULL, 0);

    fake_run(fake);
    return sent;
}

static uint16_t refused_commit(struct fake *fake, uint16_t admin,
                               uint32_t cdw10)
{
    struct fake_request *sent = send_commit(fake, admin, cdw10);

    assert_true(sent->is_answered);
    return sent->cqe.status & (uint16_t)~MORE;
}

/* The commit in progress ends well. */
static void end_commit(struct fake *fake, struct fake_request *sent)
{
    assert_false(sent->is_answered);
    nvmf_firmware_committed(fake->target, &drive.commit, NVMF_FIRMWARE_OK);
    fake_run(fake);
    assert_true(sent->is_answered);
}

static void expect_units(uint32_t first, uint32_t count, uint8_t value)
{
    for (uint32_t i = first * UNIT; i < (first + count) * UNIT; i++) {
        assert_int_equal(drive.image[i], value);
    }
}

static void test_pieces_may_come_in_any_order(void **state)
{
    static const uint8_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    for (unsigned int i = 0; i < ARRAY_LEN(orders); i++) {
        for (unsigned int n = 0; n < 3; n++) {
            assert_int_equal(download_units(fake, admin, orders[i][n], 1,
                                            (uint8_t)(0x10 + orders[i][n])),
                             0);
        }
        end_commit(fake, send_commit(fake, admin, 2 | STORE));
        assert_int_equal(drive.commit.len_bytes, 3 * UNIT);
        for (uint8_t n = 0; n < 3; n++) {
            expect_units(n, 1, (uint8_t)(0x10 + n));
        }
    }
}

static void test_a_piece_that_overlaps_changes_nothing(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    assert_int_equal(download_units(fake, admin, 0, 2, 0x11), 0);
    assert_int_equal(download_units(fake, admin, 4, 2, 0x22), 0);
    for (uint32_t unit = 1; unit < 6; unit += unit == 1 ? 2 : 1) {
        assert_int_equal(download_units(fake, admin, unit, 2, 0x33),
                         NVME_SC_FIRMWARE_OVERLAP | DNR);
    }
    assert_int_equal(download_units(fake, admin, 2, 3, 0x33),
                     NVME_SC_FIRMWARE_OVERLAP | DNR);
    expect_units(0, 2, 0x11);
    expect_units(2, 2, 0xa5);
    expect_units(4, 2, 0x22);
    assert_int_equal(refused_commit(fake, admin, 2 | STORE),
                     NVME_SC_INVALID_FIRMWARE_IMAGE | DNR);
    assert_int_equal(download_units(fake, admin, 2, 2, 0x33), 0);
    end_commit(fake, send_commit(fake, admin, 2 | STORE));
    assert_int_equal(drive.commit.len_bytes, 6 * UNIT);
}

static void test_a_second_beginning_discards_the_first_image(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    assert_int_equal(download_units(fake, admin, 0, 2, 0x11), 0);
    assert_int_equal(download_units(fake, admin, 2, 2, 0x11), 0);
    assert_int_equal(download_units(fake, admin, 0, 1, 0x22), 0);
    end_commit(fake, send_commit(fake, admin, 2 | STORE));
    assert_int_equal(drive.commit.len_bytes, UNIT);
}

static void test_fields_of_a_piece_are_checked(void **state)
{
    static const struct {
        uint32_t cdw10, cdw11;
    } rows[] = {
        {UNIT / 4 - 2, 0}, /* length */
        {0, 0},
        {UNIT / 4 - 1, 1},                     /* offset */
        {UNIT / 4 - 1, NVMF_FIRMWARE_MAX / 4}, /* beyond the end */
        {UNIT / 2 - 1, NVMF_FIRMWARE_MAX / 4 - UNIT / 4},
        {UNIT / 4 - 1, 0xfffffc00u}, /* beyond 2^32 bytes */
        {UNIT / 4 - 1, 0x40000000u},
        {0xffffffffu, 0},
        {0x3fffffffu, 0x40000000u},
        {NVMF_MAX_TRANSFER / 4 + UNIT / 4 - 1, 0},
    };
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nvme_sqe sqe = fake_admin(ADMIN_FIRMWARE_DOWNLOAD, 0,
                                         rows[i].cdw10, rows[i].cdw11);

        assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, UNIT).status &
                             NVME_SC_MASK,
                         NVME_SC_INVALID_FIELD);
    }
    assert_int_equal(drive.image[0], 0xa5);
}

/* Let the first window of a piece arrive, and hold the others. */
static struct fake_request *begin_long_piece(struct fake *fake, uint16_t admin,
                                             uint32_t unit)
{
    struct fake_request *piece;

    fake->window_max = UNIT;
    fake->hold_fetch = true;
    piece = send_piece(fake, admin, unit, 3, 0x11);
    fake_run(fake);
    assert_int_equal(fake->fetch_count, 1);
    fake_run_fetch(fake);
    assert_false(piece->is_answered);
    return piece;
}

static void test_a_piece_that_has_not_arrived_is_a_gap(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *piece;

    assert_int_equal(download_units(fake, admin, 0, 1, 0x11), 0);
    piece = begin_long_piece(fake, admin, 1);
    assert_int_equal(refused_commit(fake, admin, 2 | STORE),
                     NVME_SC_INVALID_FIRMWARE_IMAGE | DNR);
    fake->hold_fetch = false;
    fake_run(fake);
    assert_int_equal(piece->cqe.status, 0);
    end_commit(fake, send_commit(fake, admin, 2 | STORE));
}

static void test_the_rest_of_a_discarded_piece_is_not_taken(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *old = begin_long_piece(fake, admin, 0);
    struct fake_request *new = send_piece(fake, admin, 0, 1, 0x22);

    fake->hold_fetch = false;
    fake_run(fake);
    assert_true(old->is_answered && new->is_answered);
    assert_int_equal(old->cqe.status & NVME_SC_MASK,
                     NVME_SC_COMMAND_INTERRUPTED);
    assert_int_equal(new->cqe.status, 0);
    expect_units(2, 1, 0xa5);
}

static void test_a_second_host_cannot_disturb_a_download(void **state)
{
    struct fake *fake = *state;
    uint16_t one = fake_host(fake, 0);
    uint16_t two = another_host(fake);
    struct fake_request *commit;

    assert_int_equal(download_units(fake, one, 0, 2, 0x11), 0);
    for (uint32_t unit = 0; unit < 4; unit++) {
        assert_int_equal(download_units(fake, two, unit, 1, 0x22),
                         NVME_SC_COMMAND_INTERRUPTED);
    }
    assert_int_equal(refused_commit(fake, two, 2 | STORE_ACTIVATE),
                     NVME_SC_INVALID_FIRMWARE_IMAGE | DNR);
    assert_int_equal(download_units(fake, one, 2, 1, 0x11), 0);
    commit = send_commit(fake, one, 2 | STORE);
    end_commit(fake, commit);
    assert_int_equal(commit->cqe.status, 0);
    assert_int_equal(commit->cqe.dw0, MUD);
    expect_units(0, 3, 0x11);
    /* Now it is the second host's turn, and nothing overlaps any more. */
    assert_int_equal(download_units(fake, two, 0, 1, 0x22), 0);
    commit = send_commit(fake, two, 2 | STORE);
    end_commit(fake, commit);
    assert_int_equal(commit->cqe.dw0, 0);
}

static void test_an_activation_keeps_the_download_of_another_host(void **state)
{
    struct fake *fake = *state;
    uint16_t one = fake_host(fake, 0);
    uint16_t two = another_host(fake);

    assert_int_equal(download_units(fake, one, 0, 2, 0x11), 0);
    end_commit(fake, send_commit(fake, two, 2 | ACTIVATE));
    assert_int_equal(download_units(fake, one, 2, 1, 0x11), 0);
    end_commit(fake, send_commit(fake, one, 2 | STORE));
    assert_int_equal(drive.commit.len_bytes, 3 * UNIT);
}

static void test_a_host_that_leaves_discards_its_own_download_only(void **state)
{
    struct fake *fake = *state;
    uint16_t one = fake_host(fake, 0);
    uint16_t two = another_host(fake);

    assert_int_equal(download_units(fake, one, 0, 2, 0x11), 0);
    (void)fake_property_set(fake, two, PROPERTY_CC, 0);
    fake_close(fake, two);
    assert_int_equal(download_units(fake, one, 2, 1, 0x11), 0);
    fake_close(fake, one);
    two = another_host(fake);
    assert_int_equal(refused_commit(fake, two, 2 | STORE),
                     NVME_SC_INVALID_FIRMWARE_IMAGE | DNR);
    assert_int_equal(download_units(fake, two, 3, 1, 0x22), 0);
    assert_int_equal(refused_commit(fake, two, 2 | STORE),
                     NVME_SC_INVALID_FIRMWARE_IMAGE | DNR);
}

/* The new controller has the index of the one that has downloaded. */
static void test_a_download_ends_with_its_host_during_an_activation(
    void **state)
{
    struct fake *fake = *state;
    uint16_t one = fake_host(fake, 0);
    uint16_t two = another_host(fake);
    struct fake_request *activation;

    assert_int_equal(download_units(fake, one, 0, 2, 0x11), 0);
    activation = send_commit(fake, two, 2 | ACTIVATE);
    fake_close(fake, one);
    one = another_host(fake);
    end_commit(fake, activation);
    assert_int_equal(refused_commit(fake, one, 2 | STORE),
                     NVME_SC_INVALID_FIRMWARE_IMAGE | DNR);
}

static void test_an_idle_download_is_lost_to_another_host(void **state)
{
    struct fake *fake = *state;
    uint16_t one = fake_host(fake, 0);
    uint16_t two = another_host(fake);

    assert_int_equal(download_units(fake, one, 0, 2, 0x11), 0);
    fake->now_us += IDLE_US - 1;
    assert_int_equal(download_units(fake, two, 0, 1, 0x22),
                     NVME_SC_COMMAND_INTERRUPTED);
    fake->now_us += 1;
    assert_int_equal(download_units(fake, two, 0, 1, 0x22), 0);
    assert_int_equal(download_units(fake, one, 2, 1, 0x11),
                     NVME_SC_COMMAND_INTERRUPTED);
    assert_int_equal(refused_commit(fake, one, 2 | STORE),
                     NVME_SC_INVALID_FIRMWARE_IMAGE | DNR);
    end_commit(fake, send_commit(fake, two, 2 | STORE));
    assert_int_equal(drive.commit.len_bytes, UNIT);
}

/* ---- The end of a commit. */

static void test_a_reset_is_asked_for_only_if_another_image_waits(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *sent;

    sent = send_commit(fake, admin, 1 | ACTIVATE);
    end_commit(fake, sent);
    assert_int_equal(sent->cqe.status, 0);
    drive.next = 1; /* also the running slot, with another image */
    sent = send_commit(fake, admin, 1 | ACTIVATE);
    end_commit(fake, sent);
    assert_int_equal(sent->cqe.status & NVME_SC_MASK,
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    assert_int_equal(download_units(fake, admin, 0, 1, 0x11), 0);
    sent = send_commit(fake, admin, 1 | STORE);
    end_commit(fake, sent);
    assert_int_equal(sent->cqe.status, 0);
}

static void test_a_commit_that_the_flash_cannot_bear_may_be_tried_again(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    assert_int_equal(download_units(fake, admin, 0, 1, 0x11), 0);
    drive.is_spared = true;
    assert_int_equal(refused_commit(fake, admin, 2 | STORE),
                     NVME_SC_COMMAND_INTERRUPTED);
    drive.is_spared = false;
    end_commit(fake, send_commit(fake, admin, 2 | STORE));
}

static void test_a_sanitize_does_not_begin_during_a_commit(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = fake_admin(ADMIN_SANITIZE, 0, BLOCK_ERASE, 0);
    struct fake_request *sent = send_commit(fake, admin, 2 | ACTIVATE);

    assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status &
                         (uint16_t)~MORE,
                     NVME_SC_COMMAND_INTERRUPTED);
    drive.next = 2;
    end_commit(fake, sent);
    assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status &
                         NVME_SC_MASK,
                     NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
}

static void test_a_commit_outlives_its_host(void **state)
{
    struct fake *fake = *state;
    uint16_t one = fake_host(fake, 0);
    uint16_t two = another_host(fake);

    assert_int_equal(download_units(fake, one, 0, 1, 0x11), 0);
    (void)send_commit(fake, one, 2 | STORE);
    assert_false(nvmf_qpair_closed(fake->target, one));
    fake_run(fake);
    assert_int_equal(download_units(fake, two, 0, 1, 0x22),
                     NVME_SC_COMMAND_INTERRUPTED);
    expect_units(0, 1, 0x11);
    nvmf_firmware_committed(fake->target, &drive.commit, NVMF_FIRMWARE_OK);
    fake_run(fake);
    assert_int_equal(download_units(fake, two, 0, 1, 0x22), 0);
    end_commit(fake, send_commit(fake, two, 2 | STORE));
}
