/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/log.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/util.h"

void log_error_emit(uint8_t *buf, const struct log_error *error)
{
    memset(buf, 0, LOG_ERROR_ENTRY_LEN);
    put_le64(buf + ERROR_COUNT, error->count);
    put_le16(buf + ERROR_SQID, error->sqid);
    put_le16(buf + ERROR_CID, error->cid);
    put_le16(buf + ERROR_STATUS, (uint16_t)(error->status << 1));
    put_le16(buf + ERROR_LOCATION, error->location);
    put_le64(buf + ERROR_LBA, error->lba);
    put_le32(buf + ERROR_NSID, error->nsid);
    buf[ERROR_VENDOR_LOG] = error->vendor_log;
    buf[ERROR_TRTYPE] = error->trtype;
}

void log_timestamp_emit(uint8_t *buf, uint64_t ms, bool is_set)
{
    put_le64(buf + TIMESTAMP_MS, ms & LOG_TIMESTAMP_MASK);
    buf[TIMESTAMP_ORIGIN] = (uint8_t)(is_set ? 1 << 1 : 0);
}

void log_error_time_emit(uint8_t *buf, const struct log_error *error)
{
    put_le64(buf + ERROR_TIME_COUNT, error->count);
    log_timestamp_emit(buf + ERROR_TIME_TIMESTAMP, error->time_ms,
                       error->has_time);
}

void log_smart_emit(uint8_t *buf, const struct log_smart *smart)
{
    memset(buf, 0, LOG_SMART_LEN);
    buf[SMART_CRITICAL_WARNING] = smart->critical_warning;
    put_le16(buf + SMART_TEMPERATURE, smart->temperature_k);
    buf[SMART_AVAILABLE_SPARE] = smart->available_spare_percent;
    buf[SMART_SPARE_THRESHOLD] = smart->spare_threshold_percent;
    buf[SMART_PERCENTAGE_USED] = smart->percentage_used;
    put_le64(buf + SMART_DATA_UNITS_READ, smart->data_units_read);
    put_le64(buf + SMART_DATA_UNITS_WRITTEN, smart->data_units_written);
    put_le64(buf + SMART_HOST_READS, smart->host_reads);
    put_le64(buf + SMART_HOST_WRITES, smart->host_writes);
    put_le64(buf + SMART_POWER_CYCLES, smart->power_cycles);
    put_le64(buf + SMART_POWER_ON_HOURS, smart->power_on_hours);
    put_le64(buf + SMART_UNSAFE_SHUTDOWNS, smart->unsafe_shutdowns);
    put_le64(buf + SMART_MEDIA_ERRORS, smart->media_errors);
    put_le64(buf + SMART_ERROR_LOG_ENTRIES, smart->error_log_entries);
    for (size_t i = 0; i < SMART_SENSOR_COUNT; i++) {
        put_le16(buf + SMART_SENSORS + 2 * i, smart->sensor_k[i]);
    }
}

void log_ocp_smart_emit(uint8_t *buf, const struct log_ocp_smart *smart)
{
    static const uint8_t guid[16] = {0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf,
                                     0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c,
                                     0xc9, 0x14, 0xd5, 0xaf};

    memset(buf, 0, LOG_OCP_SMART_LEN);
    put_le64(buf + OCP_SMART_UNITS_WRITTEN, smart->written_bytes);
    put_le64(buf + OCP_SMART_UNITS_READ, smart->read_bytes);
    put_le32(buf + OCP_SMART_BAD_BLOCKS, smart->failed_blocks);
    put_le16(buf + OCP_SMART_BAD_NORMALIZED, smart->left_percent);
    put_le64(buf + OCP_SMART_XOR_RECOVERED, smart->rebuilt);
    put_le64(buf + OCP_SMART_READ_ERRORS, smart->read_errors);
    put_le64(buf + OCP_SMART_SOFT_READS, smart->soft_reads);
    put_le32(buf + OCP_SMART_DETECTED, smart->detected);
    put_le32(buf + OCP_SMART_CORRECTED, smart->corrected);
    put_le32(buf + OCP_SMART_MOST_ERASED, smart->most_erased);
    put_le32(buf + OCP_SMART_LEAST_ERASED, smart->least_erased);
    buf[OCP_SMART_SPEC_VERSION + 5] = 2; /* 2.0 */
    put_le32(buf + OCP_SMART_INCOMPLETE_SHUTDOWNS, smart->incomplete_shutdowns);
    buf[OCP_SMART_FREE_BLOCKS] = smart->free_percent;
    put_le16(buf + OCP_SMART_CAPACITOR_HEALTH, smart->capacitor_health);
    put_le64(buf + OCP_SMART_NUSE, smart->used_blocks);
    put_le16(buf + OCP_SMART_VERSION, 3);
    memcpy(buf + OCP_SMART_GUID, guid, sizeof(guid));
}

