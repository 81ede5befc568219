/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The latency monitor of the OCP Datacenter NVMe SSD Specification: its feature
 * (C5h), its page (C3h), and what it measures.
 * Spec: OCP Datacenter NVMe SSD Specification 2.0
 *
 * There is one latency monitor in the drive, not one for each controller,
 * because a controller of NVMe over Fabrics ends with its association and so
 * could keep nothing.
 */
#include <string.h>

#include "nvmeof/target/io/io.h"
#include "nvmeof/target/features/features.h"
#include "nvmeof/target/base/level.h"
#include "nvmeof/wire/ocp.h"

/* ---- Measuring. */

/* Watch the answers of commands if, and only if, the monitor is on. */
static void watch_answers(struct nvmf_target *target)
{
    if (target->latency.settings.is_on) {
        target->answers_watched |= ANSWERS_LATENCY;
    } else {
        target->answers_watched &= (uint8_t)~ANSWERS_LATENCY;
    }
    target->latency_least_us = latency_least_us(&target->latency);
}

void latency_start(struct nvmf_target *target)
{
    latency_init(&target->latency, target->now_us);
    target->latency_hours = target->config.health.power_on_hours;
    target->latency_started_us = target->now_us;
    watch_answers(target);
}

static uint64_t clock_us(const struct nvmf_target *target)
{
    const struct nvmf_config *config = &target->config;

    return config->now_us != NULL ? config->now_us(config->now_ctx)
                                  : target->now_us;
}

/* @return LATENCY_KINDS if commands of this kind are not measured */
static enum latency_kind kind_of(struct nvmf_target *target,
                                 const struct nvmf_request *req)
{
    if (request_qpair(target, req)->qid == 0) {
        return LATENCY_KINDS;
    }
    switch (req->sqe.opcode) {
    case NVM_READ:
        return LATENCY_READ;
    case NVM_WRITE:
        return LATENCY_WRITE;
    case NVM_DATASET_MANAGEMENT:
        return req->sqe.cdw11 & DSM_ATTRIBUTE_DEALLOCATE ? LATENCY_DEALLOCATE
                                                         : LATENCY_KINDS;
    default:
        return LATENCY_KINDS;
    }
}

/* Stamps count from 1970 if the clock was set, and else the time of power-on
 * over all power cycles. */
static void stamp_event(const struct nvmf_target *target,
                        struct latency_event *event, uint64_t now_us)
{
    event->is_epoch = target->clock.is_set;
    if (event->is_epoch) {
        event->stamp_ms = clock_read_ms(target, now_us);
    } else {
        event->stamp_ms = target->latency_hours * 3600 * 1000 +
                          (now_us - target->latency_started_us) / 1000;
    }
}

void latency_note_answer(struct nvmf_target *target,
                         const struct nvmf_request *req)
{
    uint64_t now_us = clock_us(target);
    struct latency_event event = {.kind = kind_of(target, req)};

    if (event.kind == LATENCY_KINDS ||
        now_us < req->arrived_us + target->latency_least_us) {
        return;
    }
    event.latency_us = now_us - req->arrived_us;
    stamp_event(target, &event, now_us);
    latency_count(&target->latency, &event, now_us);
}

void log_build_ocp_latency(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part)
{
    struct latency_log log;

    (void)ctrl;
    (void)part;
    latency_advance(&target->latency, target->now_us);
    latency_read(&target->latency, &log);
    latency_log_emit(target->page, &log);
}

/* ---- The feature. */

uint32_t latency_feature_get(const struct nvmf_target *target,
                             struct nvmf_request *req, uint8_t *scratch,
                             enum nvmf_select select)
{
    const struct latency_settings *settings =
        select == NVMF_SELECT_DEFAULT ? &latency_defaults
        : select == NVMF_SELECT_SAVED ? &target->latency.saved
                                      : &target->latency.settings;

    latency_feature_emit(scratch, settings);
    request_write_data(req, 0, scratch, LATENCY_FEATURE_LEN);
    return 0;
}

bool latency_is_saveable(const struct nvmf_target *target)
{
    return target->config.latency.save != NULL;
}

static enum nvmf_volume_result save_monitor(
    struct nvmf_target *target, const struct latency_monitor *monitor)
{
    const struct nvmf_latency_store *store = &target->config.latency;
    uint8_t record[NVMF_LATENCY_RECORD_LEN];

    latency_record_emit(monitor, record, target->config.fr);
    return store->save(store->ctx, record, sizeof(record));
}

static uint16_t feature_status(const struct latency_feature *feature)
{
    bool is_valid = !feature->has_reserved && feature->enable <= 1 &&
                    feature->discard < LATENCY_DISCARDS &&
                    feature->debug_triggers == 0 &&
                    latency_settings_are_valid(&feature->settings);

    return is_valid ? NVME_SC_SUCCESS : refuse_status(NVME_SC_INVALID_FIELD);
}

uint16_t latency_feature_set(struct nvmf_target *target,
                             struct nvmf_request *req, bool is_saved)
{
    struct latency_monitor changed = target->latency;
    struct latency_feature feature;
    enum nvmf_volume_result result = NVMF_VOLUME_OK;
    uint16_t status;

    request_read_data(req, 0, target->page, LATENCY_FEATURE_LEN);
    latency_feature_parse(&feature, target->page);
    if (feature.discard == LATENCY_DISCARD_LOG_ONLY) {
        return NVME_SC_SUCCESS; /* there is no debug log to discard */
    }
    status = feature_status(&feature);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    latency_set(&changed, &feature.settings, target->now_us);
    if (is_saved) {
        changed.saved = feature.settings;
    }
    if (latency_is_saveable(target)) {
        result = save_monitor(target, &changed);
    }
    if (is_saved && result != NVMF_VOLUME_OK) {
        return result == NVMF_VOLUME_TOO_OFTEN ? NVME_SC_COMMAND_INTERRUPTED
                                               : NVME_SC_INTERNAL;
    }
    target->latency = changed;
    watch_answers(target);
    return NVME_SC_SUCCESS;
}

/* ---- What the application keeps over power cycles. */

_Static_assert((int)NVMF_LATENCY_RECORD_LEN == (int)LATENCY_RECORD_LEN,
               "the application keeps whole records");
_Static_assert(sizeof(((struct nvmf_config *)0)->fr) ==
                   LATENCY_FIRMWARE_LEN + 1,
               "the record has the firmware's revision");

bool nvmf_target_restore_latency(struct nvmf_target *target,
                                 const uint8_t *record, size_t len)
{
    bool is_ok = latency_record_parse(&target->latency, record, len,
                                      target->config.fr, target->now_us);

    watch_answers(target);
    return is_ok;
}

bool nvmf_target_latency_record(struct nvmf_target *target, uint8_t *record)
{
    if (!target->latency.settings.is_on) {
        return false;
    }
    latency_advance(&target->latency, target->now_us);
    latency_record_emit(&target->latency, record, target->config.fr);
    return true;
}
