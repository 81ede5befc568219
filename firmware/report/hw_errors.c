/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/report/hw_errors.h"

#include <string.h>

#include "lib/bytes.h"

enum {                    /* byte offsets in the data of an event */
       EVENT_NUMBER = 0,  /* 4 bytes: of the error in the log */
       EVENT_BOOT = 4,    /* 4 bytes: number of the boot */
       EVENT_ADDRESS = 8, /* 8 bytes */
       EVENT_INFO = 16,   /* 8 bytes: the last number of the log's entry */
       EVENT_LEN = 24,
};
_Static_assert((int)EVENT_LEN <= (int)NVMF_EVENT_DATA_MAX,
               "an event has space for this");

/* ---- Entries of the log. */

static void note_error(struct hw_errors *errors, enum hw_error_kind kind,
                       bool is_fatal, uint64_t address, uint64_t now_us)
{
    const struct hw_error error = {
        .kind = (uint8_t)kind,
        .is_fatal = is_fatal,
        .time_us = now_us,
        .address = address,
        .info = ++errors->count[kind],
    };

    hw_log_note(errors->config.hw_log, &error, now_us);
}

/* Each parity error of a transfer is already in the log.  If no repetition has
 * succeeded, add one error that is fatal. */
static void note_failed_transfer(struct hw_errors *errors,
                                 const struct hw_errors_op *failed,
                                 uint64_t now_us)
{
    const struct hw_error error = {
        .kind = HW_ERROR_NAND_TRANSFER,
        .is_fatal = true,
        .time_us = now_us,
        .address = hw_error_place(failed->op),
        .info = failed->transfer_errors,
    };

    hw_log_note(errors->config.hw_log, &error, now_us);
}

void hw_errors_note_op(struct hw_errors *errors,
                       const struct hw_errors_op *failed, uint64_t now_us)
{
    uint64_t place = hw_error_place(failed->op);

    switch (failed->failure) {
    case NAND_SEAM_PROGRAM:
        note_error(errors, HW_ERROR_PROGRAM, false, place, now_us);
        break;
    case NAND_SEAM_ERASE:
        note_error(errors, HW_ERROR_ERASE, false, place, now_us);
        break;
    case NAND_SEAM_UNCORRECTABLE:
        /* The mount reads rows that a power cut has torn: no error. */
        if (!failed->is_mounting) {
            note_error(errors, HW_ERROR_UNCORRECTABLE, false, place, now_us);
        }
        break;
    case NAND_SEAM_TRANSFER:
        note_failed_transfer(errors, failed, now_us);
        break;
    }
}

static bool has_error(const struct hw_error_records *records,
                      enum hw_error_kind kind, uint64_t address)
{
    for (uint16_t i = 0; i < records->count; i++) {
        const struct hw_error *error = &records->error[i];

        if (error->kind == kind && error->address == address) {
            return true;
        }
    }
    return false;
}

void hw_errors_note_die(struct hw_errors *errors, uint32_t die, uint64_t now_us)
{
    if (!has_error(&errors->config.hw_log->records, HW_ERROR_DIE, die)) {
        note_error(errors, HW_ERROR_DIE, true, die, now_us);
    }
}

void hw_errors_note_capacitors(struct hw_errors *errors, uint64_t now_us)
{
    note_error(errors, HW_ERROR_CAPACITORS, true, 0, now_us);
}

void hw_errors_note_read_only(struct hw_errors *errors, uint64_t now_us)
{
    if (!has_error(&errors->config.hw_log->records, HW_ERROR_READ_ONLY, 0)) {
        note_error(errors, HW_ERROR_READ_ONLY, true, 0, now_us);
    }
}

static void note_flash(struct hw_errors *errors, uint64_t now_us)
{
    const struct flash_failures *failures = errors->config.flash_failures;

    if (failures == NULL || failures->count == errors->flash_failures ||
        now_us < errors->flash_quiet_us) {
        return;
    }
    errors->flash_failures = failures->count;
    errors->flash_quiet_us = now_us + HW_ERROR_HOUR_US;
    errors->count[HW_ERROR_FLASH_WRITE] = failures->count - 1;
    log_line(errors->config.log,
             "flash: the SPI flash has not ended a write or erasure at 0x%x in "
             "time; %u such failures since the start",
             failures->addr, failures->count);
    note_error(errors, HW_ERROR_FLASH_WRITE, false, failures->addr, now_us);
}

/* ---- Persistent events. */

/* At a lost word without which the firmware cannot go on, it writes the error
 * to flash, and an assertion of memory_check.c fails. */
