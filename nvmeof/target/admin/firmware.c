/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Firmware Image Download and Firmware Commit: the commands and the log page of
 * the slots.  The target collects one image at a time.  It belongs to the
 * controller that has begun its download, and pieces from other controllers are
 * refused.  The owner of the firmware seam writes the image to flash.
 * Spec: NVM Express Base 2.0 sections 3.11, 5.11, 5.12 and 5.16.1.4.
 *
 * Left out: activation without a reset, because a new image restarts the drive;
 * boot partitions.
 */
#include <string.h>

#include "nvmeof/target/events/events.h"
#include "nvmeof/target/admin/admin.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/persistent_event.h"

enum { /* dword 10 of Firmware Commit */
       COMMIT_SLOT_MASK = 0x7,
       COMMIT_ACTION_SHIFT = 3,
       COMMIT_ACTION_MASK = 0x7,

       ACTION_STORE = 0,          /* store the image */
       ACTION_STORE_ACTIVATE = 1, /* store it, and activate it at a reset */
       ACTION_ACTIVATE = 2,       /* activate the slot's image at a reset */

       RESULT_OVERLAPPED = 1, /* MUD: two controllers have downloaded */
};

/* If a controller has sent no piece for this time, a piece from another
 * controller discards its download. */
#define OWNER_IDLE_US (60u * 1000 * 1000)

static struct nvmf_firmware_now firmware_now(const struct nvmf_target *target)
{
    const struct nvmf_firmware *firmware = &target->config.firmware;
    struct nvmf_firmware_now now;

    firmware->describe(firmware->ctx, &now);
    return now;
}

/* FRMW of Identify Controller. */
uint8_t firmware_capabilities(const struct nvmf_target *target)
{
    uint8_t frmw = NVMF_FIRMWARE_SLOTS << FRMW_SLOTS_SHIFT;

    if (firmware_exists(target)) {
        frmw |= FRMW_DETECTS_OVERLAP;
        frmw |=
            firmware_now(target).is_first_read_only ? FRMW_FIRST_READ_ONLY : 0u;
    }
    return frmw;
}

/* Whether another image starts after the next subsystem reset. */
bool firmware_is_pending(const struct nvmf_target *target)
{
    return firmware_exists(target) && firmware_now(target).next != 0;
}

bool firmware_is_committing(const struct nvmf_target *target)
{
    return target->firmware.req != NULL;
}

/* ---- The image that is being downloaded. */

static void forget_image(struct nvmf_target *target)
{
    struct firmware_manager *manager = &target->firmware;

    manager->owner = NO_CTRL;
    manager->image++;
    manager->is_overlapped = false;
    manager->end_bytes = 0;
    manager->arrived_bytes = 0;
    memset(manager->units, 0, sizeof(manager->units));
}

void firmware_init(struct nvmf_target *target)
{
    forget_image(target);
}

/* A controller is reset or ends: discard the image that it has downloaded,
 * unless the image is being stored. */
void firmware_ctrl_reset(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl)
{
    const struct firmware_manager *manager = &target->firmware;

    if (!manager->is_storing && manager->owner == ctrl - target->ctrl) {
        forget_image(target);
    }
}

static bool has_any_unit(const struct firmware_manager *manager, uint32_t first,
                         uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        if (manager->units[i / 32] & BIT(i % 32)) {
            return true;
        }
    }
    return false;
}

/* Pieces do not overlap, so there is no gap if all bytes have arrived. */
static bool is_complete(const struct firmware_manager *manager)
{
    return manager->end_bytes != 0 &&
           manager->arrived_bytes == manager->end_bytes;
}

uint16_t firmware_download_check(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    uint64_t len = ((uint64_t)req->sqe.cdw10 + 1) * 4;
    uint64_t offset = (uint64_t)req->sqe.cdw11 * 4;

    if (!firmware_exists(target)) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_OPCODE, 0);
    }
    if (len % NVMF_FIRMWARE_UNIT != 0 || len > NVMF_MAX_TRANSFER) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    if (offset % NVMF_FIRMWARE_UNIT != 0 || offset + len > NVMF_FIRMWARE_MAX) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11, 0);
    }
    if (target->firmware.req != NULL) {
        return NVME_SC_COMMAND_INTERRUPTED; /* the host may try again */
    }
    req->data_len = (uint32_t)len;
    return NVME_SC_SUCCESS;
}

