/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATA commands: from a frame to an NVMe command, and from its end to the
 * answer.
 *
 * Writes to the same blocks are executed in the order in which they arrived.  A
 * host repeats a write whose answer is late, with another tag.  After either
 * answer it may write newer data, which then comes after both.
 *
 * A write that was executed holds up no other one, also if its answer finds no
 * room: the host may repeat it by the other port because this one takes no
 * frames.
 * Spec: AoEr11 section 3.1; ATA/ATAPI-7 chapter 6.
 */
#include "nvmeof/aoe/aoe_state.h"

#include <string.h>

#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/opcode.h"

enum { /* ATA commands */
       ATA_READ = 0x20,
       ATA_READ_EXT = 0x24,
       ATA_WRITE = 0x30,
       ATA_WRITE_EXT = 0x34,
       ATA_FLUSH = 0xe7,
       ATA_FLUSH_EXT = 0xea,
       ATA_IDENTIFY = 0xec,
};

enum { /* registers at the end of a command */
       ATA_STATUS_READY = 0x40,
       ATA_STATUS_ERROR = 0x01,
       ATA_ERROR_ABORT = 0x04, /* the command is refused */
       ATA_ERROR_RANGE = 0x10, /* there is no such block */
       ATA_ERROR_MEDIA = 0x40, /* the data cannot be read */
};

#define LBA28_MASK 0x0fffffffu

static const uint8_t slot_next[AOE_SLOT_STATES] = {
    [AOE_SLOT_FREE] = BIT(AOE_SLOT_WAITS) | BIT(AOE_SLOT_TARGET),
    [AOE_SLOT_WAITS] = BIT(AOE_SLOT_TARGET) | BIT(AOE_SLOT_FREE),
    [AOE_SLOT_TARGET] =
        BIT(AOE_SLOT_SENDING) | BIT(AOE_SLOT_ANSWERS) | BIT(AOE_SLOT_FREE),
    [AOE_SLOT_SENDING] = BIT(AOE_SLOT_TARGET),
    [AOE_SLOT_ANSWERS] = BIT(AOE_SLOT_FREE),
};

void aoe_slot_enter(struct aoe_slot *slot, enum aoe_slot_state next)
{
    struct aoe *aoe = slot->aoe;

    ASSERT(slot_next[slot->state] & BIT(next));
    aoe->waiting = (uint16_t)(aoe->waiting - (slot->state == AOE_SLOT_WAITS) +
                              (next == AOE_SLOT_WAITS));
    aoe->answering =
        (uint16_t)(aoe->answering -
                   (slot->state == AOE_SLOT_SENDING ||
                    slot->state == AOE_SLOT_ANSWERS) +
                   (next == AOE_SLOT_SENDING || next == AOE_SLOT_ANSWERS));
    aoe->submitted =
        (uint16_t)(aoe->submitted - (slot->state == AOE_SLOT_TARGET) +
                   (next == AOE_SLOT_TARGET));
    slot->state = (uint8_t)next;
}

/* Most sectors in a frame of this port. */
uint8_t aoe_sectors_max(const struct aoe *aoe, uint8_t port)
{
    uint32_t room = aoe->config.mtu_bytes[port] - AOE_HEADER_LEN - AOE_ATA_LEN;

    return (uint8_t)MIN(room / AOE_SECTOR_LEN, AOE_SECTORS_MAX);
}

/* ---- Answers. */

/* Write the headers of an answer.  @return their length */
static size_t emit_end(const struct aoe *aoe, uint8_t *frame,
                       const struct aoe_header *request,
                       const struct aoe_ata *ata, uint8_t error)
{
    const struct aoe_header header =
        aoe_answer_header(aoe, request, AOE_ERROR_NONE);
    struct aoe_ata end = *ata;

    end.feature = error;
    end.count = 0;
    end.command =
        (uint8_t)(ATA_STATUS_READY | (error != 0 ? ATA_STATUS_ERROR : 0));
    aoe_header_emit(frame, &header);
    aoe_ata_emit(frame + AOE_HEADER_LEN, &end);
    return AOE_HEADER_LEN + AOE_ATA_LEN;
}

/* Answer at once.  @param data  AOE_IDENTIFY_LEN bytes, or NULL */
static void answer_at_once(struct aoe *aoe, const struct aoe_station *to,
                           const struct aoe_header *request,
                           const struct aoe_ata *ata, uint8_t error,
                           const uint8_t *data)
{
    uint8_t *frame = aoe->config.ports.begin(aoe->config.ports.ctx, to);
    size_t len;

    if (error != 0) {
        aoe_note(aoe, to->port, AOE_ATA_ERRORS);
    }
    if (frame == NULL) {
        return;
    }
    len = emit_end(aoe, frame, request, ata, error);
    if (data != NULL) {
        memcpy(frame + len, data, AOE_IDENTIFY_LEN);
        len += AOE_IDENTIFY_LEN;
    }
    aoe_commit(aoe, to, len);
}

