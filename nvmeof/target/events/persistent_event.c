/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The persistent event log, LID 0Dh: what has happened to the drive, newest
 * event first.
 * Spec: NVM Express Base 2.0 section 5.16.1.14.
 *
 * The events are in a ring of bytes, oldest first, each followed by its length,
 * so that they can be walked in both directions.  The page has as many of the
 * newest ones as fit into PEL_PAGE_MAX.  The application stores each event, and
 * restores them after a restart.
 *
 * A host reads the page in pieces.  Its reporting context remembers which
 * events the page has, and new ones do not change the page.  The ring is larger
 * than the page.  A context whose oldest event is overwritten nevertheless is
 * lost, and its host has to establish another one.
 *
 * So that no host wears out the flash or pushes everything else out of the log,
 * events of one type are limited: PEL_BURST may come at once, and then one in
 * PEL_PACE_US.  So that no host costs others their events, each host has a
 * share of those that are left, and the last ones are for the drive's own
 * events.
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/events/events.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/persistent_event.h"

enum {
    TRAILER_LEN = 2, /* length of the event before it */
    REVISION_1_4 = 1,
    REVISION_2_0 = 2,
    CLOCK_STEP_MS = 1000, /* smaller corrections are no events */
    SMART_HOURS = 24,
};

/* ---- The ring. */

static void ring_write(struct persistent_log *log, uint64_t at,
                       const uint8_t *data, uint32_t len)
{
    uint32_t from = (uint32_t)(at % PEL_RING_BYTES);
    uint32_t first = MIN(len, PEL_RING_BYTES - from);

    memcpy(log->ring + from, data, first);
    memcpy(log->ring, data + first, len - first);
}

static void ring_read(const struct persistent_log *log, uint64_t at,
                      uint8_t *data, uint32_t len)
{
    uint32_t from = (uint32_t)(at % PEL_RING_BYTES);
    uint32_t first = MIN(len, PEL_RING_BYTES - from);

    memcpy(data, log->ring + from, first);
    memcpy(data + first, log->ring, len - first);
}

/* The length of the event that ends at `end`, without its trailer. */
static uint32_t len_before(const struct persistent_log *log, uint64_t end)
{
    uint8_t trailer[TRAILER_LEN];

    ring_read(log, end - TRAILER_LEN, trailer, sizeof(trailer));
    return get_le16(trailer);
}

static void drop_oldest(struct persistent_log *log)
{
    uint8_t header[PEL_EVENT_HEADER_LEN];

    ring_read(log, log->start, header, sizeof(header));
    log->start +=
        sizeof(header) + get_le16(header + PEL_EVENT_LENGTH) + TRAILER_LEN;
    log->kept--;
}

static void append_event(struct persistent_log *log, const uint8_t *event,
                         uint32_t len)
{
    uint8_t trailer[TRAILER_LEN];

    while (log->end + len + TRAILER_LEN - log->start > PEL_RING_BYTES) {
        drop_oldest(log);
    }
    put_le16(trailer, (uint16_t)len);
    ring_write(log, log->end, event, len);
    ring_write(log, log->end + len, trailer, TRAILER_LEN);
    log->end += len + TRAILER_LEN;
    log->kept++;
}

/* ---- Recording events. */

/* The index of an event's type in pel.pace_us.  PEL_TYPE_VENDOR has index 0,
 * because no type is 0. */
static uint8_t pace_index(uint8_t type)
{
    ASSERT(type < PEL_TYPES || type == PEL_TYPE_VENDOR);
    return type == PEL_TYPE_VENDOR ? 0 : type;
}

static unsigned int used_by(const struct pel_share *share)
{
    unsigned int sum = 0;

    for (size_t i = 0; i < PEL_TYPES; i++) {
        sum += share->used[i];
    }
    return sum;
}

