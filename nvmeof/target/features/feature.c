/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get Features and Set Features.
 * Spec: NVM Express Base 1.4 section 5.21; Fabrics 1.1 section 4.2.
 *
 * Only the vendor's features (FID D0h and above) and OCP's latency monitor are
 * saveable.  For all others Save is refused, and the saved value is the
 * default.  Values belong to a controller, except those of the write cache, of
 * the clock, of the latency monitor and of the vendor's features, which belong
 * to the drive.
 */
#include "lib/bytes.h"
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"
#include "nvmeof/target/reservations/reservations.h"
#include "nvmeof/target/features/features.h"
#include "nvmeof/target/base/level.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/ocp.h"

enum { /* the field Select of dword 10 */
       SELECT_CURRENT = NVMF_SELECT_CURRENT,
       SELECT_CAPABILITIES = 3,
       SELECT_SHIFT = 8,
       SAVE_BIT = 31,
       CAPABILITY_SAVEABLE = 0x1,
       CAPABILITY_NAMESPACE = 0x2,
       CAPABILITY_CHANGEABLE = 0x4,
};

enum { /* temperature threshold, fields of dword 11 */
       TMPSEL_SHIFT = 16,
       TMPSEL_COMPOSITE = 0,
       TMPSEL_SENSOR1 = 1,
       TMPSEL_ALL = 0xf,
       THSEL_SHIFT = 20,
       THSEL_OVER = 0,
       THSEL_UNDER = 1,
};

struct feature {
    uint8_t fid;
    bool is_on_discovery;
    bool is_changeable;
    bool decides_default; /* get() computes the default from the command */
    bool is_of_namespace; /* NSID names the namespace that it belongs to */
    uint16_t data_len;    /* bytes of data of Get Features */
    uint16_t set_len;     /* bytes of data of Set Features */
    uint32_t default_value;

    /* Check the command's fields.  NULL if any value is valid. */
    uint16_t (*check_get)(const struct nvmf_target *target,
                          struct nvmf_request *req);
    /* Return the current value; if data_len is not 0, write the data too. */
    uint32_t (*get)(const struct nvmf_target *target,
                    const struct nvmf_ctrl *ctrl, struct nvmf_request *req);
    uint16_t (*set)(struct nvmf_target *target, struct nvmf_request *req);
    /* Whether the value can be saved.  NULL: it cannot. */
    bool (*is_saveable)(const struct nvmf_target *target);
};

static uint32_t arbitration_get(const struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl,
                                struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return ctrl->features.arbitration;
}

static uint16_t arbitration_set(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    request_ctrl(target, req)->features.arbitration = req->sqe.cdw11;
    return NVME_SC_SUCCESS;
}

static uint32_t power_get(const struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl,
                          struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return ctrl->features.power_management;
}

static uint16_t power_set(struct nvmf_target *target, struct nvmf_request *req)
{
    if ((req->sqe.cdw11 & 0x1f) != 0) { /* only power state 0 exists */
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11, 0);
    }
    request_ctrl(target, req)->features.power_management =
        req->sqe.cdw11 & 0xff;
    return NVME_SC_SUCCESS;
}

/* The number of a command's sensor, from 0. @return false: it is composite */
static bool temperature_sensor(uint32_t cdw11, uint32_t *sensor)
{
    uint32_t tmpsel = cdw11 >> TMPSEL_SHIFT & 0xf;

    *sensor = tmpsel - TMPSEL_SENSOR1;
    return tmpsel != TMPSEL_COMPOSITE && tmpsel != TMPSEL_ALL;
}

static bool temperature_sensor_exists(const struct nvmf_target *target,
                                      uint32_t sensor)
{
    return sensor < NVMF_TEMPERATURE_SENSORS &&
           target->config.health.sensor_k[sensor] != 0;
}

static uint16_t temperature_check(const struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    uint32_t tmpsel = req->sqe.cdw11 >> TMPSEL_SHIFT & 0xf;
    uint32_t sensor;

    if ((temperature_sensor(req->sqe.cdw11, &sensor) &&
         !temperature_sensor_exists(target, sensor)) ||
        (tmpsel == TMPSEL_ALL && req->sqe.opcode == ADMIN_GET_FEATURES)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11 + 2, 0);
    }
    if ((req->sqe.cdw11 >> THSEL_SHIFT & 3) > THSEL_UNDER) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11 + 2, 4);
    }
    return NVME_SC_SUCCESS;
}