/* The error register for an NVMe status; 0: none. */
static uint8_t error_of(uint16_t status)
{
    switch (status & NVME_SC_MASK) {
    case NVME_SC_SUCCESS:
        return 0;
    case NVME_SC_LBA_RANGE:
        return ATA_ERROR_RANGE;
    case NVME_SC_READ_ERROR:
        return ATA_ERROR_MEDIA;
    default:
        return ATA_ERROR_ABORT;
    }
}

/* Whether the command was not executed, through no fault of the host: it tries
 * again if it gets no answer. */
static bool is_to_be_repeated(uint16_t status)
{
    switch (status & NVME_SC_MASK) {
    case NVME_SC_COMMAND_INTERRUPTED:
    case NVME_SC_TRANSIENT_TRANSPORT:
    case NVME_SC_ABORT_REQUESTED:
    case NVME_SC_ABORT_SQ_DELETED:
        return true;
    default:
        return false;
    }
}

static bool has_link(const struct aoe *aoe, uint8_t port)
{
    return aoe->config.ports.has_link(aoe->config.ports.ctx, port);
}

/* Copy the data that the target gives to `to`, where the first bytes may be
 * already. */
static void copy_pieces(const struct nvmf_transfer *nvmf, uint8_t *to)
{
    uint32_t done = 0;

    for (uint8_t i = 0; done < nvmf->send_len; i++) {
        uint32_t len = MIN(nvmf->pieces[i].len_bytes, nvmf->send_len - done);

        memcpy(to + nvmf->data_offset + done, nvmf->pieces[i].ptr, len);
        done += len;
    }
}

/* Whether no word of the data that is to be copied is lost. */
static bool pieces_are_intact(const struct aoe_slot *slot)
{
    const struct nvmf_transfer *nvmf = slot->nvmf;
    const struct nvmf_config *config =
        nvmf_target_config(slot->aoe->config.target);
    uint32_t left = nvmf->send_len;
    bool all = true;

    for (uint8_t i = 0; left != 0 && config->is_intact != NULL; i++) {
        uint32_t len = MIN(nvmf->pieces[i].len_bytes, left);

        all &= config->is_intact(config->memory_ctx, nvmf->pieces[i].ptr, len);
        left -= len;
    }
    return all;
}

static void note_end(struct aoe_slot *slot, uint8_t error)
{
    struct aoe *aoe = slot->aoe;

    if (error != 0) {
        aoe_note(aoe, slot->from.port, AOE_ATA_ERRORS);
    } else if (slot->ata.is_write) {
        aoe_peers_note(aoe, slot);
        aoe_note(aoe, slot->from.port, AOE_WRITES);
    } else {
        aoe_note(aoe, slot->from.port, AOE_READS);
    }
}

/* Write the answer.  @return its length */
static size_t emit_answer(const struct aoe_slot *slot, uint8_t *frame,
                          uint8_t error)
{
    size_t len = emit_end(slot->aoe, frame, &slot->header, &slot->ata, error);

    if (error != 0 || slot->ata.is_write) {
        return len;
    }
    /* Parts of the data that came before the last one are in the slot. */
    memcpy(frame + len, slot->data, slot->nvmf->data_offset);
    copy_pieces(slot->nvmf, frame + len);
    return len + slot->ata.count * (size_t)AOE_SECTOR_LEN;
}

/* @return false when there is no room for the answer now */
static bool slot_answer(struct aoe_slot *slot)
{
    struct aoe *aoe = slot->aoe;
    struct nvme_cqe cqe;
    uint8_t error;

    nvme_cqe_parse(&cqe, slot->nvmf->cqe);
    error = error_of(cqe.status);
    if (error == 0 && (slot->is_damaged || !pieces_are_intact(slot))) {
        slot->is_damaged = true; /* lost words are set to zero */
        error = ATA_ERROR_MEDIA;
    }
    if (is_to_be_repeated(cqe.status)) {
        aoe_note(aoe, slot->from.port, AOE_DROP_RETRY);
    } else {
        uint8_t *frame =
            aoe->config.ports.begin(aoe->config.ports.ctx, &slot->from);

        if (frame == NULL && has_link(aoe, slot->from.port)) {
            return false;
        }
        note_end(slot, error);
        if (frame == NULL) {
            aoe_note(aoe, slot->from.port, AOE_DROP_NO_LINK);
        } else {
            aoe_commit(aoe, &slot->from, emit_answer(slot, frame, error));
        }
    }
    aoe_trace_end(slot, error, is_to_be_repeated(cqe.status));
    aoe_slot_enter(slot, AOE_SLOT_FREE);
    nvmf_request_done(aoe->config.target, slot->nvmf);
    return true;
}