static void find_stop(struct hw_errors *errors,
                      const struct telemetry_panic *panic)
{
    const struct hw_error_records *records = &errors->config.hw_log->records;
    const struct hw_error *newest;

    if (panic->is_trap || panic->is_watchdog ||
        strstr(panic->file, "memory_check.c") == NULL || records->count == 0) {
        return;
    }
    newest = &records->error[records->count - 1];
    if (newest->kind == HW_ERROR_MEMORY_LOST &&
        newest->boot + 1 == errors->config.hw_log->boot) {
        errors->stopped_by = newest->number;
    }
}

void hw_errors_start(struct hw_errors *errors,
                     const struct hw_errors_config *config,
                     const struct hw_log_config *log,
                     const struct telemetry_panic *panic, uint64_t now_us)
{
    struct hw_error crash = {.kind = HW_ERROR_CRASH, .is_fatal = true};

    errors->config = *config;
    hw_log_init(config->hw_log, log);
    if (panic != NULL) {
        find_stop(errors, panic);
        crash.time_us = now_us;
        crash.address = panic->mepc;
        crash.info = panic->mcause;
        hw_log_note(config->hw_log, &crash, now_us);
    }
    for (uint16_t i = 0; log->records != NULL && i < log->records->losses;
         i++) {
        uint64_t address = log->records->lost_addr[i];

        /* It may stay lost for many starts. */
        if (!has_error(&config->hw_log->records, HW_ERROR_RECORD_LOST,
                       address)) {
            note_error(errors, HW_ERROR_RECORD_LOST, true, address, now_us);
        }
    }
}

static const char *name_of_event(const struct hw_error *error)
{
    switch (error->kind) {
    case HW_ERROR_MEMORY_LOST:
        return "memory word lost";
    case HW_ERROR_NAND_TRANSFER: /* the others were corrected */
        return error->is_fatal ? "flash transfer failed" : NULL;
    case HW_ERROR_RNIC_TRANSFER:
        return "RNIC transfer failed";
    case HW_ERROR_DIE:
        return "flash die dead";
    case HW_ERROR_FLASH_WRITE:
        return "SPI flash write failed";
    case HW_ERROR_RECORD_LOST:
        return "record in SPI flash lost";
    default:
        return NULL;
    }
}

/* Whether this error may be an event; if so, the event is counted. */
static bool may_record(struct hw_errors *errors, const struct hw_error *error,
                       uint64_t now_us)
{
    struct hw_error_events *events = &errors->events[error->kind];

    if (now_us >= events->hour_us) {
        *events =
            (struct hw_error_events){.hour_us = now_us + HW_ERROR_HOUR_US};
    }
    if (events->count >= HW_ERROR_EVENTS ||
        (events->count != 0 && events->address == error->address)) {
        return false;
    }
    events->count++;
    events->address = error->address;
    return true;
}

static void record_event(const struct hw_errors *errors,
                         const struct hw_error *error, const char *name)
{
    char text[NVMF_EVENT_TEXT_MAX + 1];
    uint8_t data[EVENT_LEN];
    const struct nvmf_vendor_event event = {
        .code = (uint16_t)(HW_ERROR_EVENT_CODE + error->kind),
        .name = name,
        .text = text,
        .data = data,
        .data_len = sizeof(data),
    };

    (void)log_format(text, sizeof(text),
                     "hardware error %u: %s: address 0x%lx, info %lu",
                     error->number, name, (unsigned long)error->address,
                     (unsigned long)error->info);
    put_le32(data + EVENT_NUMBER, error->number);
    put_le32(data + EVENT_BOOT, error->boot);
    put_le64(data + EVENT_ADDRESS, error->address);
    put_le64(data + EVENT_INFO, error->info);
    errors->config.record(errors->config.ctx, &event);
}

void hw_errors_step(struct hw_errors *errors, uint64_t now_us)
{
    const struct hw_log *log = errors->config.hw_log;

    note_flash(errors, now_us);
    if (errors->seen == log->number) {
        return;
    }
    for (uint16_t i = 0; i < log->records.count; i++) {
        const struct hw_error *error = &log->records.error[i];
        const char *name = name_of_event(error);

        /* Other errors of earlier starts were checked then. */
        if (error->number > errors->seen &&
            (error->boot == log->boot || error->number == errors->stopped_by) &&
            name != NULL && may_record(errors, error, now_us)) {
            record_event(errors, error, name);
        }
    }
    errors->seen = log->number;
}