/* The share of a host; a new host gets that of the host with fewest events. */
static struct pel_share *find_share(struct persistent_log *log, uint32_t host)
{
    struct pel_share *least = &log->share[0];

    for (size_t i = 0; i < PEL_SHARES; i++) {
        if (log->share[i].host == host) {
            return &log->share[i];
        }
        if (used_by(&log->share[i]) < used_by(least)) {
            least = &log->share[i];
        }
    }
    *least = (struct pel_share){.host = host};
    return least;
}

/* With time, hosts get their shares back. */
static void halve_shares(struct persistent_log *log, uint64_t now_us)
{
    uint64_t times = (now_us - log->halved_us) / PEL_HALVE_US;

    for (size_t i = 0; i < PEL_SHARES && times != 0; i++) {
        for (size_t k = 0; k < PEL_TYPES; k++) {
            log->share[i].used[k] =
                (uint16_t)(log->share[i].used[k] >> MIN(times, 15u));
        }
    }
    log->halved_us += times * PEL_HALVE_US;
}

/*
 * Whether an event of this type may be recorded now; if so, it is counted.
 *
 * @param ctrl  the controller that has caused it, or NULL
 */
static bool may_record(struct nvmf_target *target, uint8_t type,
                       const struct nvmf_ctrl *ctrl)
{
    struct persistent_log *log = &target->pel;
    uint64_t *pace_us = &log->pace_us[pace_index(type)];
    uint64_t left;

    *pace_us = MAX(*pace_us, target->now_us);
    left =
        PEL_BURST - (*pace_us - target->now_us + PEL_PACE_US - 1) / PEL_PACE_US;
    if (ctrl != NULL) {
        uint16_t *used;

        halve_shares(log, target->now_us);
        used = &find_share(log, ctrl_host_number(ctrl))->used[pace_index(type)];
        left -= MIN(left, PEL_FOR_DRIVE);
        if (*used >= left) {
            return false;
        }
        (*used)++;
    }
    if (left == 0) {
        return false;
    }
    *pace_us += PEL_PACE_US;
    return true;
}

/* @param ctrl  the controller that has caused the event, or NULL */
static void record_event(struct nvmf_target *target, uint8_t type,
                         const struct nvmf_ctrl *ctrl, const uint8_t *data,
                         uint16_t len)
{
    struct pel_event header = {
        .type = type,
        .has_port = ctrl != NULL,
        .portid = ctrl != NULL ? ctrl->portid : 0,
        .cntlid = ctrl != NULL ? ctrl->cntlid : PEL_EVENT_NO_CNTLID,
        .len = len,
    };
    uint8_t event[PEL_EVENT_MAX];

    ASSERT(len <= PEL_EVENT_DATA_MAX);
    if (!may_record(target, type, ctrl)) {
        return;
    }
    (void)nvmf_target_time(target, &header.time_ms);
    pel_event_emit(event, &header);
    memcpy(event + PEL_EVENT_HEADER_LEN, data, len);
    append_event(&target->pel, event, PEL_EVENT_HEADER_LEN + len);
    target->pel.count++;
}

static struct pel_context *context_of(struct nvmf_target *target,
                                      const struct nvmf_ctrl *ctrl)
{
    return &target->pel.context[ctrl - target->ctrl];
}

static uint64_t ms_since(const struct nvmf_target *target, uint64_t us)
{
    return (target->now_us - us) / 1000;
}

void pel_note_clock(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                    bool was_set, uint64_t before_ms)
{
    uint8_t data[PEL_CLOCK_LEN];
    uint64_t now_ms;

    (void)nvmf_target_time(target, &now_ms);
    if (was_set && before_ms + CLOCK_STEP_MS > now_ms &&
        now_ms + CLOCK_STEP_MS > before_ms) {
        return;
    }
    put_le64(data + PEL_CLOCK_BEFORE, before_ms & LOG_TIMESTAMP_MASK);
    put_le64(data + PEL_CLOCK_SINCE_RESET,
             ms_since(target, ctrl != NULL ? context_of(target, ctrl)->reset_us
                                           : target->pel.started_us));
    record_event(target, PEL_TYPE_CLOCK, ctrl, data, sizeof(data));
}