static uint32_t temperature_default(bool is_over, bool is_sensor)
{
    if (!is_over) {
        return 0;
    }
    return is_sensor ? NO_OVER_THRESHOLD_K : DEFAULT_WCTEMP_K;
}

static uint32_t temperature_get(const struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl,
                                struct nvmf_request *req)
{
    bool is_over = (req->sqe.cdw11 >> THSEL_SHIFT & 3) == THSEL_OVER;
    bool is_current = (req->sqe.cdw10 >> SELECT_SHIFT & 7) == SELECT_CURRENT;
    uint32_t sensor;
    bool is_sensor = temperature_sensor(req->sqe.cdw11, &sensor);

    (void)target;
    if (!is_current) {
        return temperature_default(is_over, is_sensor);
    }
    if (is_sensor) {
        return is_over ? ctrl->features.sensor_over_k[sensor]
                       : ctrl->features.sensor_under_k[sensor];
    }
    return is_over ? ctrl->features.temperature_over_k
                   : ctrl->features.temperature_under_k;
}

static void temperature_set_sensor(struct nvmf_features *features,
                                   uint32_t cdw11, uint32_t sensor)
{
    if ((cdw11 >> THSEL_SHIFT & 3) == THSEL_OVER) {
        features->sensor_over_k[sensor] = (uint16_t)cdw11;
    } else {
        features->sensor_under_k[sensor] = (uint16_t)cdw11;
    }
}

static void temperature_set_composite(struct nvmf_features *features,
                                      uint32_t cdw11)
{
    if ((cdw11 >> THSEL_SHIFT & 3) == THSEL_OVER) {
        features->temperature_over_k = (uint16_t)cdw11;
    } else {
        features->temperature_under_k = (uint16_t)cdw11;
    }
}

static uint16_t temperature_set(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint16_t status = temperature_check(target, req);
    uint32_t cdw11 = req->sqe.cdw11, number;
    bool is_sensor = temperature_sensor(cdw11, &number);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (!is_sensor) {
        temperature_set_composite(&ctrl->features, cdw11);
    }
    /* TMPSEL of Fh also sets the thresholds of all sensors. */
    for (uint32_t i = 0; i < NVMF_TEMPERATURE_SENSORS; i++) {
        if (is_sensor ? i == number
                      : (cdw11 >> TMPSEL_SHIFT & 0xf) == TMPSEL_ALL &&
                            temperature_sensor_exists(target, i)) {
            temperature_set_sensor(&ctrl->features, cdw11, i);
        }
    }
    event_check_health(target, ctrl);
    return NVME_SC_SUCCESS;
}

static uint32_t error_recovery_get(const struct nvmf_target *target,
                                   const struct nvmf_ctrl *ctrl,
                                   struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return ctrl->features.error_recovery;
}

static uint16_t error_recovery_set(struct nvmf_target *target,
                                   struct nvmf_request *req)
{
    if (req->sqe.cdw11 &
        BIT(16)) { /* DULBE, which Identify reports as unsupported */
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11 + 2, 0);
    }
    request_ctrl(target, req)->features.error_recovery =
        req->sqe.cdw11 & 0xffff;
    return NVME_SC_SUCCESS;
}

static uint16_t cache_check(const struct nvmf_target *target,
                            struct nvmf_request *req)
{
    return target->has_volatile_cache
               ? NVME_SC_SUCCESS
               : refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
}

static uint32_t cache_get(const struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl,
                          struct nvmf_request *req)
{
    (void)ctrl;
    (void)req;
    return target->is_cache_on;
}

static bool is_at_medium(const struct nvmf_target *target,
                         const struct nvmf_request *req,
                         const struct nvmf_ns *ns)
{
    (void)target;
    return req->ns == ns && req->command->flags & COMMAND_WRITES &&
           req->state == NVMF_REQUEST_MEDIA;
}

/*
 * The cache is off: wait for the writes that the medium has taken before, one
 * namespace after the other.  They may yet leave their data in the cache.
 *
 * @return whether they have ended; otherwise execute() is called again
 */