/* ---- Commands that read and write. */

/* Whether `slot` has to wait for `other`, which arrived before it. */
static bool must_follow(const struct aoe_slot *slot,
                        const struct aoe_slot *other)
{
    return (other->state == AOE_SLOT_WAITS ||
            other->state == AOE_SLOT_TARGET) &&
           other != slot && other->ata.is_write &&
           other->header.minor == slot->header.minor &&
           (int32_t)(other->order - slot->order) < 0 &&
           other->lba < slot->lba + slot->ata.count &&
           slot->lba < other->lba + other->ata.count;
}

static bool slot_may_start(const struct aoe_slot *slot)
{
    if (!slot->ata.is_write) {
        return true;
    }
    for (unsigned int i = 0; i < AOE_SLOTS; i++) {
        if (must_follow(slot, &slot->aoe->slots[i])) {
            return false;
        }
    }
    return true;
}

/* @return a slot for a command of this station; NULL: it may have no more */
static struct aoe_slot *slot_take(struct aoe *aoe,
                                  const struct aoe_station *from)
{
    struct aoe_slot *found = NULL;
    unsigned int of_port = 0, of_peer = 0;

    for (unsigned int i = 0; i < AOE_SLOTS; i++) {
        struct aoe_slot *slot = &aoe->slots[i];

        if (slot->state == AOE_SLOT_FREE) {
            found = slot;
        } else if (slot->from.port == from->port) {
            of_port++;
            of_peer +=
                memcmp(slot->from.mac, from->mac, AOE_MAC_LEN) == 0 ? 1 : 0;
        }
    }
    return of_port < AOE_PORT_SLOTS && of_peer < AOE_PEER_SLOTS ? found : NULL;
}

static void transfer_receive(struct aoe *aoe, const struct aoe_station *from,
                             const struct aoe_header *header,
                             const struct aoe_ata *ata, const uint8_t *data,
                             size_t len)
{
    size_t data_len = ata->count * (size_t)AOE_SECTOR_LEN;
    struct aoe_slot *slot;

    if (ata->count == 0 || ata->count > aoe_sectors_max(aoe, from->port) ||
        (ata->is_write && len != data_len)) {
        aoe_refuse(aoe, from, header, AOE_ERROR_ARGUMENT);
        return;
    }
    slot = slot_take(aoe, from);
    if (slot == NULL) {
        aoe_note(aoe, from->port, AOE_DROP_FULL);
        return;
    }
    slot->from = *from;
    slot->header = *header;
    slot->ata = *ata;
    slot->lba = ata->is_lba48 ? ata->lba : ata->lba & LBA28_MASK;
    if (ata->is_write) {
        slot->digest = aoe_digest(data, data_len);
        switch (aoe_peers_find(aoe, slot)) {
        case AOE_WRITE_NEW:
            break;
        case AOE_WRITE_RUNS: /* its answer serves both */
            aoe_note(aoe, from->port, AOE_REPEATED);
            aoe_trace_repeated(slot, false);
            return;
        case AOE_WRITE_DONE:
            aoe_note(aoe, from->port, AOE_REPEATED);
            aoe_trace_repeated(slot, true);
            answer_at_once(aoe, from, header, ata, 0, NULL);
            return;
        }
        memcpy(slot->data, data, data_len);
    }
    slot->is_damaged = false;
    slot->order = aoe->next_order++;
    slot->arrived_us = aoe->now_us;
    aoe_trace_command(slot);
    aoe_slot_enter(slot, AOE_SLOT_WAITS);
}

/* ---- All commands. */

static void identify_receive(struct aoe *aoe, const struct aoe_station *from,
                             const struct aoe_header *header,
                             const struct aoe_ata *ata)
{
    uint8_t data[AOE_IDENTIFY_LEN];
    struct nvmf_ns_blocks blocks;

    if (!nvmf_target_ns_blocks(aoe->config.target, header->minor + 1u,
                               aoe->queue[0].qpair, &blocks)) {
        aoe_refuse(aoe, from, header, AOE_ERROR_DEVICE);
        return;
    }
    aoe_identify(aoe, &blocks, header->minor + 1u, data);
    answer_at_once(aoe, from, header, ata, 0, data);
}

/* How a command has to be addressed, and whether data follows in its frame. */
static bool has_flags(const struct aoe_ata *ata, bool is_lba48, bool is_write)
{
    return ata->is_lba48 == is_lba48 && ata->is_write == is_write;
}

