/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/hw_errors.h"

#include <string.h>

#include "firmware/app/drive.h"
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

static void note_error(struct drive *drive, enum hw_error_kind kind,
                       bool is_fatal, uint64_t address)
{
    const struct hw_error error = {
        .kind = (uint8_t)kind,
        .is_fatal = is_fatal,
        .time_us = drive->now_us,
        .address = address,
        .info = ++drive->hw_errors.count[kind],
    };

    hw_log_note(&drive->hw_log, &error, drive->now_us);
}

/* Each parity error of a transfer is already in the log.  If no repetition has
 * succeeded, add one error that is fatal. */
static void note_failed_transfer(struct drive *drive, uint64_t place)
{
    const struct hw_error error = {
        .kind = HW_ERROR_NAND_TRANSFER,
        .is_fatal = true,
        .time_us = drive->now_us,
        .address = place,
        .info = drive->nand.seam.transfer_errors,
    };

    hw_log_note(&drive->hw_log, &error, drive->now_us);
}

void hw_errors_note_op(void *ctx, const struct ftl_flash_op *op,
                       enum nand_seam_failure failure)
{
    struct drive *drive = ctx;

    switch (failure) {
    case NAND_SEAM_PROGRAM:
        note_error(drive, HW_ERROR_PROGRAM, false, hw_error_place(op));
        break;
    case NAND_SEAM_ERASE:
        note_error(drive, HW_ERROR_ERASE, false, hw_error_place(op));
        break;
    case NAND_SEAM_UNCORRECTABLE:
        /* The mount reads rows that a power cut has torn: no error. */
        if (ftl_state(drive->nand.ftl) != FTL_MOUNTING) {
            note_error(drive, HW_ERROR_UNCORRECTABLE, false,
                       hw_error_place(op));
        }
        break;
    case NAND_SEAM_TRANSFER:
        note_failed_transfer(drive, hw_error_place(op));
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

void hw_errors_note_die(void *ctx, uint32_t die)
{
    struct drive *drive = ctx;

    if (!has_error(&drive->hw_log.records, HW_ERROR_DIE, die)) {
        note_error(drive, HW_ERROR_DIE, true, die);
    }
}

void hw_errors_note_capacitors(struct drive *drive)
{
    note_error(drive, HW_ERROR_CAPACITORS, true, 0);
}

void hw_errors_note_read_only(struct drive *drive)
{
    if (!has_error(&drive->hw_log.records, HW_ERROR_READ_ONLY, 0)) {
        note_error(drive, HW_ERROR_READ_ONLY, true, 0);
    }
}

static void note_flash(struct drive *drive)
{
    const struct flash_failures *failures = drive->flash_failures;
    struct hw_errors *errors = &drive->hw_errors;

    if (failures == NULL || failures->count == errors->flash_failures ||
        drive->now_us < errors->flash_quiet_us) {
        return;
    }
    errors->flash_failures = failures->count;
    errors->flash_quiet_us = drive->now_us + HW_ERROR_HOUR_US;
    errors->count[HW_ERROR_FLASH_WRITE] = failures->count - 1;
    log_line(drive->log,
             "flash: the SPI flash has not ended a write or erasure at 0x%x in "
             "time; %u such failures since the start",
             failures->addr, failures->count);
    note_error(drive, HW_ERROR_FLASH_WRITE, false, failures->addr);
}

/* ---- Persistent events. */

/* At a lost word without which the firmware cannot go on, it writes the error
 * to flash, and an assertion of memory_check.c fails. */
static void find_stop(struct drive *drive, const struct telemetry_panic *panic)
{
    const struct hw_error_records *records = &drive->hw_log.records;
    const struct hw_error *newest;

    if (panic->is_trap || panic->is_watchdog ||
        strstr(panic->file, "memory_check.c") == NULL || records->count == 0) {
        return;
    }
    newest = &records->error[records->count - 1];
    if (newest->kind == HW_ERROR_MEMORY_LOST &&
        newest->boot + 1 == drive->hw_log.boot) {
        drive->hw_errors.stopped_by = newest->number;
    }
}

void hw_errors_start(struct drive *drive, const struct hw_log_config *config,
                     const struct telemetry_panic *panic)
{
    struct hw_error crash = {.kind = HW_ERROR_CRASH, .is_fatal = true};

    hw_log_init(&drive->hw_log, config);
    if (panic != NULL) {
        find_stop(drive, panic);
        crash.time_us = drive->now_us;
        crash.address = panic->mepc;
        crash.info = panic->mcause;
        hw_log_note(&drive->hw_log, &crash, drive->now_us);
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
    default:
        return NULL;
    }
}

/* Whether this error may be an event; if so, the event is counted. */
static bool may_record(struct drive *drive, const struct hw_error *error)
{
    struct hw_error_events *events = &drive->hw_errors.events[error->kind];

    if (drive->now_us >= events->hour_us) {
        *events = (struct hw_error_events){.hour_us = drive->now_us +
                                                      HW_ERROR_HOUR_US};
    }
    if (events->count >= HW_ERROR_EVENTS ||
        (events->count != 0 && events->address == error->address)) {
        return false;
    }
    events->count++;
    events->address = error->address;
    return true;
}

static void record_event(struct drive *drive, const struct hw_error *error,
                         const char *name)
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
    nvmf_target_record_vendor(drive->target, &event);
}

void hw_errors_step(struct drive *drive)
{
    const struct hw_log *log = &drive->hw_log;

    note_flash(drive);
    if (drive->hw_errors.seen == log->number) {
        return;
    }
    for (uint16_t i = 0; i < log->records.count; i++) {
        const struct hw_error *error = &log->records.error[i];
        const char *name = name_of_event(error);

        /* Other errors of earlier starts were checked then. */
        if (error->number > drive->hw_errors.seen &&
            (error->boot == log->boot ||
             error->number == drive->hw_errors.stopped_by) &&
            name != NULL && may_record(drive, error)) {
            record_event(drive, error, name);
        }
    }
    drive->hw_errors.seen = log->number;
}