static void put_reset(const struct nvmf_target *target, uint16_t cntlid,
                      uint8_t *to)
{
    uint64_t now_ms;

    (void)nvmf_target_time(target, &now_ms);
    memset(to, 0, PEL_RESET_DESCRIPTOR_LEN);
    put_le16(to + PEL_RESET_CNTLID, cntlid);
    put_le32(to + PEL_RESET_POWER_CYCLES,
             (uint32_t)target->config.health.power_cycles);
    put_le64(to + PEL_RESET_POWER_ON_MS,
             ms_since(target, target->pel.started_us));
    put_le64(to + PEL_RESET_TIMESTAMP, now_ms & LOG_TIMESTAMP_MASK);
}

/* Record a reset of `count` controllers, whose descriptors are in `data`. */
static void record_reset(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint8_t *data,
                         unsigned int count)
{
    identify_put_ascii(data + PEL_RESET_FR, target->config.fr,
                       PEL_RESET_LIST - PEL_RESET_FR);
    record_event(target, PEL_TYPE_RESET, ctrl, data,
                 (uint16_t)(PEL_RESET_LIST + count * PEL_RESET_DESCRIPTOR_LEN));
}

void pel_note_reset(struct nvmf_target *target, const struct nvmf_ctrl *ctrl)
{
    uint8_t data[PEL_RESET_LIST + PEL_RESET_DESCRIPTOR_LEN];

    if (!ctrl->is_discovery) {
        put_reset(target, ctrl->cntlid, data + PEL_RESET_LIST);
        record_reset(target, ctrl, data, 1);
    }
}

/* A host has reset the subsystem.  The list has as many of its controllers as
 * an event can hold. */
void pel_note_subsystem_reset(struct nvmf_target *target,
                              const struct nvmf_ctrl *own)
{
    uint8_t data[PEL_EVENT_DATA_MAX];
    unsigned int count = 0;

    for (uint8_t i = 0; i < NVMF_MAX_HOSTS && count < PEL_RESET_MAX; i++) {
        const struct nvmf_ctrl *ctrl = &target->ctrl[i];

        if (ctrl_is(ctrl, CTRL_IS_MEMBER)) {
            put_reset(target, ctrl->cntlid,
                      data + PEL_RESET_LIST +
                          (size_t)count * PEL_RESET_DESCRIPTOR_LEN);
            count++;
        }
    }
    record_reset(target, own, data, count);
}

static void record_smart(struct nvmf_target *target)
{
    struct log_smart smart = log_smart_of_drive(target);
    uint8_t data[LOG_SMART_LEN];

    log_smart_emit(data, &smart);
    record_event(target, PEL_TYPE_SMART, NULL, data, sizeof(data));
    target->pel.smart_hours = smart.power_on_hours;
}

void pel_note_hours(struct nvmf_target *target)
{
    if (target->config.health.power_on_hours >=
        target->pel.smart_hours + SMART_HOURS) {
        record_smart(target);
    }
}

static void record_unsafe_shutdown(struct nvmf_target *target)
{
    uint8_t data[PEL_ERROR_SHUTDOWN_LEN] = {0};

    put_le16(data + PEL_ERROR_CODE, PEL_ERROR_UNSAFE_SHUTDOWN);
    put_le64(data + PEL_ERROR_INFO, target->config.health.unsafe_shutdowns);
    record_event(target, PEL_TYPE_HARDWARE_ERROR, NULL, data, sizeof(data));
}

