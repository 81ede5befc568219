/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Firmware Image Download and Firmware Commit.  No test leaves the target with
 * another image to start; those that store one write the slot that does not
 * run.
 *
 * Spec: NVM Express 2.0 3.11 (the process), 5.11 (Firmware Commit), 5.12
 * (Firmware Image Download), 5.16.1.4 (the log page), 5.24 (Sanitize).
 */
#include <string.h>

#include "firmware/store/image.h"
#include "lib/crc32.h"
#include "nvme_lib.h"

enum {
    STORE = 0, /* CA */
    STORE_ACTIVATE = 1,
    ACTIVATE = 2,
    BOOT_PARTITION = 6,
    ACTION_SHIFT = 3,

    PIECE = 4096,
    IMAGE_BYTES = 3 * PIECE,
    IMAGE_PIECES = 1 + IMAGE_BYTES / PIECE,
    MUD = 1,
    BLOCK_ERASE = 2,
};

#define LOAD_ADDR 0x80000000u
#define REVISION  "7.7.7"

static void need_firmware(struct conf *conf, const struct nvme *nvme)
{
    if (!(nvme->ctrl[ID_CTRL_OACS] & OACS_FIRMWARE)) {
        conf_not_applicable(conf, "OACS bit 2 is 0");
    }
}

static struct nvme *open_firmware(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    need_firmware(conf, nvme);
    return nvme;
}

/* Send a piece whose data is at the start of admin->mem. */
static uint16_t send_piece(struct nvme *nvme, uint32_t offset, uint32_t len)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_FIRMWARE_DOWNLOAD,
                           .cdw10 = len / 4 - 1,
                           .cdw11 = offset / 4};

    return nvme_run(nvme, nvme->admin, &sqe, len, NULL);
}

static void download_piece(struct nvme *nvme, uint32_t offset,
                           const uint8_t *data)
{
    memcpy(nvme->admin->mem, data, PIECE);
    conf_status(nvme->conf, "Firmware Image Download",
                send_piece(nvme, offset, PIECE), NVME_SC_SUCCESS);
}

static uint16_t send_commit(struct nvme *nvme, uint32_t slot, uint32_t action,
                            struct nvme_cqe *cqe)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_FIRMWARE_COMMIT,
                           .cdw10 = slot | action << ACTION_SHIFT};

    return nvme_run(nvme, nvme->admin, &sqe, 0, cqe);
}

/* A file that our target accepts: header and image.  Another target refuses it
 * as an image for another product. */
static void make_file(uint8_t *file)
{
    struct image_header header = {
        .format = 1,
        .load_addr = LOAD_ADDR,
        .entry = LOAD_ADDR,
        .len_bytes = IMAGE_BYTES,
        .version = REVISION,
    };

    memset(file, 0xff, PIECE);
    for (uint32_t i = 0; i < IMAGE_BYTES; i++) {
        file[PIECE + i] = (uint8_t)(i * 7 + i / 256);
    }
    header.image_crc = crc32_update(0, file + PIECE, IMAGE_BYTES);
    image_header_emit(&header, file);
}

/* AFI of the log page. */
static uint8_t slots_now(struct nvme *nvme)
{
    return nvme_log(nvme, LOG_FIRMWARE_SLOT,
                    LOG_FIRMWARE_SLOT_LEN)[FIRMWARE_SLOT_AFI];
}

static uint32_t running_slot(struct nvme *nvme)
{
    return slots_now(nvme) & 7;
}

static uint32_t other_slot(struct nvme *nvme)
{
    return running_slot(nvme) == 1 ? 2 : 1;
}

/* Download the file, its pieces in another order, and store it.  @return the
 * slot, which does not run */
static uint32_t store_image(struct nvme *nvme)
{
    static uint8_t file[IMAGE_PIECES * PIECE];
    uint32_t slot = other_slot(nvme);
    uint16_t status;

    make_file(file);
    download_piece(nvme, 0, file);
    for (uint32_t i = IMAGE_PIECES - 1; i > 0; i--) {
        download_piece(nvme, i * PIECE, file + i * PIECE);
    }
    status = send_commit(nvme, slot, STORE, NULL);
    if (status == NVME_SC_INVALID_FIRMWARE_IMAGE) {
        conf_not_applicable(nvme->conf, "the target refuses images of essd");
    }
    conf_status(nvme->conf, "Firmware Commit, action 0", status,
                NVME_SC_SUCCESS);
    return slot;
}

