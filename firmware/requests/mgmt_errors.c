/* SPDX-License-Identifier: BSD-2-Clause */
/* The request about hardware errors: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/drivers/rnic.h"
#include "firmware/medium/nand_medium.h"
#include "firmware/memory/memory_check.h"
#include "firmware/net/drive_net.h"
#include "firmware/requests/parts.h"
#include "firmware/usage/hw_log.h"
#include "hw-model/regs/rnic.h"
#include "lib/regfields.h"

enum { ERRORS_A_REPLY = 64 };

bool mgmt_hardware_errors(void *ctx, const struct json_args *args,
                          struct json *out, struct mgmt_refusal *refusal)
{
    static const char *const kind[HW_ERROR_KINDS] = {
        [HW_ERROR_CRASH] = "crash",
        [HW_ERROR_MEMORY_CORRECTED] = "memory-corrected",
        [HW_ERROR_MEMORY_LOST] = "memory-lost",
        [HW_ERROR_NAND_TRANSFER] = "nand-transfer",
        [HW_ERROR_RNIC_TRANSFER] = "rnic-transfer",
        [HW_ERROR_PROGRAM] = "program-failed",
        [HW_ERROR_ERASE] = "erase-failed",
        [HW_ERROR_UNCORRECTABLE] = "uncorrectable",
        [HW_ERROR_DIE] = "die-dead",
        [HW_ERROR_CAPACITORS] = "capacitors-failed",
        [HW_ERROR_READ_ONLY] = "read-only",
        [HW_ERROR_FLASH_WRITE] = "flash-write-failed",
        [HW_ERROR_NAND_RULE] = "nand-rule",
        [HW_ERROR_RECORD_LOST] = "record-lost",
    };
    const struct request_parts *parts = ctx;
    const struct hw_error_records *records = &parts->hw_log->records;

    (void)args;
    (void)refusal;
    json_number(out, "memory-corrected", parts->memory->corrected);
    json_number(out, "memory-lost", parts->memory->lost);
    json_number(out, "nand-transfer", parts->nand->seam.transfer_errors);
    json_number(
        out, "rnic-transfer",
        rnic_counter_read(&parts->net->verbs, RNIC_COUNT_PARITY_ERRORS));
    json_number(out, "nand-rule", parts->nand->seam.rules_broken);
    json_number(out, "dropped", parts->hw_log->dropped);
    json_begin_array(out, "errors");
    for (uint16_t i = 0; i < MIN(records->count, ERRORS_A_REPLY); i++) {
        const struct hw_error *error = &records->error[records->count - 1 - i];

        json_begin_object(out, NULL);
        json_number(out, "number", error->number);
        json_string(out, "kind",
                    error->kind < HW_ERROR_KINDS && kind[error->kind] != NULL
                        ? kind[error->kind]
                        : "unknown");
        json_bool(out, "fatal", error->is_fatal);
        json_number(out, "boot", error->boot);
        json_number(out, "time-us", error->time_us);
        json_number(out, "address", error->address);
        json_number(out, "info", error->info);
        json_number(out, "repeats", error->repeats);
        json_end_object(out);
    }
    json_end_array(out);
    return true;
}