/* @return whether another controller is downloading an image */
static bool is_taken(const struct nvmf_target *target, uint8_t ctrl)
{
    const struct firmware_manager *manager = &target->firmware;

    return manager->owner != NO_CTRL && manager->owner != ctrl &&
           target->now_us < manager->owner_us + OWNER_IDLE_US;
}

/*
 * The first part of the data has arrived.  If the beginning of the image was
 * downloaded already, a piece at offset 0 begins a new image, so that a host
 * whose program was killed can begin again.
 */
static uint16_t begin_piece(struct nvmf_target *target,
                            struct nvmf_request *req, uint32_t offset)
{
    struct firmware_manager *manager = &target->firmware;
    uint8_t ctrl = request_qpair(target, req)->ctrl;
    uint32_t first = offset / NVMF_FIRMWARE_UNIT;
    uint32_t count = req->data_len / NVMF_FIRMWARE_UNIT;

    if (is_taken(target, ctrl)) {
        manager->is_overlapped = true;
        return NVME_SC_COMMAND_INTERRUPTED; /* the host may try again */
    }
    if (manager->owner != ctrl ||
        (offset == 0 && has_any_unit(manager, 0, 1))) {
        forget_image(target);
    }
    if (has_any_unit(manager, first, count)) {
        return refuse_status(NVME_SC_FIRMWARE_OVERLAP);
    }
    manager->owner = ctrl;
    manager->owner_us = target->now_us;
    for (uint32_t i = first; i < first + count; i++) {
        manager->units[i / 32] |= BIT(i % 32);
    }
    manager->end_bytes = MAX(manager->end_bytes, offset + req->data_len);
    req->epoch = manager->image;
    return NVME_SC_SUCCESS;
}

/* Take one window of a piece; called for each window. */
uint16_t firmware_download_execute(struct nvmf_target *target,
                                   struct nvmf_request *req)
{
    struct firmware_manager *manager = &target->firmware;
    uint32_t offset = req->sqe.cdw11 * 4;

    if (manager->req != NULL) {
        return NVME_SC_COMMAND_INTERRUPTED; /* a commit has begun meanwhile */
    }
    if (req->transfer.data_offset == 0) {
        uint16_t status = begin_piece(target, req, offset);

        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    if (req->epoch != manager->image) {
        return NVME_SC_COMMAND_INTERRUPTED; /* The image was discarded. */
    }
    request_read_data(req, 0,
                      target->config.firmware.image + offset +
                          req->transfer.data_offset,
                      req->window_len);
    manager->arrived_bytes += req->window_len;
    return NVME_SC_SUCCESS;
}

/* ---- Commit. */

static uint32_t commit_action(const struct nvme_sqe *sqe)
{
    return sqe->cdw10 >> COMMIT_ACTION_SHIFT & COMMIT_ACTION_MASK;
}

uint16_t firmware_commit_check(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    uint32_t slot = req->sqe.cdw10 & COMMIT_SLOT_MASK;

    if (!firmware_exists(target)) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_OPCODE, 0);
    }
    if (commit_action(&req->sqe) > ACTION_ACTIVATE) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10,
                            COMMIT_ACTION_SHIFT);
    }
    if (slot > NVMF_FIRMWARE_SLOTS) {
        return refuse_field(req, NVME_SC_INVALID_FIRMWARE_SLOT, SQE_CDW10, 0);
    }
    return NVME_SC_SUCCESS;
}

/* Check that the controller has downloaded a whole image. */
static uint16_t check_download(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    struct firmware_manager *manager = &target->firmware;

    if (manager->owner != request_qpair(target, req)->ctrl) {
        return refuse_status(NVME_SC_INVALID_FIRMWARE_IMAGE);
    }
    if (manager->is_overlapped) {
        req->result[0] = RESULT_OVERLAPPED;
    }
    return is_complete(manager) ? NVME_SC_SUCCESS
                                : refuse_status(NVME_SC_INVALID_FIRMWARE_IMAGE);
}