static bool cached_writes_ended(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    static const struct await_rule rule = {.concerns = is_at_medium};

    if (req->ns != NULL) { /* the one that it has waited for */
        ns_release(target, req, NVME_SC_SUCCESS);
        req->chunk.range++;
    }
    for (; req->chunk.range < NVMF_MAX_NAMESPACES; req->chunk.range++) {
        struct nvmf_ns *ns = &target->ns[req->chunk.range];

        if (ns->users != 0 && await_commands(target, ns, &rule)) {
            ns_use(ns, req);
            await_push(target, req);
            return false;
        }
    }
    return true;
}

/* A command that disables the cache completes after a flush of its content. */
static uint16_t cache_set(struct nvmf_target *target, struct nvmf_request *req)
{
    bool is_on = req->sqe.cdw11 & 1;
    uint16_t status = cache_check(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (req->steps == 0) {
        if (is_on != target->is_cache_on) {
            pel_note_set_feature(target, req);
        }
        target->is_cache_on = is_on;
        target->media.set_volatile(target->media.ctx, is_on);
        req->steps = is_on ? 0 : 1;
        req->chunk.range = 0;
    }
    if (is_on) {
        return NVME_SC_SUCCESS;
    }
    return cached_writes_ended(target, req) ? ns_flush_all(target, req)
                                            : NVMF_PENDING;
}

static uint32_t queues_get(const struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl,
                           struct nvmf_request *req)
{
    uint32_t most = target->config.max_io_queues - 1u;

    if ((req->sqe.cdw10 >> SELECT_SHIFT & 7) != SELECT_CURRENT) {
        return most << 16 | most;
    }
    return ctrl->features.number_of_queues;
}

static uint16_t queues_set(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint32_t nsqr = req->sqe.cdw11 & 0xffff;
    uint32_t ncqr = req->sqe.cdw11 >> 16;
    uint32_t granted;

    if (nsqr == 0xffff || ncqr == 0xffff) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11, 0);
    }
    if (ctrl->io_count > 0) {
        return refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    granted =
        ctrl_grant_queues(target, ctrl, (uint16_t)(MIN(nsqr, ncqr) + 1)) - 1u;
    ctrl->features.number_of_queues = granted << 16 | granted;
    req->result[0] = ctrl->features.number_of_queues;
    return NVME_SC_SUCCESS;
}

static uint32_t atomicity_get(const struct nvmf_target *target,
                              const struct nvmf_ctrl *ctrl,
                              struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return ctrl->features.write_atomicity;
}

static uint16_t atomicity_set(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    request_ctrl(target, req)->features.write_atomicity = req->sqe.cdw11 & 1;
    return NVME_SC_SUCCESS;
}

static uint32_t events_get(const struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl,
                           struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return ctrl->features.async_event_config;
}

/* Events that Identify OAES does not report as supported stay disabled. */
static uint16_t events_set(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint32_t known =
        ctrl->is_discovery ? OAES_DISCOVERY_CHANGE : 0x1fu | OAES_NS_ATTRIBUTE;

    if (!ctrl->is_discovery && ana_is_supported(target)) {
        known |= OAES_ANA_CHANGE;
    }
    if (!ctrl->is_discovery && level_has(target, LEVEL_LOG, LOG_LBA_STATUS)) {
        known |= OAES_LBA_STATUS;
    }
    ctrl->features.async_event_config = req->sqe.cdw11 & known;
    event_check_health(target, ctrl);
    return NVME_SC_SUCCESS;
}

static uint32_t kato_get(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return ctrl->kato_ms;
}

static uint16_t kato_set(struct nvmf_target *target, struct nvmf_request *req)
{
    ctrl_set_kato(target, request_qpair(target, req)->ctrl, req->sqe.cdw11);
    return NVME_SC_SUCCESS;
}

static uint16_t hostid_check(const struct nvmf_target *target,
                             struct nvmf_request *req)
{
    (void)target;
    if (!(req->sqe.cdw11 &
          1)) { /* EXHID = 0; fabrics hosts have 128-bit identifiers */
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11, 0);
    }
    return NVME_SC_SUCCESS;
}

static uint32_t hostid_get(const struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl,
                           struct nvmf_request *req)
{
    (void)target;
    request_write_data(req, 0, ctrl->hostid, NVME_HOSTID_LEN);
    return 0;
}

/* The host identifier is set by Connect and cannot be changed here. */
static uint16_t hostid_set(struct nvmf_target *target, struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return refuse_status(NVME_SC_COMMAND_SEQUENCE);
}

