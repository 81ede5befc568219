/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvme_lib.h"

#include <string.h>

enum {
    /* Room for guards and for data that is too long. */
    MEMORY_BLOCKS_BYTES = RC_MEMORY - 65536,
    PAGE_SHIFT = 12,
    RIGHT_LBA = 16,
    READY_TRIES = 200,
    READY_PAUSE_US = 10000,
};

static void read_identify_pages(struct nvme *nvme)
{
    struct conf *conf = nvme->conf;
    unsigned int mdts, lbads;

    conf_status(conf, "Identify Controller",
                nvme_identify(nvme, CNS_CONTROLLER, 0), NVME_SC_SUCCESS);
    memcpy(nvme->ctrl, nvme->admin->mem, NVME_IDENTIFY_LEN);
    conf_status(conf, "Identify Namespace",
                nvme_identify(nvme, CNS_NAMESPACE, nvme->nsid),
                NVME_SC_SUCCESS);
    memcpy(nvme->ns, nvme->admin->mem, NVME_IDENTIFY_LEN);
    mdts = nvme->ctrl[ID_CTRL_MDTS];
    lbads = nvme->ns[ID_NS_LBAF0 + 4 * (nvme->ns[ID_NS_FLBAS] & 0xf) + 2];
    conf_check(conf, lbads >= 9 && lbads <= 16, "LBADS is %u", lbads);
    nvme->num_ns = get_le32(nvme->ctrl + ID_CTRL_NN);
    nvme->size_blocks = get_le64(nvme->ns + ID_NS_NSZE);
    nvme->block_bytes = 1u << lbads;
    nvme->max_blocks = MEMORY_BLOCKS_BYTES >> lbads;
    if (mdts != 0 && mdts + PAGE_SHIFT <= 20) {
        nvme->max_blocks =
            MIN(nvme->max_blocks, 1u << (mdts + PAGE_SHIFT - lbads));
    }
    conf_check(conf, nvme->size_blocks >= 8192,
               "the namespace has %llu blocks, too few for these tests",
               (unsigned long long)nvme->size_blocks);
}

static struct nvme *new_nvme(struct conf *conf)
{
    struct nvme *nvme = conf_alloc(conf, sizeof(*nvme));

    nvme->conf = conf;
    nvme->nsid = conf_target(conf)->nsid;
    return nvme;
}

struct nvme *nvme_open_host(struct conf *conf, uint8_t host)
{
    const struct rc_config config = {.peer = host, .host = host};
    struct nvme *nvme = new_nvme(conf);

    nvme->pair = nvmf_open_pair(conf, &config);
    nvme->admin = nvme->pair.admin;
    nvme->io = nvme->pair.io;
    read_identify_pages(nvme);
    return nvme;
}

struct nvme *nvme_open(struct conf *conf)
{
    return nvme_open_host(conf, 0);
}

struct nvme *nvme_open_admin(struct conf *conf)
{
    struct nvme *nvme = new_nvme(conf);

    nvme->admin = rc_open_controller(conf, &(struct rc_config){0});
    read_identify_pages(nvme);
    return nvme;
}

void nvme_close(struct nvme *nvme)
{
    if (nvme->io != NULL) {
        rc_close(nvme->io);
    }
    rc_close(nvme->admin);
}

/* ---- Responses, in any order. */

static bool find_other(struct nvme *nvme, uint16_t cid, struct nvme_cqe *cqe)
{
    for (unsigned int i = 0; i < nvme->num_others; i++) {
        if (nvme->others[i].cid == cid) {
            *cqe = nvme->others[i];
            nvme->others[i] = nvme->others[--nvme->num_others];
            return true;
        }
    }
    return false;
}

static void parse_response(struct nvme *nvme, const struct rc_message *message,
                           struct nvme_cqe *cqe)
{
    conf_equal(nvme->conf, "length of the response capsule", message->len_bytes,
               NVME_CQE_LEN);
    nvme_cqe_parse(cqe, message->data);
    conf_note(nvme->conf, "response: cid %u status %03xh%s dw0 %08x", cqe->cid,
              cqe->status & NVME_SC_MASK,
              cqe->status & NVME_STATUS_DNR ? " DNR" : "", cqe->dw0);
}