void nvmf_target_started(struct nvmf_target *target, bool was_unsafe)
{
    uint8_t data[PEL_RESET_LIST + PEL_RESET_DESCRIPTOR_LEN];

    if (was_unsafe) {
        record_unsafe_shutdown(target);
    }
    put_reset(target, PEL_EVENT_NO_CNTLID, data + PEL_RESET_LIST);
    record_reset(target, NULL, data, 1);
    record_smart(target);
}

void nvmf_target_was_fatal(struct nvmf_target *target)
{
    uint8_t data[PEL_ERROR_FATAL_LEN] = {0};

    put_le16(data + PEL_ERROR_CODE, PEL_ERROR_FATAL);
    record_event(target, PEL_TYPE_HARDWARE_ERROR, NULL, data, sizeof(data));
}

/*
 * The drive's health has changed.  A bit of Critical Warning that is set now
 * and was not set before is an event, with all bits as they are now.  The bit
 * about temperature is left out: a drive whose temperature is near its limit
 * would fill the log.
 */
void pel_note_health(struct nvmf_target *target)
{
    uint8_t warning = log_smart_of_drive(target).critical_warning &
                      (uint8_t)~SMART_WARN_TEMPERATURE;
    uint8_t data[PEL_ERROR_WARNING_LEN] = {0};

    if ((warning & ~target->pel.warning) != 0) {
        put_le16(data + PEL_ERROR_CODE, PEL_ERROR_CRITICAL_WARNING);
        data[PEL_ERROR_INFO] = warning;
        record_event(target, PEL_TYPE_HARDWARE_ERROR, NULL, data, sizeof(data));
    }
    target->pel.warning = warning;
}

void pel_note_media_error(struct nvmf_target *target,
                          const struct nvmf_request *req, uint16_t status)
{
    const struct nvmf_qpair *qpair = request_qpair(target, req);
    uint8_t data[PEL_ERROR_MEDIA_LEN] = {0};

    put_le16(data + PEL_ERROR_CODE, PEL_ERROR_MEDIA);
    nvme_cqe_emit(data + PEL_ERROR_INFO, &(struct nvme_cqe){
                                             .sqhd = qpair->sqhd,
                                             .cid = req->sqe.cid,
                                             .status = status,
                                         });
    put_le16(data + PEL_ERROR_INFO + CQE_SQID, qpair->qid);
    record_event(target, PEL_TYPE_HARDWARE_ERROR, &target->ctrl[qpair->ctrl],
                 data, sizeof(data));
}

/* ---- Namespaces, Format and Sanitize. */

/* A namespace is about to be created or deleted, or was created. */
void pel_note_change_ns(struct nvmf_target *target,
                        const struct nvmf_request *req,
                        const struct nvmf_ns *ns, uint32_t nsid)
{
    uint8_t data[PEL_NS_LEN] = {0};

    put_le32(data + PEL_NS_CDW10, req->sqe.cdw10);
    put_le32(data + PEL_NS_NSID, nsid);
    if (ns != NULL) {
        put_le64(data + PEL_NS_NSZE, ns->geometry.size_blocks);
        put_le64(data + PEL_NS_NCAP, ns->geometry.size_blocks);
        data[PEL_NS_FLBAS] = ns_flbas(ns);
        data[PEL_NS_DPS] = ns_dps(ns);
        data[PEL_NS_NMIC] = ns->volume.is_private ? 0 : NMIC_SHARED;
        put_le32(data + PEL_NS_ANAGRPID, ns->anagrpid);
    }
    record_event(target, PEL_TYPE_CHANGE_NS, request_ctrl(target, req), data,
                 sizeof(data));
}

void pel_note_format_start(struct nvmf_target *target,
                           const struct nvmf_request *req)
{
    uint8_t data[PEL_FORMAT_START_LEN] = {0};

    put_le32(data + PEL_FORMAT_NSID, req->sqe.nsid);
    put_le32(data + PEL_FORMAT_CDW10, req->sqe.cdw10); /* FNA is 0 */
    record_event(target, PEL_TYPE_FORMAT_START, request_ctrl(target, req), data,
                 sizeof(data));
}