/* The drive's clock, which has one value for all controllers. */
static uint32_t timestamp_get(const struct nvmf_target *target,
                              const struct nvmf_ctrl *ctrl,
                              struct nvmf_request *req)
{
    bool is_current = (req->sqe.cdw10 >> SELECT_SHIFT & 7) == SELECT_CURRENT;
    uint8_t data[LOG_TIMESTAMP_LEN];
    uint64_t epoch_ms = 0;
    bool is_set = is_current && nvmf_target_time(target, &epoch_ms);

    (void)ctrl;
    log_timestamp_emit(data, epoch_ms, is_set);
    request_write_data(req, 0, data, sizeof(data));
    return 0;
}

/* ---- Host behavior support. */

enum {                    /* byte offsets in its data */
       BEHAVIOR_ACRE = 0, /* 1: the host takes the retry delay of a status */
       BEHAVIOR_CDFE = 4, /* BIT(copy descriptor format) */
       BEHAVIOR_LEN = 512,
       BEHAVIOR_FORMATS = 1 << 2, /* those that have to be enabled */
};

static uint32_t behavior_get(const struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl,
                             struct nvmf_request *req)
{
    bool is_current = (req->sqe.cdw10 >> SELECT_SHIFT & 7) == SELECT_CURRENT;
    uint8_t data[BEHAVIOR_LEN] = {0};

    (void)target;
    if (is_current) {
        data[BEHAVIOR_ACRE] = ctrl->features.command_retry;
        put_le16(data + BEHAVIOR_CDFE, ctrl->features.copy_formats);
    }
    request_write_data(req, 0, data, sizeof(data));
    return 0;
}

static uint16_t behavior_set(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    struct nvmf_features *features = &request_ctrl(target, req)->features;
    uint8_t data[BEHAVIOR_LEN];
    uint16_t formats;
    uint8_t others = 0;

    request_read_data(req, 0, data, sizeof(data));
    formats = get_le16(data + BEHAVIOR_CDFE);
    for (size_t i = 1; i < sizeof(data); i++) {
        others |= i / 2 == BEHAVIOR_CDFE / 2 ? 0 : data[i];
    }
    /* The other behaviours need what Identify does not claim. */
    if (data[BEHAVIOR_ACRE] > 1 || others != 0 || formats & ~BEHAVIOR_FORMATS) {
        return refuse_status(NVME_SC_INVALID_FIELD);
    }
    features->command_retry = data[BEHAVIOR_ACRE];
    features->copy_formats = formats;
    return NVME_SC_SUCCESS;
}

/* ---- Namespace write protection, which belongs to a namespace. */