static void keep_response(struct nvme *nvme, const struct nvme_cqe *cqe)
{
    conf_check(nvme->conf, nvme->num_others < NVME_OTHERS,
               "there are more responses than commands");
    nvme->others[nvme->num_others++] = *cqe;
}

void nvme_take(struct nvme *nvme, struct rc *rc, uint16_t cid,
               struct nvme_cqe *cqe)
{
    for (;;) {
        parse_response(nvme, rc_take_message(rc, "a response capsule"), cqe);
        if (cqe->cid == cid) {
            return;
        }
        conf_check(nvme->conf, rc == nvme->admin,
                   "there is a response with CID %u, which no command has",
                   cqe->cid);
        keep_response(nvme, cqe);
    }
}

bool nvme_take_other(struct nvme *nvme, uint16_t cid, uint64_t timeout_us,
                     struct nvme_cqe *cqe)
{
    const struct rc_message *message;

    while (!find_other(nvme, cid, cqe)) {
        message = rc_take_message_within(nvme->admin, timeout_us);
        if (message == NULL) {
            return false;
        }
        parse_response(nvme, message, cqe);
        keep_response(nvme, cqe);
    }
    return true;
}

/* ---- Commands. */

static void set_guard(struct rc *rc, uint32_t len_bytes)
{
    memset(rc->mem + len_bytes, NVME_GUARD_BYTE, NVME_GUARD);
}

static void check_guard(struct rc *rc, uint32_t len_bytes)
{
    for (uint32_t i = 0; i < NVME_GUARD; i++) {
        conf_check(rc->conf, rc->mem[len_bytes + i] == NVME_GUARD_BYTE,
                   "byte %u, after the data, was overwritten", len_bytes + i);
    }
}

uint16_t nvme_run_sgl(struct nvme *nvme, struct rc *rc,
                      const struct nvme_sqe *sqe, const struct sgl *sgl,
                      struct nvme_cqe *cqe)
{
    struct nvme_cqe own;
    struct nvme_cqe *to = cqe != NULL ? cqe : &own;

    nvme_take(nvme, rc, rc_send_capsule(rc, sqe, sgl, NULL, 0), to);
    return to->status & NVME_SC_MASK;
}

uint16_t nvme_run(struct nvme *nvme, struct rc *rc, const struct nvme_sqe *sqe,
                  uint32_t len_bytes, struct nvme_cqe *cqe)
{
    struct sgl sgl = rc_keyed(rc, 0, len_bytes);
    uint16_t status;

    set_guard(rc, len_bytes);
    status = nvme_run_sgl(nvme, rc, sqe, len_bytes != 0 ? &sgl : NULL, cqe);
    check_guard(rc, len_bytes);
    return status;
}

uint16_t nvme_run_capsule(struct nvme *nvme, struct rc *rc, uint8_t *capsule,
                          size_t len_bytes, struct nvme_cqe *cqe)
{
    struct nvme_cqe own;
    struct nvme_cqe *to = cqe != NULL ? cqe : &own;
    uint16_t cid = rc->cid++;

    put_le16(capsule + SQE_CID, cid);
    rc_send_message(rc, capsule, len_bytes);
    nvme_take(nvme, rc, cid, to);
    return to->status & NVME_SC_MASK;
}

static void set_cc(struct nvme *nvme, uint32_t cc)
{
    struct property_command set = {
        .size_bytes = 4, .offset = PROPERTY_CC, .value = cc};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_SET};

    property_command_build(&sqe, &set);
    conf_status(nvme->conf, "Property Set CC",
                nvme_run(nvme, nvme->admin, &sqe, 0, NULL), NVME_SC_SUCCESS);
}

/* Responses to commands that the reset ends may come first. */
static void wait_ready(struct nvme *nvme, bool is_ready)
{
    struct property_command get = {.size_bytes = 4, .offset = PROPERTY_CSTS};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_GET};
    struct nvme_cqe cqe;

    property_command_build(&sqe, &get);
    for (unsigned int i = 0; i < READY_TRIES; i++) {
        conf_status(nvme->conf, "Property Get CSTS",
                    nvme_run(nvme, nvme->admin, &sqe, 0, &cqe),
                    NVME_SC_SUCCESS);
        if (((cqe.dw0 & CSTS_RDY) != 0) == is_ready) {
            return;
        }
        conf_pass(nvme->conf, READY_PAUSE_US);
    }
    conf_fail(nvme->conf, "CSTS.RDY did not become %d", is_ready);
}