/* A Format has ended.  @param req  NULL: its command was lost in a restart */
void pel_note_format_end(struct nvmf_target *target,
                         const struct nvmf_request *req, uint32_t nsid,
                         uint16_t status)
{
    uint8_t data[PEL_FORMAT_END_LEN] = {0};

    put_le32(data + PEL_FORMAT_NSID, nsid);
    put_le16(data + PEL_FORMAT_STATUS, (uint16_t)(status << 1));
    record_event(target, PEL_TYPE_FORMAT_END,
                 req != NULL ? request_ctrl(target, req) : NULL, data,
                 sizeof(data));
}

static const struct nvmf_ctrl *sanitizing_ctrl(const struct nvmf_target *target)
{
    uint8_t index = ctrl_find(target, target->sanitize.cntlid);

    return index != NO_CTRL ? &target->ctrl[index] : NULL;
}

void pel_note_sanitize_start(struct nvmf_target *target)
{
    const struct nvmf_sanitize *job = &target->sanitize.job;
    uint8_t data[PEL_SANITIZE_START_LEN];

    put_le32(data + PEL_SANITIZE_SANICAP, sanitize_capabilities(target));
    put_le32(data + PEL_SANITIZE_CDW10, job->cdw10);
    put_le32(data + PEL_SANITIZE_CDW11, job->pattern);
    record_event(target, PEL_TYPE_SANITIZE_START, sanitizing_ctrl(target), data,
                 sizeof(data));
}

/* @param progress, status  as in the log page */
void pel_note_sanitize_end(struct nvmf_target *target, uint16_t progress,
                           uint16_t status)
{
    uint8_t data[PEL_SANITIZE_END_LEN] = {0};

    put_le16(data + PEL_SANITIZE_PROGRESS, progress);
    put_le16(data + PEL_SANITIZE_STATUS, status);
    record_event(target, PEL_TYPE_SANITIZE_END, sanitizing_ctrl(target), data,
                 sizeof(data));
}

/* ---- Firmware. */

void pel_note_firmware(struct nvmf_target *target,
                       const struct nvmf_request *req, uint8_t slot,
                       uint16_t status)
{
    const struct nvmf_firmware *firmware = &target->config.firmware;
    const char *revision = "";
    struct nvmf_firmware_now now;
    uint8_t data[PEL_FIRMWARE_LEN] = {0};

    firmware->describe(firmware->ctx, &now);
    if (slot >= 1 && slot <= NVMF_FIRMWARE_SLOTS) {
        revision = now.revision[slot - 1];
    }
    identify_put_ascii(data + PEL_FIRMWARE_OLD, target->config.fr,
                       NVMF_FIRMWARE_REVISION);
    identify_put_ascii(data + PEL_FIRMWARE_NEW, revision,
                       NVMF_FIRMWARE_REVISION);
    data[PEL_FIRMWARE_ACTION] =
        req != NULL ? (uint8_t)(req->sqe.cdw10 >> 3 & 7) : 0;
    data[PEL_FIRMWARE_SLOT] = slot;
    data[PEL_FIRMWARE_SCT] = (uint8_t)(status >> 8 & 7);
    data[PEL_FIRMWARE_SC] = (uint8_t)status;
    put_le16(data + PEL_FIRMWARE_VENDOR,
             req != NULL ? PEL_FIRMWARE_COMMITTED : PEL_FIRMWARE_GIVEN_UP);
    record_event(target, PEL_TYPE_FIRMWARE,
                 req != NULL ? request_ctrl(target, req) : NULL, data,
                 sizeof(data));
}

/* ---- Set Features and telemetry. */