static uint16_t protection_check(const struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    uint32_t nsid = req->sqe.nsid;

    if (!ns_are_manageable(target)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    if (nsid == 0 || nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    if (!ns_is_active(&target->ctrl[target->qpair[req->qpair].ctrl], nsid)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    return NVME_SC_SUCCESS;
}

static uint32_t protection_get(const struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl,
                               struct nvmf_request *req)
{
    (void)ctrl;
    return target->ns[req->sqe.nsid - 1].volume.protection;
}

static uint16_t protection_set(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    uint32_t state = req->sqe.cdw11 & 7;
    const struct nvmf_volume_ns *ns;
    uint16_t status;

    if (req->holds & HOLDS_PROTECTION) {
        return ns_protect_execute(target, req, (enum nvmf_protection)state);
    }
    status = protection_check(target, req);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (target->ns[req->sqe.nsid - 1].state == NS_SANITIZING) {
        return sanitize_status(target);
    }
    if (!ns_takes_protection(&target->ns[req->sqe.nsid - 1], state)) {
        return NVME_SC_FORMAT_IN_PROGRESS; /* the host may try again */
    }
    ns = &target->ns[req->sqe.nsid - 1].volume;
    if (state >= NVMF_PROTECTIONS) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11, 0);
    }
    if (ns->protection == NVMF_PROTECTION_UNTIL_POWER_CYCLE &&
        state != ns->protection) {
        return refuse_field(req, NVME_SC_FEATURE_NOT_CHANGEABLE, SQE_CDW11, 0);
    }
    return ns_protect_execute(target, req, (enum nvmf_protection)state);
}

/* ---- The latency monitor of OCP. */

static uint32_t latency_get(const struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl,
                            struct nvmf_request *req)
{
    uint8_t data[LATENCY_FEATURE_LEN];

    (void)ctrl;
    return latency_feature_get(
        target, req, data,
        (enum nvmf_select)(req->sqe.cdw10 >> SELECT_SHIFT & 7));
}

static uint16_t latency_set_feature(struct nvmf_target *target,
                                    struct nvmf_request *req)
{
    return latency_feature_set(target, req, req->sqe.cdw10 & BIT(SAVE_BIT));
}

static const struct feature features[] = {
    {.fid = FEATURE_ARBITRATION,
     .is_changeable = true,
     .get = arbitration_get,
     .set = arbitration_set},
    {.fid = FEATURE_POWER_MANAGEMENT,
     .is_changeable = true,
     .get = power_get,
     .set = power_set},
    {.fid = FEATURE_TEMPERATURE_THRESHOLD,
     .is_changeable = true,
     .decides_default = true,
     .check_get = temperature_check,
     .get = temperature_get,
     .set = temperature_set},
    {.fid = FEATURE_ERROR_RECOVERY,
     .is_changeable = true,
     .get = error_recovery_get,
     .set = error_recovery_set},
    {.fid = FEATURE_VOLATILE_WRITE_CACHE,
     .is_changeable = true,
     .default_value = 1,
     .check_get = cache_check,
     .get = cache_get,
     .set = cache_set},
    {.fid = FEATURE_NUMBER_OF_QUEUES,
     .is_changeable = true,
     .decides_default = true,
     .get = queues_get,
     .set = queues_set},
    {.fid = FEATURE_WRITE_ATOMICITY,
     .is_changeable = true,
     .get = atomicity_get,
     .set = atomicity_set},
    {.fid = FEATURE_ASYNC_EVENT_CONFIG,
     .is_on_discovery = true,
     .is_changeable = true,
     .get = events_get,
     .set = events_set},
    {.fid = FEATURE_TIMESTAMP,
     .is_changeable = true,
     .decides_default = true,
     .data_len = LOG_TIMESTAMP_LEN,
     .set_len = LOG_TIMESTAMP_LEN,
     .get = timestamp_get,
     .set = timestamp_set},
    {.fid = FEATURE_KEEP_ALIVE_TIMER,
     .is_on_discovery = true,
     .is_changeable = true,
     .get = kato_get,
     .set = kato_set},
    {.fid = FEATURE_LBA_STATUS,
     .is_changeable = true,
     .default_value = LBA_POLL_INTERVAL << 16 | LBA_POLL_INTERVAL,
     .get = lba_attributes_get,
     .set = lba_attributes_set},
    {.fid = FEATURE_HOST_BEHAVIOR,
     .is_changeable = true,
     .decides_default = true,
     .data_len = BEHAVIOR_LEN,
     .set_len = BEHAVIOR_LEN,
     .get = behavior_get,
     .set = behavior_set},
    {.fid = FEATURE_HOST_IDENTIFIER,
     .decides_default = true,
     .data_len = NVME_HOSTID_LEN,
     .check_get = hostid_check,
     .get = hostid_get,
     .set = hostid_set},
    {.fid = FEATURE_RESERVATION_MASK,
     .is_changeable = true,
     .is_of_namespace = true,
     .check_get = reservation_feature_check,
     .get = reservation_mask_get,
     .set = reservation_mask_set},
    {.fid = FEATURE_RESERVATION_PERSISTENCE,
     .is_changeable = true,
     .is_of_namespace = true,
     .check_get = reservation_feature_check,
     .get = reservation_persistence_get,
     .set = reservation_persistence_set},
    {.fid = FEATURE_NS_WRITE_PROTECTION,
     .is_changeable = true,
     .is_of_namespace = true,
     .check_get = protection_check,
     .get = protection_get,
     .set = protection_set},
    {.fid = FEATURE_OCP_LATENCY,
     .is_changeable = true,
     .decides_default = true,
     .data_len = LATENCY_FEATURE_LEN,
     .set_len = LATENCY_FEATURE_LEN,
     .get = latency_get,
     .set = latency_set_feature,
     .is_saveable = latency_is_saveable},
};

static bool is_saveable(const struct nvmf_target *target,
                        const struct feature *feature)
{
    return feature->is_saveable != NULL && feature->is_saveable(target);
}

static const struct feature *find_feature(struct nvmf_target *target,
                                          const struct nvmf_request *req)
{
    bool is_discovery = request_ctrl(target, req)->is_discovery;

    for (size_t i = 0; i < ARRAY_LEN(features); i++) {
        if (features[i].fid == (req->sqe.cdw10 & 0xff) &&
            level_has(target, LEVEL_FEATURE, features[i].fid) &&
            (!is_discovery || features[i].is_on_discovery)) {
            return &features[i];
        }
    }
    return NULL;
}

/* The dword of the Feature Identifiers Supported and Effects page. */
uint32_t feature_effects(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint8_t fid)
{
    const struct nvmf_vendor *vendor = &target->config.vendor;
    bool is_of_drive = fid == FEATURE_VOLATILE_WRITE_CACHE ||
                       fid == FEATURE_TIMESTAMP || fid == FEATURE_OCP_LATENCY;
    uint32_t value;

    for (size_t i = 0; i < ARRAY_LEN(features); i++) {
        if (features[i].fid == fid && level_has(target, LEVEL_FEATURE, fid) &&
            (!ctrl->is_discovery || features[i].is_on_discovery)) {
            return FEATURE_EFFECTS_FSUPP |
                   (is_of_drive ? (uint32_t)FEATURE_EFFECTS_SUBSYSTEM_SCOPE
                                : FEATURE_EFFECTS_CTRL_SCOPE);
        }
    }
    if (fid < FEATURE_VENDOR_FIRST || vendor->get == NULL ||
        ctrl->is_discovery) {
        return 0;
    }
    if ((vendor->data_len != NULL && vendor->data_len(vendor->ctx, fid) != 0) ||
        vendor->get(vendor->ctx, fid, NVMF_SELECT_CURRENT, 0, &value) ==
            NVME_SC_SUCCESS) {
        return FEATURE_EFFECTS_FSUPP | FEATURE_EFFECTS_SUBSYSTEM_SCOPE;
    }
    return 0;
}

/* ---- Vendor features: checked and executed by the application. */

static bool is_vendor(struct nvmf_target *target,
                      const struct nvmf_request *req)
{
    return (req->sqe.cdw10 & 0xff) >= FEATURE_VENDOR_FIRST &&
           target->config.vendor.get != NULL &&
           !request_ctrl(target, req)->is_discovery;
}

static uint16_t vendor_len(const struct nvmf_target *target,
                           const struct nvmf_request *req)
{
    const struct nvmf_vendor *vendor = &target->config.vendor;
    uint16_t len = vendor->data_len != NULL
                       ? vendor->data_len(vendor->ctx, req->sqe.cdw10 & 0xff)
                       : 0;

    ASSERT(len <= NVMF_VENDOR_DATA_MAX);
    return len;
}

static uint16_t vendor_get_check(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    uint32_t select = req->sqe.cdw10 >> SELECT_SHIFT & 7;

    if (select > SELECT_CAPABILITIES) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10 + 1, 0);
    }
    req->data_len = select == SELECT_CAPABILITIES ? 0 : vendor_len(target, req);
    return NVME_SC_SUCCESS;
}