void nvme_reset(struct nvme *nvme)
{
    ASSERT(nvme->io == NULL);
    set_cc(nvme, NVMF_CC_ENABLE - CC_EN);
    wait_ready(nvme, false);
    set_cc(nvme, NVMF_CC_ENABLE);
    wait_ready(nvme, true);
}

uint16_t nvme_identify(struct nvme *nvme, uint8_t cns, uint32_t nsid)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_IDENTIFY, .nsid = nsid, .cdw10 = cns};

    return nvme_run(nvme, nvme->admin, &sqe, NVME_IDENTIFY_LEN, NULL);
}

uint16_t nvme_get_log(struct nvme *nvme, uint32_t dword10, uint64_t offset,
                      uint32_t len_bytes)
{
    uint32_t numd = len_bytes / 4 - 1;
    struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LOG_PAGE,
        .nsid = NVME_NSID_ALL,
        .cdw10 = dword10 | numd << 16,
        .cdw11 = numd >> 16,
        .cdw12 = (uint32_t)offset,
        .cdw13 = (uint32_t)(offset >> 32),
    };

    return nvme_run(nvme, nvme->admin, &sqe, len_bytes, NULL);
}

const uint8_t *nvme_log(struct nvme *nvme, uint8_t lid, uint32_t len_bytes)
{
    conf_status(nvme->conf, "Get Log Page",
                nvme_get_log(nvme, lid, 0, len_bytes), NVME_SC_SUCCESS);
    return nvme->admin->mem;
}

uint32_t nvme_error_log_len(const struct nvme *nvme)
{
    return (nvme->ctrl[ID_CTRL_ELPE] + 1u) * LOG_ERROR_ENTRY_LEN;
}

uint32_t nvme_page_len(const struct nvme *nvme, uint8_t lid)
{
    switch (lid) {
    case LOG_ERROR:
        return nvme_error_log_len(nvme);
    case LOG_SMART:
    case LOG_FIRMWARE_SLOT:
        return 512;
    default:
        return 4096;
    }
}

struct nvme *nvme_open_page(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint8_t lpa = nvme->ctrl[ID_CTRL_LPA];

    if (lid == LOG_COMMANDS_EFFECTS && !(lpa & LPA_COMMANDS_EFFECTS)) {
        conf_not_applicable(conf, "LPA bit 1 is 0");
    }
    if (lid == LOG_CHANGED_NS_LIST &&
        !(get_le32(nvme->ctrl + ID_CTRL_OAES) & OAES_NS_ATTRIBUTE)) {
        conf_not_applicable(conf, "OAES bit 8 is 0");
    }
    return nvme;
}

/* ---- The persistent event log. */

enum { EVENTS_PIECE = 4096, EVENTS_MAX = 16 * 1024 * 1024 };

static uint16_t event_log(struct nvme *nvme, uint32_t action, uint32_t offset,
                          uint32_t len_bytes)
{
    return nvme_get_log(nvme, LOG_PERSISTENT_EVENT | action << PEL_ACTION_SHIFT,
                        offset, len_bytes);
}

struct nvme *nvme_open_events(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    if (!(nvme->ctrl[ID_CTRL_LPA] & LPA_PERSISTENT_EVENT)) {
        conf_not_applicable(conf, "LPA bit 4 is 0");
    }
    return nvme;
}

const uint8_t *nvme_events_page(struct nvme *nvme, uint32_t *len)
{
    struct conf *conf = nvme->conf;
    uint64_t total;
    uint8_t *page;

    conf_status(conf, "establish a reporting context",
                event_log(nvme, PEL_ESTABLISH, 0, PEL_HEADER_LEN),
                NVME_SC_SUCCESS);
    total = get_le64(nvme->admin->mem + PEL_LENGTH);
    conf_check(conf, total >= PEL_HEADER_LEN && total <= EVENTS_MAX,
               "TLL is %llu", (unsigned long long)total);
    *len = (uint32_t)total;
    page = conf_alloc(conf, *len + EVENTS_PIECE);
    memcpy(page, nvme->admin->mem, PEL_HEADER_LEN);
    for (uint32_t at = PEL_HEADER_LEN; at < *len; at += EVENTS_PIECE) {
        conf_status(conf, "read persistent events",
                    event_log(nvme, PEL_READ, at, EVENTS_PIECE),
                    NVME_SC_SUCCESS);
        memcpy(page + at, nvme->admin->mem, EVENTS_PIECE);
    }
    return page;
}