void pel_note_set_feature(struct nvmf_target *target,
                          const struct nvmf_request *req)
{
    const uint32_t dwords[PEL_FEATURE_COUNT] = {req->sqe.cdw10, req->sqe.cdw11,
                                                req->sqe.cdw12, req->sqe.cdw13,
                                                req->sqe.cdw14, req->sqe.cdw15};
    uint8_t data[PEL_FEATURE_LEN];

    put_le32(data + PEL_FEATURE_LAYOUT, PEL_FEATURE_COUNT);
    for (size_t i = 0; i < PEL_FEATURE_COUNT; i++) {
        put_le32(data + PEL_FEATURE_DWORDS + 4 * i, dwords[i]);
    }
    record_event(target, PEL_TYPE_SET_FEATURE, request_ctrl(target, req), data,
                 sizeof(data));
}

/* @param header  of the page, TELEMETRY_HEADER_LEN bytes */
void pel_note_telemetry(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, const uint8_t *header)
{
    record_event(target, PEL_TYPE_TELEMETRY, ctrl, header,
                 TELEMETRY_HEADER_LEN);
}

/* ---- What only this drive has. */

void nvmf_target_record_vendor(struct nvmf_target *target,
                               const struct nvmf_vendor_event *event)
{
    uint16_t name_len = (uint16_t)(strlen(event->name) + 1);
    uint16_t text_len = (uint16_t)(strlen(event->text) + 1);
    char text[NVMF_EVENT_TEXT_MAX + 4] = {0};
    uint8_t data[PEL_EVENT_DATA_MAX];
    size_t len;

    ASSERT(name_len <= NVMF_EVENT_NAME_MAX + 1 &&
           text_len <= NVMF_EVENT_TEXT_MAX + 1 &&
           event->data_len <= NVMF_EVENT_DATA_MAX);
    memcpy(text, event->text, text_len);
    /* Append zeroes to the text, because nvme-cli cannot read a page whose
     * length is not a multiple of 4. */
    while ((3 * PEL_VENDOR_DATA + name_len + text_len + event->data_len) % 4) {
        text_len++;
    }
    len = pel_vendor_emit(data, event->code, PEL_VENDOR_NAME, event->name,
                          name_len);
    len += pel_vendor_emit(data + len, event->code, PEL_VENDOR_TEXT, text,
                           text_len);
    len += pel_vendor_emit(data + len, event->code, PEL_VENDOR_BINARY,
                           event->data, event->data_len);
    record_event(target, PEL_TYPE_VENDOR, NULL, data, (uint16_t)len);
}

_Static_assert(3 * PEL_VENDOR_DATA + NVMF_EVENT_NAME_MAX + NVMF_EVENT_TEXT_MAX +
                       4 + NVMF_EVENT_DATA_MAX <=
                   PEL_EVENT_DATA_MAX,
               "an event has space for its three descriptors");

static uint32_t supported_types(const struct nvmf_target *target)
{
    uint32_t types = BIT(PEL_TYPE_SMART) | BIT(PEL_TYPE_CLOCK) |
                     BIT(PEL_TYPE_RESET) | BIT(PEL_TYPE_HARDWARE_ERROR) |
                     BIT(PEL_TYPE_SET_FEATURE);

    if (firmware_exists(target)) {
        types |= BIT(PEL_TYPE_FIRMWARE);
    }

    if (ns_are_manageable(target)) {
        types |= BIT(PEL_TYPE_CHANGE_NS) | BIT(PEL_TYPE_FORMAT_START) |
                 BIT(PEL_TYPE_FORMAT_END);
    }
    if (sanitize_exists(target)) {
        types |= BIT(PEL_TYPE_SANITIZE_START) | BIT(PEL_TYPE_SANITIZE_END);
    }
    if (telemetry_exists(target)) {
        types |= BIT(PEL_TYPE_TELEMETRY);
    }
    return types;
}

/* ---- Storing and restoring. */

uint64_t nvmf_target_events(const struct nvmf_target *target)
{
    return target->pel.count;
}