uint16_t firmware_commit_execute(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    const struct nvmf_firmware *firmware = &target->config.firmware;
    struct firmware_manager *manager = &target->firmware;
    uint32_t action = commit_action(&req->sqe);
    struct nvmf_firmware_commit commit = {
        .slot = (uint8_t)(req->sqe.cdw10 & COMMIT_SLOT_MASK),
        .stores = action != ACTION_ACTIVATE,
        .activates = action != ACTION_STORE,
        .len_bytes = manager->end_bytes,
        .host = ctrl_host_number(request_ctrl(target, req)),
    };
    uint16_t status = NVME_SC_SUCCESS;

    if (manager->req != NULL) {
        return NVME_SC_COMMAND_INTERRUPTED; /* the host may try again */
    }
    if (commit.slot == 0 && !commit.stores) {
        return refuse_field(req, NVME_SC_INVALID_FIRMWARE_SLOT, SQE_CDW10, 0);
    }
    if (commit.stores) {
        status = check_download(target, req);
    }
    if (status != NVME_SC_SUCCESS) {
        pel_note_firmware(target, req, commit.slot, status);
        return status;
    }
    if (!firmware->commit(firmware->ctx, &commit)) {
        return NVME_SC_COMMAND_INTERRUPTED; /* The flash has to be spared. */
    }
    manager->req = req;
    manager->is_storing = commit.stores;
    request_wait_media(req);
    return NVMF_PENDING;
}

static uint16_t result_status(const struct nvmf_target *target,
                              const struct nvmf_firmware_commit *commit,
                              enum nvmf_firmware_result result)
{
    static const uint16_t status[NVMF_FIRMWARE_RESULTS] = {
        [NVMF_FIRMWARE_INVALID] =
            NVME_SC_INVALID_FIRMWARE_IMAGE | NVME_STATUS_DNR,
        [NVMF_FIRMWARE_PROHIBITED] =
            NVME_SC_FIRMWARE_PROHIBITED | NVME_STATUS_DNR,
        [NVMF_FIRMWARE_READ_ONLY] =
            NVME_SC_INVALID_FIRMWARE_SLOT | NVME_STATUS_DNR,
        [NVMF_FIRMWARE_FAILED] = NVME_SC_INTERNAL,
    };

    if (result == NVMF_FIRMWARE_OK && commit->activates &&
        firmware_is_pending(target)) {
        /* The commit has succeeded; the status says what is to be done. */
        return NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET;
    }
    return status[result];
}

void nvmf_firmware_committed(struct nvmf_target *target,
                             const struct nvmf_firmware_commit *commit,
                             enum nvmf_firmware_result result)
{
    struct firmware_manager *manager = &target->firmware;
    struct nvmf_request *req = manager->req;
    uint16_t status = result_status(target, commit, result);

    ASSERT(req != NULL);
    manager->req = NULL;
    if (manager->is_storing) {
        manager->is_storing = false;
        forget_image(target);
    }
    request_resume(req);
    pel_note_firmware(target, req, commit->slot, status);
    req->is_unlogged = result == NVMF_FIRMWARE_OK;
    request_complete(target, req, status);
}

/* ---- An image that was given up. */

void nvmf_firmware_given_up(struct nvmf_target *target, uint8_t slot)
{
    target->firmware.given_up = true;
    pel_note_firmware(target, NULL, slot, NVME_SC_INVALID_FIRMWARE_IMAGE);
}

/* A controller is ready: tell its host, unless a host has read the log page. */
void firmware_tell_host(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    if (target->firmware.given_up && !ctrl->is_discovery) {
        event_raise(target, ctrl, CTRL_EVENT_FIRMWARE_GIVEN_UP);
    }
}

/* ---- The log page. */

/* A host has read the page without Retain Asynchronous Event. */
void firmware_log_was_read(struct nvmf_target *target)
{
    target->firmware.given_up = false;
}

void log_build_firmware_slot(struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl, uint32_t part)
{
    const struct nvmf_config *config = &target->config;
    const char *slot[] = {config->slot_fr[0], config->slot_fr[1]};
    uint8_t active = config->active_slot;
    struct nvmf_firmware_now now;

    (void)ctrl;
    (void)part;
    if (firmware_exists(target)) {
        now = firmware_now(target);
        slot[0] = now.revision[0];
        slot[1] = now.revision[1];
        active = (uint8_t)(now.active | now.next << FIRMWARE_SLOT_NEXT_SHIFT);
    }
    log_firmware_slot_emit(target->page, active, slot, ARRAY_LEN(slot));
}