static uint16_t vendor_get(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_vendor *vendor = &target->config.vendor;
    uint32_t select = req->sqe.cdw10 >> SELECT_SHIFT & 7;
    uint8_t fid = req->sqe.cdw10 & 0xff;
    uint8_t data[NVMF_VENDOR_DATA_MAX];
    uint16_t status;

    if (req->data_len != 0) {
        status = vendor->get_data(vendor->ctx, fid, (enum nvmf_select)select,
                                  req->sqe.cdw11, data);
        if (status == NVME_SC_SUCCESS) {
            request_write_data(req, 0, data, req->data_len);
        }
    } else if (select == SELECT_CAPABILITIES && vendor_len(target, req) != 0) {
        status = NVME_SC_SUCCESS;
    } else {
        status = vendor->get(vendor->ctx, fid,
                             select == SELECT_CAPABILITIES
                                 ? NVMF_SELECT_CURRENT
                                 : (enum nvmf_select)select,
                             req->sqe.cdw11, &req->result[0]);
    }
    if (status != NVME_SC_SUCCESS) {
        return refuse_field(req, status, SQE_CDW11, 0);
    }
    if (select == SELECT_CAPABILITIES) {
        req->result[0] = CAPABILITY_SAVEABLE | CAPABILITY_CHANGEABLE;
    }
    return NVME_SC_SUCCESS;
}