bool nvmf_target_event(const struct nvmf_target *target, uint64_t number,
                       uint8_t *event, uint16_t *len)
{
    const struct persistent_log *log = &target->pel;
    uint64_t end = log->end;

    if (number == 0 || number > log->count ||
        log->count - number >= log->kept) {
        return false;
    }
    for (uint64_t i = log->count; i > number; i--) {
        end -= len_before(log, end) + TRAILER_LEN;
    }
    *len = (uint16_t)len_before(log, end);
    ring_read(log, end - TRAILER_LEN - *len, event, *len);
    return true;
}

void nvmf_target_restore_event(struct nvmf_target *target, uint64_t number,
                               const uint8_t *event, uint16_t len)
{
    struct persistent_log *log = &target->pel;

    if (number <= log->count || pel_event_len(event, len) != len) {
        return;
    }
    append_event(log, event, len);
    log->count = number;
    if (event[PEL_EVENT_TYPE] == PEL_TYPE_SMART &&
        len == PEL_EVENT_HEADER_LEN + LOG_SMART_LEN) {
        log->smart_hours =
            get_le64(event + PEL_EVENT_HEADER_LEN + SMART_POWER_ON_HOURS);
    }
}
void pel_init(struct persistent_log *log, uint64_t genctr, uint64_t now_us)
{
    log->started_us = now_us;
    /* Each boot begins with another high byte, so that generation numbers of
     * the last boot are not soon used again. */
    log->generation = (uint16_t)((genctr >> 16) << 8);
}

/* ---- Reporting contexts. */

void pel_reset_ctrl(struct nvmf_target *target, const struct nvmf_ctrl *ctrl)
{
    struct pel_context *context = context_of(target, ctrl);

    context->exists = false;
    context->reset_us = target->now_us;
}

/* A context is lost when the oldest of its events was overwritten. */
static bool context_is_valid(const struct nvmf_target *target,
                             const struct pel_context *context)
{
    return context->exists && context->first >= target->pel.start;
}

static void establish_context(struct nvmf_target *target,
                              struct pel_context *context)
{
    struct persistent_log *log = &target->pel;

    context->exists = true;
    context->end = log->end;
    context->first = log->end;
    context->events = 0;
    context->length = PEL_HEADER_LEN;
    while (context->events < log->kept) {
        uint32_t len = len_before(log, context->first);

        if (context->length + len > PEL_PAGE_MAX) {
            break;
        }
        context->first -= len + TRAILER_LEN;
        context->length += len;
        context->events++;
    }
    context->has_time = nvmf_target_time(target, &context->time_ms);
    context->generation = ++log->generation;
    context->walk_offset = PEL_HEADER_LEN;
    context->walk_end = context->end;
}

static uint8_t action_of(const struct nvmf_request *req)
{
    return (uint8_t)(req->sqe.cdw10 >> PEL_ACTION_SHIFT & 3);
}

uint16_t pel_check(struct nvmf_request *req)
{
    switch (action_of(req)) {
    case PEL_RELEASE: /* length and offset do not matter */
        req->data_len = 0;
        return NVME_SC_SUCCESS;
    case PEL_HEADER:
        req->data_len = PEL_HEADER_LEN;
        return NVME_SC_SUCCESS;
    default:
        return req->sqe.cdw12 % 4 == 0
                   ? NVME_SC_SUCCESS
                   : refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12, 0);
    }
}

static uint16_t refuse_action(struct nvmf_request *req)
{
    return refuse_field(req, NVME_SC_COMMAND_SEQUENCE, SQE_CDW10 + 1, 0);
}

/* The first part of the page is about to be copied. */
static uint16_t begin_action(struct nvmf_target *target,
                             struct nvmf_request *req,
                             struct pel_context *context)
{
    uint8_t action = action_of(req);
    uint64_t offset = (uint64_t)req->sqe.cdw13 << 32 | req->sqe.cdw12;

