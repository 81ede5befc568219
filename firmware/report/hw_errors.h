/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors of the flash array, the capacitors and the SPI flash in the log of
 * hardware errors, and the persistent events that are made of this log.
 *
 * Only errors about which somebody may have to do something become events.
 * Those that the drive has corrected, or from which it has recovered without
 * loss, are in the log alone.  Errors that set a bit of SMART's Critical
 * Warning have an event of their own (nvmeof/target/events/persistent_event.c),
 * and so has a crash.  An error is no event if the last event of its kind was
 * about the same address, or if its kind had HW_ERROR_EVENTS events, within an
 * hour.
 *
 * Reference: docs/hardware/flash.md, "Hardware errors"; docs/nvme.md,
 * "Events of hardware errors"
 */
#ifndef ESSD_REPORT_HW_ERRORS_H
#define ESSD_REPORT_HW_ERRORS_H

#include "firmware/drivers/flash.h"
#include "firmware/hal/log.h"
#include "firmware/medium/nand_seam.h"
#include "firmware/telemetry/telemetry.h"
#include "firmware/usage/hw_log.h"
#include "nvmeof/target/target.h"

/** The address of an error of the flash: die, block and wordline
 * (docs/hardware/flash.md, "Hardware errors", kind 4). */
static inline uint64_t hw_error_place(const struct ftl_flash_op *op)
{
    return (uint64_t)op->die << 32 | (uint64_t)op->block << 16 | op->wordline;
}

enum {
    HW_ERROR_EVENTS = 8, /* most events of a kind in an hour */
    /* The code of an event is this and the kind of the error. */
    HW_ERROR_EVENT_CODE = 0x100,
};
#define HW_ERROR_HOUR_US UINT64_C(3600000000)

/* The events of one kind. */
struct hw_error_events {
    uint64_t address; /* in the last one */
    uint64_t hour_us; /* when the hour ends whose events are counted */
    uint32_t count;   /* in this hour; 0: `address` is not valid */
};

struct hw_errors_config {
    struct log *log;
    /* The log of hardware errors; hw_errors_start() starts it. */
    struct hw_log *hw_log;
    /* Of the SPI flash; NULL: it has none. */
    const struct flash_failures *flash_failures;
    /* Keep an event in the persistent event log. */
    void (*record)(void *ctx, const struct nvmf_vendor_event *event);
    void *ctx;
};

/* Treat as opaque. */
struct hw_errors {
    struct hw_errors_config config;
    uint32_t count[HW_ERROR_KINDS]; /* since the start */
    uint32_t seen; /* number of the last error that was checked for an event */
    /* Number of the error that stopped the firmware of the previous start
     * before the error became an event; 0: none. */
    uint32_t stopped_by;
    /* The last failure of the SPI flash that is in the log, and the time until
     * which others are only counted: each entry of the log is written to the
     * SPI flash, too. */
    uint32_t flash_failures;
    uint64_t flash_quiet_us;
    struct hw_error_events events[HW_ERROR_KINDS];
};

/* An operation of the array that has failed. */
struct hw_errors_op {
    const struct ftl_flash_op *op;
    enum nand_seam_failure failure;
    /* The translation layer reads rows that a power cut may have torn. */
    bool is_mounting;
    uint32_t transfer_errors; /* parity errors of transfers since the start */
};

/** Start the log of hardware errors, and note the crash that led to this start,
 * and which records are lost.
 * Find out whether an error in the log was its cause.
 * @param log    of the log of hardware errors
 * @param panic  the panic that led to this start; NULL: there was none */
void hw_errors_start(struct hw_errors *errors,
                     const struct hw_errors_config *config,
                     const struct hw_log_config *log,
                     const struct telemetry_panic *panic, uint64_t now_us);

/** An operation of the array has failed. */
void hw_errors_note_op(struct hw_errors *errors,
                       const struct hw_errors_op *failed, uint64_t now_us);

/** A die is dead.  If the newest errors of the log have it already, nothing
 * happens. */
void hw_errors_note_die(struct hw_errors *errors, uint32_t die,
                        uint64_t now_us);

/** The capacitors failed when the power went off last. */
void hw_errors_note_capacitors(struct hw_errors *errors, uint64_t now_us);

/** The array is read-only.  If the newest errors of the log have this already,
 * nothing happens. */
void hw_errors_note_read_only(struct hw_errors *errors, uint64_t now_us);

/** For the main loop: note failures of the SPI flash, and make persistent
 * events of new errors. */
void hw_errors_step(struct hw_errors *errors, uint64_t now_us);

#endif