const uint8_t *nvme_event(struct nvme *nvme, uint32_t i, uint8_t type)
{
    uint32_t len, at = PEL_HEADER_LEN;
    const uint8_t *page = nvme_events_page(nvme, &len);

    conf_status(nvme->conf, "release the context",
                event_log(nvme, PEL_RELEASE, 0, PEL_HEADER_LEN),
                NVME_SC_SUCCESS);
    for (uint32_t k = 0; k < i && at + PEL_EVENT_HEADER_LEN <= len; k++) {
        at += 3u + page[at + PEL_EVENT_HEADER_REST] +
              get_le16(page + at + PEL_EVENT_LENGTH);
    }
    conf_check(nvme->conf, at + PEL_EVENT_HEADER_LEN <= len,
               "there is no event %u", i);
    conf_equal(nvme->conf, "type of the event", page[at], type);
    return page + at;
}

struct nvme *nvme_open_clock(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    if (!(get_le16(nvme->ctrl + ID_CTRL_ONCS) & ONCS_TIMESTAMP)) {
        conf_not_applicable(conf, "ONCS bit 6 is 0");
    }
    return nvme;
}

uint16_t nvme_timestamp(struct nvme *nvme, uint8_t opcode, uint32_t len_bytes)
{
    struct nvme_sqe sqe = {.opcode = opcode, .cdw10 = FEATURE_TIMESTAMP};

    return nvme_run(nvme, nvme->admin, &sqe, len_bytes, NULL);
}

uint64_t nvme_get_time(struct nvme *nvme, unsigned int *origin)
{
    uint8_t *mem = nvme->admin->mem;

    conf_status(nvme->conf, "Get Features",
                nvme_timestamp(nvme, ADMIN_GET_FEATURES, LOG_TIMESTAMP_LEN),
                NVME_SC_SUCCESS);
    *origin = mem[TIMESTAMP_ORIGIN] >> 1 & 7;
    conf_equal(nvme->conf, "reserved bits of byte 6",
               mem[TIMESTAMP_ORIGIN] & 0xf0, 0);
    conf_equal(nvme->conf, "reserved byte 7", mem[7], 0);
    return get_le64(mem) & LOG_TIMESTAMP_MASK;
}

uint8_t *nvme_whole_page(struct nvme *nvme, uint8_t lid)
{
    uint32_t len = nvme_page_len(nvme, lid);
    uint8_t *copy = conf_alloc(nvme->conf, len);

    memcpy(copy, nvme_log(nvme, lid, len), len);
    return copy;
}

uint16_t nvme_get_feature(struct nvme *nvme, uint8_t fid, uint8_t select,
                          uint32_t dword11, uint32_t *value)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_GET_FEATURES,
                           .cdw10 = (uint32_t)select << 8 | fid,
                           .cdw11 = dword11};
    struct nvme_cqe cqe;
    uint16_t status = nvme_run(nvme, nvme->admin, &sqe, 0, &cqe);

    *value = cqe.dw0;
    return status;
}

uint16_t nvme_set_feature(struct nvme *nvme, uint8_t fid, uint32_t dword11)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_SET_FEATURES, .cdw10 = fid, .cdw11 = dword11};

    return nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
}

struct nvme_sqe nvme_rw_sqe(const struct nvme *nvme, uint8_t opcode,
                            uint64_t lba, uint32_t blocks)
{
    return (struct nvme_sqe){
        .opcode = opcode,
        .nsid = nvme->nsid,
        .cdw10 = (uint32_t)lba,
        .cdw11 = (uint32_t)(lba >> 32),
        .cdw12 = blocks - 1,
    };
}

uint16_t nvme_rw(struct nvme *nvme, uint8_t opcode, uint64_t lba,
                 uint32_t blocks)
{
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, opcode, lba, blocks);
    bool has_data = opcode == NVM_READ || opcode == NVM_WRITE;

    return nvme_run(nvme, nvme->io, &sqe,
                    has_data ? blocks * nvme->block_bytes : 0, NULL);
}