void log_firmware_slot_emit(uint8_t *buf, uint8_t active_slot,
                            const char *const *slot, uint8_t count)
{
    memset(buf, 0, LOG_FIRMWARE_SLOT_LEN);
    buf[FIRMWARE_SLOT_AFI] = active_slot & 0x77;
    for (uint8_t i = 0; i < count && i < 7; i++) {
        uint8_t *frs = buf + FIRMWARE_SLOT_FRS1 + 8 * i;
        bool is_padding = false;

        if (slot[i][0] == '\0') {
            continue; /* zeros mean that the slot is empty or invalid */
        }
        for (int k = 0; k < 8; k++) {
            is_padding = is_padding || slot[i][k] == '\0';
            frs[k] = is_padding ? ' ' : (uint8_t)slot[i][k];
        }
    }
}

void log_telemetry_emit(uint8_t *buf, const struct log_telemetry *telemetry)
{
    size_t len = strlen(telemetry->reason);

    memset(buf, 0, TELEMETRY_HEADER_LEN);
    buf[TELEMETRY_LID] = telemetry->lid;
    memcpy(buf + TELEMETRY_IEEE, telemetry->ieee, 3);
    for (size_t i = 0; i < 3; i++) {
        put_le16(buf + TELEMETRY_LAST_BLOCK + 2 * i, telemetry->last_block[i]);
    }
    buf[TELEMETRY_HOST_GENERATION] = telemetry->host_generation;
    buf[TELEMETRY_CTRL_AVAILABLE] = telemetry->is_available;
    buf[TELEMETRY_CTRL_GENERATION] = telemetry->ctrl_generation;
    memcpy(buf + TELEMETRY_REASON, telemetry->reason,
           MIN(len, (size_t)TELEMETRY_HEADER_LEN - TELEMETRY_REASON));
}

/* In units of 10^9 bytes, rounded up. */
static uint64_t to_endurance_units(uint64_t bytes)
{
    const uint64_t unit = 1000000000;

    return bytes / unit + (bytes % unit != 0);
}

void log_endurance_emit(uint8_t *buf, const struct log_endurance *endurance)
{
    memset(buf, 0, LOG_ENDURANCE_LEN);
    buf[ENDURANCE_WARNING] = endurance->warning;
    buf[ENDURANCE_SPARE] = endurance->available_spare_percent;
    buf[ENDURANCE_SPARE_THRESHOLD] = endurance->spare_threshold_percent;
    buf[ENDURANCE_USED] = endurance->percentage_used;
    put_le64(buf + ENDURANCE_UNITS_READ,
             to_endurance_units(endurance->read_bytes));
    put_le64(buf + ENDURANCE_UNITS_WRITTEN,
             to_endurance_units(endurance->written_bytes));
    put_le64(buf + ENDURANCE_MEDIA_WRITTEN,
             to_endurance_units(endurance->written_bytes));
    put_le64(buf + ENDURANCE_HOST_READS, endurance->host_reads);
    put_le64(buf + ENDURANCE_HOST_WRITES, endurance->host_writes);
    put_le64(buf + ENDURANCE_MEDIA_ERRORS, endurance->media_errors);
    put_le64(buf + ENDURANCE_ERROR_ENTRIES, endurance->error_log_entries);
    put_le64(buf + ENDURANCE_CAPACITY, endurance->total_bytes);
    put_le64(buf + ENDURANCE_FREE, endurance->free_bytes);
}
