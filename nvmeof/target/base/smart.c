/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values of the SMART / Health Information log.
 * Spec: NVM Express Base 1.4 section 5.14.1.2.
 */
#include "nvmeof/target/base/base.h"

#include <string.h>

enum { BLOCKS_IN_DATA_UNIT = 1000 };

/* Whether the reading of a single sensor is beyond one of its thresholds. */
static bool sensors_warn(const struct nvmf_health *health,
                         const struct nvmf_features *features)
{
    for (unsigned int i = 0; i < NVMF_TEMPERATURE_SENSORS; i++) {
        uint16_t kelvin = health->sensor_k[i];

        if (kelvin != 0 && (kelvin >= features->sensor_over_k[i] ||
                            (features->sensor_under_k[i] != 0 &&
                             kelvin <= features->sensor_under_k[i]))) {
            return true;
        }
    }
    return false;
}

static uint8_t critical_warning(const struct nvmf_target *target,
                                const struct nvmf_features *features)
{
    const struct nvmf_health *health = &target->config.health;
    uint8_t warning = health->critical_warning;

    if (health->available_spare_percent < SPARE_THRESHOLD_PERCENT) {
        warning |= SMART_WARN_SPARE;
    }
    if (health->temperature_k != 0 &&
        (health->temperature_k >= features->temperature_over_k ||
         (features->temperature_under_k != 0 &&
          health->temperature_k <= features->temperature_under_k))) {
        warning |= SMART_WARN_TEMPERATURE;
    }
    if (sensors_warn(health, features)) {
        warning |= SMART_WARN_TEMPERATURE;
    }
    return warning;
}

uint8_t log_critical_warning(const struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl)
{
    return critical_warning(target, &ctrl->features);
}

struct log_smart log_smart_of_drive(const struct nvmf_target *target)
{
    struct nvmf_features defaults = {.temperature_over_k = DEFAULT_WCTEMP_K};
    const struct nvmf_counters *counters = &target->counters;
    const struct nvmf_health *health = &target->config.health;
    uint64_t round_up = BLOCKS_IN_DATA_UNIT - 1;
    struct log_smart smart;

    memset(defaults.sensor_over_k, 0xff, sizeof(defaults.sensor_over_k));
    smart = (struct log_smart){
        .critical_warning = critical_warning(target, &defaults),
        .temperature_k = health->temperature_k,
        .available_spare_percent = health->available_spare_percent,
        .spare_threshold_percent = SPARE_THRESHOLD_PERCENT,
        .percentage_used = health->percentage_used,
        .data_units_read =
            (counters->read_blocks_512 + round_up) / BLOCKS_IN_DATA_UNIT,
        .data_units_written =
            (counters->written_blocks_512 + round_up) / BLOCKS_IN_DATA_UNIT,
        .host_reads = counters->host_reads,
        .host_writes = counters->host_writes,
        .power_cycles = health->power_cycles,
        .power_on_hours = health->power_on_hours,
        .unsafe_shutdowns = health->unsafe_shutdowns,
        .media_errors = counters->media_errors,
        .error_log_entries = counters->error_log_entries,
    };
    memcpy(smart.sensor_k, health->sensor_k, sizeof(health->sensor_k));
    return smart;
}

uint8_t nvmf_target_critical_warning(const struct nvmf_target *target)
{
    return log_smart_of_drive(target).critical_warning;
}