    context->existed = context_is_valid(target, context);
    if (action == PEL_RELEASE) {
        context->exists = false;
        return NVME_SC_SUCCESS;
    }
    if (action != PEL_HEADER && context->existed != (action == PEL_READ)) {
        return refuse_action(req);
    }
    if (!context->existed) {
        establish_context(target, context);
    }
    if (action != PEL_HEADER && offset > context->length) {
        context->exists = context->existed; /* it stays as it was before */
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12, 0);
    }
    return NVME_SC_SUCCESS;
}

uint16_t pel_begin_read(struct nvmf_target *target, struct nvmf_request *req,
                        uint64_t *offset)
{
    struct pel_context *context = context_of(target, request_ctrl(target, req));

    if (action_of(req) == PEL_HEADER) {
        *offset = req->transfer.data_offset;
    }
    if (req->transfer.data_offset == 0) {
        return begin_action(target, req, context);
    }
    /* Another command may have released it meanwhile. */
    return context_is_valid(target, context) ? NVME_SC_SUCCESS
                                             : refuse_action(req);
}

uint32_t pel_len(const struct nvmf_target *target, const struct nvmf_ctrl *ctrl)
{
    const struct pel_context *context =
        &target->pel.context[ctrl - target->ctrl];

    return context_is_valid(target, context) ? context->length : 0;
}

/* ---- The page. */

static void build_header(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl,
                         const struct pel_context *context)
{
    const struct nvmf_config *config = &target->config;
    bool has_generation = config->vs >= NVMF_VS_2_0;
    struct pel_header header = {
        .events = context->events,
        .length = context->length,
        .revision = has_generation ? REVISION_2_0 : REVISION_1_4,
        .has_time = context->has_time,
        .time_ms = context->time_ms,
        .power_on_hours = config->health.power_on_hours,
        .power_cycles = config->health.power_cycles,
        .vid = config->vid,
        .ssvid = config->ssvid,
        .sn = config->sn,
        .mn = config->mn,
        .subnqn = config->subnqn,
        .generation = has_generation ? context->generation : 0,
        .supported = supported_types(target),
    };

    if (has_generation && context->existed) {
        header.context = PEL_CONTEXT_EXISTS | PEL_CONTEXT_PORT | ctrl->portid;
    }
    pel_header_emit(target->page, &header);
}

/*
 * Copy the bytes from `offset` of the page on.  A host reads the page from its
 * beginning to its end, so the walk goes on where the last one ended.
 */
static void build_events(struct nvmf_target *target,
                         struct pel_context *context, uint32_t offset,
                         uint8_t *to, uint32_t len)
{
    const struct persistent_log *log = &target->pel;
    uint8_t event[PEL_EVENT_MAX];

    if (offset < context->walk_offset) {
        context->walk_offset = PEL_HEADER_LEN;
        context->walk_end = context->end;
    }
    while (len > 0 && context->walk_end > context->first) {
        uint32_t event_len = len_before(log, context->walk_end);
        uint32_t skip = offset - context->walk_offset;

        if (skip < event_len) {
            uint32_t n = MIN(event_len - skip, len);

            ring_read(log, context->walk_end - TRAILER_LEN - event_len, event,
                      event_len);
            memcpy(to, event + skip, n);
            to += n;
            offset += n;
            len -= n;
        }
        if (offset - context->walk_offset < event_len) {
            break; /* the next part begins in the middle of this event */
        }
        context->walk_offset += event_len;
        context->walk_end -= event_len + TRAILER_LEN;
    }
    memset(to, 0, len);
}

void pel_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
               uint32_t part)
{
    struct pel_context *context = context_of(target, ctrl);
    uint32_t skip = 0;

    if (part == 0) {
        build_header(target, ctrl, context);
        skip = PEL_HEADER_LEN;
    }
    build_events(target, context, part * PEL_PART_LEN + skip,
                 target->page + skip, PEL_PART_LEN - skip);
}