/* ---- What Identify and the log pages say. */

WITH_NVME(capabilities)
{
    bool has_commands = nvme->ctrl[ID_CTRL_OACS] & OACS_FIRMWARE;
    uint8_t slots = nvme->ctrl[ID_CTRL_FRMW] >> FRMW_SLOTS_SHIFT & 7;
    const uint8_t *page =
        nvme_log(nvme, LOG_COMMANDS_EFFECTS, LOG_COMMANDS_EFFECTS_LEN);
    uint32_t commit = get_le32(page + 4 * ADMIN_FIRMWARE_COMMIT);
    uint32_t image = get_le32(page + 4 * ADMIN_FIRMWARE_DOWNLOAD);

    conf_check(conf, slots >= 1, "FRMW says that there is no slot");
    conf_equal(conf, "CSUPP of Firmware Commit",
               (commit & COMMANDS_EFFECTS_CSUPP) != 0, has_commands);
    conf_equal(conf, "CSUPP of Firmware Image Download",
               (image & COMMANDS_EFFECTS_CSUPP) != 0, has_commands);
}

static void check_stored(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    uint32_t running = running_slot(nvme);
    uint32_t slot = store_image(nvme);
    const uint8_t *page =
        nvme_log(nvme, LOG_FIRMWARE_SLOT, LOG_FIRMWARE_SLOT_LEN);

    conf_equal(conf, "AFI", page[FIRMWARE_SLOT_AFI], running);
    conf_check(conf,
               memcmp(page + FIRMWARE_SLOT_FRS1 + 8 * (slot - 1),
                      REVISION "   ", 8) == 0,
               "FRS%u is not the revision of the image", slot);
    nvme_close(nvme);
}

/* Cancel an activation: nothing waits for a reset any more. */
static void keep_running(struct nvme *nvme, uint32_t running)
{
    conf_status(nvme->conf, "Firmware Commit, action 2, of the running slot",
                send_commit(nvme, running, ACTIVATE, NULL), NVME_SC_SUCCESS);
}