uint8_t *nvme_capsule_of(struct rc *rc, const struct nvme_sqe *sqe,
                         uint32_t len)
{
    uint8_t *capsule = conf_alloc(rc->conf, NVME_CAPSULE_MAX);
    struct nvme_sqe entry = *sqe;
    struct sgl sgl = rc_keyed(rc, 0, len);

    entry.psdt = SQE_PSDT_SGL;
    nvme_sqe_emit(capsule, &entry);
    sgl_emit(capsule + SQE_SGL1, &sgl);
    return capsule;
}

uint32_t nvme_data_len(const struct nvme *nvme, uint8_t opcode)
{
    switch (opcode) {
    case NVM_READ:
    case NVM_WRITE:
        return nvme->block_bytes;
    case NVM_DATASET_MANAGEMENT:
        return 16;
    default:
        return 0;
    }
}

struct nvme_sqe nvme_right(const struct nvme *nvme, uint8_t opcode)
{
    return opcode == NVM_DATASET_MANAGEMENT
               ? (struct nvme_sqe){.opcode = opcode, .nsid = nvme->nsid}
               : nvme_rw_sqe(nvme, opcode, RIGHT_LBA, 1);
}

static uint32_t data_units(const struct nvme *nvme, uint32_t blocks)
{
    return blocks * (nvme->block_bytes / CONF_BLOCK);
}

void nvme_fill(struct nvme *nvme, uint64_t lba, uint32_t blocks,
               uint32_t version)
{
    conf_fill(nvme->io->mem, lba * data_units(nvme, 1),
              data_units(nvme, blocks), version);
}

void nvme_write(struct nvme *nvme, uint64_t lba, uint32_t blocks,
                uint32_t version)
{
    nvme_fill(nvme, lba, blocks, version);
    conf_status(nvme->conf, "Write", nvme_rw(nvme, NVM_WRITE, lba, blocks),
                NVME_SC_SUCCESS);
}

static void read_blocks(struct nvme *nvme, uint64_t lba, uint32_t blocks)
{
    memset(nvme->io->mem, NVME_GUARD_BYTE, (size_t)blocks * nvme->block_bytes);
    conf_status(nvme->conf, "Read", nvme_rw(nvme, NVM_READ, lba, blocks),
                NVME_SC_SUCCESS);
}

void nvme_verify(struct nvme *nvme, uint64_t lba, uint32_t blocks,
                 uint32_t version)
{
    size_t len = (size_t)blocks * nvme->block_bytes;
    uint8_t *expected = conf_alloc(nvme->conf, len);

    conf_fill(expected, lba * data_units(nvme, 1), data_units(nvme, blocks),
              version);
    read_blocks(nvme, lba, blocks);
    conf_same(nvme->conf, "data read", nvme->io->mem, expected, len);
}

void nvme_verify_zeroes(struct nvme *nvme, uint64_t lba, uint32_t blocks)
{
    size_t len = (size_t)blocks * nvme->block_bytes;

    read_blocks(nvme, lba, blocks);
    conf_same(nvme->conf, "data read", nvme->io->mem,
              conf_alloc(nvme->conf, len), len);
}

uint32_t nvme_inactive_nsid(struct nvme *nvme)
{
    uint32_t nsid = 1;

    conf_status(nvme->conf, "Identify, active namespaces",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, 0), NVME_SC_SUCCESS);
    for (uint32_t i = 0; i < NVME_IDENTIFY_LEN; i += 4) {
        if (get_le32(nvme->admin->mem + i) != nsid) {
            break; /* The list is ascending, so this number is missing. */
        }
        nsid++;
    }
    return nsid <= nvme->num_ns ? nsid : 0;
}

void nvme_expect_works(struct nvme *nvme)
{
    uint32_t value;

    /* Keep Alive will not do, because a target may refuse it while its timer is
     * off. */
    conf_status(nvme->conf, "Get Features, number of queues",
                nvme_get_feature(nvme, FEATURE_NUMBER_OF_QUEUES, 0, 0, &value),
                NVME_SC_SUCCESS);
    if (nvme->io != NULL) {
        conf_status(nvme->conf, "Read", nvme_rw(nvme, NVM_READ, 0, 1),
                    NVME_SC_SUCCESS);
    }
}