static uint16_t vendor_set(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_vendor *vendor = &target->config.vendor;
    bool is_saved = req->sqe.cdw10 & BIT(SAVE_BIT);
    uint8_t fid = req->sqe.cdw10 & 0xff;
    uint8_t data[NVMF_VENDOR_DATA_MAX];
    uint16_t status;

    if (req->data_len != 0) {
        request_read_data(req, 0, data, req->data_len);
        status =
            vendor->set_data(vendor->ctx, fid, is_saved, req->sqe.cdw11, data);
    } else {
        status = vendor->set(vendor->ctx, fid, is_saved, req->sqe.cdw11);
    }
    if (status == NVME_SC_SUCCESS || status == NVME_SC_COMMAND_INTERRUPTED) {
        return status; /* for the second status the host may retry later */
    }
    return refuse_field(req, status, SQE_CDW11, 0);
}

uint16_t feature_get_check(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct feature *feature = find_feature(target, req);
    uint32_t select = req->sqe.cdw10 >> SELECT_SHIFT & 7;
    uint16_t status = NVME_SC_SUCCESS;

    if (is_vendor(target, req)) {
        return vendor_get_check(target, req);
    }
    if (feature == NULL) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    if (select > SELECT_CAPABILITIES) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10 + 1, 0);
    }
    if (select == SELECT_CAPABILITIES) {
        return NVME_SC_SUCCESS;
    }
    req->data_len = feature->data_len;
    if (feature->check_get != NULL) {
        status = feature->check_get(target, req);
    }
    return status != NVME_SC_SUCCESS ? status
                                     : ana_check_get_feature(target, req);
}

uint16_t feature_get(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct feature *feature = find_feature(target, req);
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint32_t select = req->sqe.cdw10 >> SELECT_SHIFT & 7;

    if (is_vendor(target, req)) {
        return vendor_get(target, req);
    }
    if (select == SELECT_CAPABILITIES) {
        req->result[0] = (feature->is_changeable ? CAPABILITY_CHANGEABLE : 0u) |
                         (feature->is_of_namespace ? CAPABILITY_NAMESPACE : 0u);
        if (is_saveable(target, feature)) {
            req->result[0] |= CAPABILITY_SAVEABLE;
        }
    } else if (select == SELECT_CURRENT || feature->decides_default) {
        req->result[0] = feature->get(target, ctrl, req);
    } else {
        req->result[0] = feature->default_value;
    }
    return NVME_SC_SUCCESS;
}

/* Check the feature and the namespace that Set Features names. */
static uint16_t set_check_fields(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    const struct feature *feature = find_feature(target, req);

    if (feature == NULL && !is_vendor(target, req)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    if (feature != NULL && (req->sqe.cdw10 & BIT(SAVE_BIT)) &&
        !is_saveable(target, feature)) {
        return refuse_field(req, NVME_SC_FEATURE_NOT_SAVEABLE, SQE_CDW10 + 3,
                            7);
    }
    if (feature != NULL && feature->is_of_namespace) {
        return feature->check_get(target, req);
    }
    if (req->sqe.nsid != 0 && req->sqe.nsid != NVME_NSID_ALL) {
        return refuse_field(req, NVME_SC_FEATURE_NOT_NS_SPECIFIC, SQE_NSID, 0);
    }
    req->data_len =
        feature != NULL ? feature->set_len : vendor_len(target, req);
    return NVME_SC_SUCCESS;
}

uint16_t feature_set_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t status = set_check_fields(target, req);

    req->epoch = request_ctrl(target, req)->resets;
    return status != NVME_SC_SUCCESS ? status
                                     : ana_check_set_feature(target, req);
}

uint16_t feature_set(struct nvmf_target *target, struct nvmf_request *req)
{
    if (req->data_len != 0 && req->epoch != request_ctrl(target, req)->resets) {
        return NVME_SC_ABORT_REQUESTED; /* a reset, while the data moved */
    }
    if (is_vendor(target, req)) {
        return vendor_set(target, req);
    }
    return find_feature(target, req)->set(target, req);
}