void aoe_ata_receive(struct aoe *aoe, const struct aoe_station *from,
                     const struct aoe_header *header, const uint8_t *args,
                     size_t len)
{
    struct aoe_ata ata;
    bool is_valid = true;

    if (!aoe_ata_parse(&ata, args, len)) {
        aoe_note(aoe, from->port, AOE_DROP_BAD);
        return;
    }
    if (aoe_is_fenced(aoe, header->minor, from->mac)) {
        aoe_refuse(aoe, from, header, AOE_ERROR_RESERVED);
        return;
    }
    switch (ata.command) {
    case ATA_READ:
    case ATA_WRITE:
        is_valid = has_flags(&ata, false, ata.command == ATA_WRITE);
        break;
    case ATA_READ_EXT:
    case ATA_WRITE_EXT:
        is_valid = has_flags(&ata, true, ata.command == ATA_WRITE_EXT);
        break;
    case ATA_IDENTIFY:
        identify_receive(aoe, from, header, &ata);
        return;
    case ATA_FLUSH:
    case ATA_FLUSH_EXT: /* every write that was answered is durable */
        answer_at_once(aoe, from, header, &ata, 0, NULL);
        return;
    default:
        answer_at_once(aoe, from, header, &ata, ATA_ERROR_ABORT, NULL);
        return;
    }
    if (!is_valid) {
        aoe_refuse(aoe, from, header, AOE_ERROR_ARGUMENT);
        return;
    }
    transfer_receive(aoe, from, header, &ata, args + AOE_ATA_LEN,
                     len - AOE_ATA_LEN);
}

/* ---- What the main loop has to do. */

bool aoe_ata_executes_excluded(const struct aoe *aoe, uint8_t minor)
{
    for (unsigned int i = 0; i < AOE_SLOTS; i++) {
        const struct aoe_slot *slot = &aoe->slots[i];

        if ((slot->state == AOE_SLOT_TARGET ||
             slot->state == AOE_SLOT_SENDING) &&
            slot->header.minor == minor &&
            (aoe_is_fenced(aoe, minor, slot->from.mac) ||
             !aoe_is_admitted(aoe, minor, slot->from.mac))) {
            return true;
        }
    }
    return false;
}

/* Whether the command may be executed, now that its turn has come: while it
 * waited, the device may have got other holders or another mask list.  If not,
 * the command ends. */
static bool slot_is_allowed(struct aoe_slot *slot)
{
    struct aoe *aoe = slot->aoe;
    uint8_t minor = slot->header.minor;

    if (aoe_is_exported(aoe, minor + 1u) != AOE_EXPORTED) {
        aoe_note(aoe, slot->from.port, AOE_DROP_NOT_OURS);
    } else if (!aoe_is_admitted(aoe, minor, slot->from.mac)) {
        aoe_note(aoe, slot->from.port, AOE_DROP_MASKED);
    } else if (aoe_is_fenced(aoe, minor, slot->from.mac)) {
        aoe_refuse(aoe, &slot->from, &slot->header, AOE_ERROR_RESERVED);
    } else {
        return true;
    }
    aoe_slot_enter(slot, AOE_SLOT_FREE);
    return false;
}

/* Give commands to the target, unless they have to wait for earlier ones. */
static bool submit_waiting(struct aoe *aoe)
{
    bool is_busy = false;

    for (unsigned int i = 0; i < AOE_SLOTS && aoe->waiting != 0; i++) {
        struct aoe_slot *slot = &aoe->slots[i];

        if (slot->state != AOE_SLOT_WAITS || !slot_may_start(slot)) {
            continue;
        }
        is_busy = true;
        if (slot_is_allowed(slot)) {
            aoe_host_submit(slot);
        }
    }
    return is_busy;
}

static bool slot_serve(struct aoe_slot *slot)
{
    if (slot->state == AOE_SLOT_SENDING) {
        slot->is_damaged |= !pieces_are_intact(slot);
        copy_pieces(slot->nvmf, slot->data);
        aoe_slot_enter(slot, AOE_SLOT_TARGET);
        nvmf_request_sent(slot->aoe->config.target, slot->nvmf, true);
        return true;
    }
    return slot->state == AOE_SLOT_ANSWERS && slot_answer(slot);
}

bool aoe_ata_step(struct aoe *aoe)
{
    bool is_busy = false;

    for (unsigned int i = 0; i < AOE_SLOTS && aoe->answering != 0; i++) {
        is_busy |= slot_serve(&aoe->slots[i]);
    }
    return aoe->waiting != 0 ? submit_waiting(aoe) || is_busy : is_busy;
}