static void check_activated(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    uint32_t running = running_slot(nvme);
    uint32_t slot = store_image(nvme);

    conf_status(conf, "Firmware Commit, action 2",
                send_commit(nvme, slot, ACTIVATE, NULL),
                NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    conf_equal(conf, "AFI", slots_now(nvme),
               running | slot << FIRMWARE_SLOT_NEXT_SHIFT);
    nvme_reset(nvme);
    conf_equal(conf, "AFI after a controller reset", slots_now(nvme),
               running | slot << FIRMWARE_SLOT_NEXT_SHIFT);
    keep_running(nvme, running);
    conf_equal(conf, "AFI", slots_now(nvme), running);
    nvme_close(nvme);
}

/* NVMe 2.0 5.24: a Sanitize has to wait for the activation. */
static void pending_sanitize(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    struct nvme_sqe sqe = {.opcode = ADMIN_SANITIZE, .cdw10 = BLOCK_ERASE};
    uint32_t running = running_slot(nvme);
    uint32_t slot;

    if (!(get_le32(nvme->ctrl + ID_CTRL_SANICAP) & SANICAP_BLOCK)) {
        conf_not_applicable(conf, "SANICAP has no block erase");
    }
    slot = store_image(nvme);
    conf_status(conf, "Firmware Commit, action 2",
                send_commit(nvme, slot, ACTIVATE, NULL),
                NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    conf_status(conf, "Sanitize while an activation is pending",
                nvme_run(nvme, nvme->admin, &sqe, 0, NULL),
                NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    keep_running(nvme, running);
    nvme_close(nvme);
}

/* NVMe 2.0 5.16.1.14.1.2 */
static void check_recorded(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    const uint8_t *data;
    uint32_t slot;

    if (!(nvme->ctrl[ID_CTRL_LPA] & LPA_PERSISTENT_EVENT)) {
        conf_not_applicable(conf, "LPA bit 4 is 0");
    }
    slot = store_image(nvme);
    data = nvme_event(nvme, 0, PEL_TYPE_FIRMWARE) + PEL_EVENT_HEADER_LEN;
    conf_equal(conf, "length of the event, modulo 4",
               get_le16(data - PEL_EVENT_HEADER_LEN + PEL_EVENT_LENGTH) % 4, 0);
    conf_check(conf,
               memcmp(data + PEL_FIRMWARE_OLD, nvme->ctrl + ID_CTRL_FR, 8) == 0,
               "the old revision is not FR");
    conf_check(conf, memcmp(data + PEL_FIRMWARE_NEW, REVISION "   ", 8) == 0,
               "the new revision is not that of the image");
    conf_equal(conf, "slot", data[PEL_FIRMWARE_SLOT], slot);
    conf_equal(conf, "action", data[PEL_FIRMWARE_ACTION], STORE);
    conf_equal(conf, "status", data[PEL_FIRMWARE_SC], 0);
    conf_status(conf, "Firmware Commit without an image",
                send_commit(nvme, slot, STORE_ACTIVATE, NULL),
                NVME_SC_INVALID_FIRMWARE_IMAGE);
    data = nvme_event(nvme, 0, PEL_TYPE_FIRMWARE) + PEL_EVENT_HEADER_LEN;
    conf_equal(conf, "action", data[PEL_FIRMWARE_ACTION], STORE_ACTIVATE);
    conf_equal(conf, "status code type", data[PEL_FIRMWARE_SCT], 1);
    conf_equal(conf, "status code", data[PEL_FIRMWARE_SC],
               NVME_SC_INVALID_FIRMWARE_IMAGE & 0xff);
    nvme_close(nvme);
}

/* ---- Refusals. */

static void check_granularity(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    uint32_t unit = nvme->ctrl[ID_CTRL_FWUG] * 4096u;

    if (unit == 0 || nvme->ctrl[ID_CTRL_FWUG] == 0xff) {
        conf_not_applicable(conf, "FWUG demands nothing");
    }
    conf_status(conf, "a piece that is shorter than FWUG",
                send_piece(nvme, 0, unit - 4), NVME_SC_INVALID_FIELD);
    conf_status(conf, "a piece that is not aligned to FWUG",
                send_piece(nvme, 4, unit), NVME_SC_INVALID_FIELD);
    conf_status(conf, "a piece far beyond the end of any image",
                send_piece(nvme, 0xfffff000u, unit), NVME_SC_INVALID_FIELD);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static void check_overlap(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    static const uint8_t data[PIECE];

    download_piece(nvme, 0, data);
    download_piece(nvme, 2 * PIECE, data);
    conf_status(conf, "a piece that was downloaded already",
                send_piece(nvme, 2 * PIECE, PIECE), NVME_SC_FIRMWARE_OVERLAP);
    conf_status(conf, "a piece that overlaps another one",
                send_piece(nvme, PIECE, 2 * PIECE), NVME_SC_FIRMWARE_OVERLAP);
    download_piece(nvme, PIECE, data);
    nvme_close(nvme);
}

static void no_image(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    static const uint8_t data[PIECE];
    uint8_t before = slots_now(nvme);
    uint32_t slot = other_slot(nvme);

    conf_status(conf, "Firmware Commit without an image",
                send_commit(nvme, slot, STORE_ACTIVATE, NULL),
                NVME_SC_INVALID_FIRMWARE_IMAGE);
    download_piece(nvme, 0, data);
    conf_status(conf, "Firmware Commit of something else",
                send_commit(nvme, slot, STORE_ACTIVATE, NULL),
                NVME_SC_INVALID_FIRMWARE_IMAGE);
    conf_equal(conf, "AFI", slots_now(nvme), before);
    nvme_close(nvme);
}

static void check_gap(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    static uint8_t file[IMAGE_PIECES * PIECE];
    uint8_t before = slots_now(nvme);

    make_file(file);
    /* The second image begins at offset 0 again, and has a gap.  The bytes of
     * the first image in this gap may still be in the target's memory. */
    for (uint32_t i = 0; i < IMAGE_PIECES; i++) {
        download_piece(nvme, i * PIECE, file + i * PIECE);
    }
    for (uint32_t i = 0; i < IMAGE_PIECES; i++) {
        if (i != 2) {
            download_piece(nvme, i * PIECE, file + i * PIECE);
        }
    }
    conf_status(conf, "Firmware Commit of an image with a gap",
                send_commit(nvme, other_slot(nvme), STORE, NULL),
                NVME_SC_INVALID_FIRMWARE_IMAGE);
    conf_equal(conf, "AFI", slots_now(nvme), before);
    nvme_close(nvme);
}

static void damaged_image(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    static uint8_t file[IMAGE_PIECES * PIECE];
    uint8_t before = slots_now(nvme);

    make_file(file);
    file[2 * PIECE + 100] ^= 1;
    for (uint32_t i = 0; i < IMAGE_PIECES; i++) {
        download_piece(nvme, i * PIECE, file + i * PIECE);
    }
    conf_status(conf, "Firmware Commit of an image with a flipped bit",
                send_commit(nvme, other_slot(nvme), STORE, NULL),
                NVME_SC_INVALID_FIRMWARE_IMAGE);
    conf_equal(conf, "AFI", slots_now(nvme), before);
    nvme_close(nvme);
}

static void reset_forgets(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    static uint8_t file[IMAGE_PIECES * PIECE];

    make_file(file);
    for (uint32_t i = 0; i < IMAGE_PIECES; i++) {
        download_piece(nvme, i * PIECE, file + i * PIECE);
    }
    nvme_reset(nvme);
    conf_status(conf, "Firmware Commit of what was downloaded before a reset",
                send_commit(nvme, other_slot(nvme), STORE, NULL),
                NVME_SC_INVALID_FIRMWARE_IMAGE);
    nvme_close(nvme);
}

static void check_fields(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    uint32_t slots = nvme->ctrl[ID_CTRL_FRMW] >> FRMW_SLOTS_SHIFT & 7;

    if (slots < 7) {
        conf_status(conf, "a slot that does not exist",
                    send_commit(nvme, slots + 1, ACTIVATE, NULL),
                    NVME_SC_INVALID_FIRMWARE_SLOT);
    }
    conf_status(conf, "activation of slot 0",
                send_commit(nvme, 0, ACTIVATE, NULL),
                NVME_SC_INVALID_FIRMWARE_SLOT);
    conf_status(conf, "the reserved action 4", send_commit(nvme, 1, 4, NULL),
                NVME_SC_INVALID_FIELD);
    if (!(nvme->ctrl[ID_CTRL_FRMW] & 0x10)) {
        conf_status(conf, "activation without a reset, which FRMW denies",
                    send_commit(nvme, 1, 3, NULL), NVME_SC_INVALID_FIELD);
    }
    nvme_close(nvme);
}

/* The target has taken the second host's piece.  Then both hosts have to begin
 * again, and both must be told so. */
static void expect_both_fail(struct nvme *one, struct nvme *two)
{
    struct nvme_cqe cqe;

    conf_check(one->conf, send_commit(two, other_slot(two), STORE, &cqe) != 0,
               "Firmware Commit succeeds, although two hosts have downloaded");
    conf_equal(one->conf, "Multiple Update Detected", cqe.dw0 & 3, MUD);
    conf_status(one->conf, "Firmware Commit of the first host",
                send_commit(one, other_slot(one), STORE, NULL),
                NVME_SC_INVALID_FIRMWARE_IMAGE);
}

/* The target has refused the second host's piece.  Then the first host's update
 * goes on, and its commit says that another host has sent a piece. */
static void expect_first_succeeds(struct nvme *one, struct nvme *two,
                                  const uint8_t *file)
{
    struct nvme_cqe cqe;
    uint16_t status;

    conf_status(one->conf, "Firmware Commit of the second host",
                send_commit(two, other_slot(two), STORE, NULL),
                NVME_SC_INVALID_FIRMWARE_IMAGE);
    for (uint32_t i = 1; i < IMAGE_PIECES; i++) {
        download_piece(one, i * PIECE, file + i * PIECE);
    }
    status = send_commit(one, other_slot(one), STORE, &cqe);
    if (status == NVME_SC_INVALID_FIRMWARE_IMAGE) {
        conf_not_applicable(one->conf, "the target refuses images of essd");
    }
    conf_status(one->conf, "Firmware Commit of the first host", status,
                NVME_SC_SUCCESS);
    conf_equal(one->conf, "Multiple Update Detected", cqe.dw0 & 3, MUD);
}

static void two_hosts(struct conf *conf)
{
    struct nvme *one = nvme_open_host(conf, 1);
    struct nvme *two;
    static uint8_t file[IMAGE_PIECES * PIECE];

    need_firmware(conf, one);
    if (!(one->ctrl[ID_CTRL_FRMW] & FRMW_DETECTS_OVERLAP)) {
        conf_not_applicable(conf, "FRMW bit 5 is 0");
    }
    two = nvme_open_host(conf, 2);
    make_file(file);
    download_piece(one, 0, file);
    memset(two->admin->mem, 0, PIECE);
    if (send_piece(two, 0, PIECE) == NVME_SC_SUCCESS) {
        expect_both_fail(one, two);
    } else {
        expect_first_succeeds(one, two, file);
    }
    nvme_close(two);
    nvme_close(one);
}

/* Pieces in any order, the first one last. */
static void check_order(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    static uint8_t file[IMAGE_PIECES * PIECE];
    uint16_t status;

    make_file(file);
    for (uint32_t i = IMAGE_PIECES; i > 0; i--) {
        download_piece(nvme, (i - 1) * PIECE, file + (i - 1) * PIECE);
    }
    status = send_commit(nvme, other_slot(nvme), STORE, NULL);
    if (status == NVME_SC_INVALID_FIRMWARE_IMAGE &&
        !conf_target(conf)->is_ours) {
        conf_not_applicable(conf, "the target refuses images of essd");
    }
    conf_status(conf, "Firmware Commit, action 0", status, NVME_SC_SUCCESS);
    nvme_close(nvme);
}

/* A stored image is not proven yet, so the other slot must not be written. */
static void last_good_slot(struct conf *conf)
{
    struct nvme *nvme = open_firmware(conf);
    static uint8_t file[IMAGE_PIECES * PIECE];
    uint32_t running = running_slot(nvme);

    if (!conf_target(conf)->is_ours) {
        conf_not_applicable(conf, "other drives have other rules");
    }
    (void)store_image(nvme);
    make_file(file);
    for (uint32_t i = 0; i < IMAGE_PIECES; i++) {
        download_piece(nvme, i * PIECE, file + i * PIECE);
    }
    conf_status(conf, "Firmware Commit to the last good slot",
                send_commit(nvme, running, STORE_ACTIVATE, NULL),
                NVME_SC_INVALID_FIRMWARE_SLOT);
    conf_equal(conf, "AFI", slots_now(nvme), running);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("firmware." id, "NVMe 2.0 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("capabilities", "5.11, 5.17.2.1",
         "Identify and the effects log agree about firmware", capabilities),
    TEST("store", "5.11, 5.16.1.4", "a stored image is in the log page",
         check_stored),
    TEST("activate", "5.11, 3.11",
         "an activation is pending until a subsystem reset", check_activated),
    TEST("sanitize", "5.24", "Sanitize is refused while one is pending",
         pending_sanitize),
    TEST("recorded", "5.16.1.14.1.2", "each commit is a persistent event",
         check_recorded),
    TEST("granularity", "5.12", "pieces have to fit FWUG", check_granularity),
    TEST("overlap", "5.12.1", "overlapping pieces are refused", check_overlap),
    TEST("no-image", "5.11.1", "a commit needs an image of this product",
         no_image),
    TEST("gap", "5.11.1", "an image with a gap is refused", check_gap),
    TEST("damaged", "5.11.1", "a damaged image is refused", damaged_image),
    TEST("reset", "3.11", "a controller reset discards the download",
         reset_forgets),
    TEST("fields", "5.11.1", "slots and actions are checked", check_fields),
    TEST("order", "5.12", "pieces may come in any order", check_order),
    TEST("last-good-slot", "3.11",
         "the last image that has proved itself is never overwritten",
         last_good_slot),
    TEST("two-hosts", "3.11", "overlapping updates of two hosts are detected",
         two_hosts),
};
CONF_TESTS(conf_tests_nvme_firmware, "nvme", tests);
