/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/nand_rules.h"

#include "firmware/app/drive.h"

enum { QUIET_US = 60000000 /* between two lines on the console */ };

static const char *const name_of[] = {
    [FTL_FLASH_READ] = "read",
    [FTL_FLASH_PROGRAM] = "program",
    [FTL_FLASH_ERASE] = "erasure",
};

/* What was wrong, by the numbers of docs/hardware/nand.md, section 1. */
static const char *rule_text(uint8_t rule)
{
    static const char *const texts[] = {
        "",
        "this is not the next wordline of an erased block",
        "these blocks are not in the same mode",
        "the factory has marked this block as bad",
    };

    return rule != 0 && rule < ARRAY_LEN(texts) ? texts[rule]
                                                : "the rule is unknown";
}

void nand_rules_note(void *ctx, const struct ftl_flash_op *op, uint8_t rule)
{
    struct drive *drive = ctx;
    const struct nand_seam *seam = &drive->nand.seam;
    const struct hw_error error = {
        .kind = HW_ERROR_NAND_RULE,
        .time_us = drive->now_us,
        .address = hw_error_place(op),
        .info =
            (uint64_t)seam->rules_broken << 32 | (uint64_t)op->kind << 8 | rule,
    };

    hw_log_note(&drive->hw_log, &error, drive->now_us);
    if (drive->now_us < drive->nand_rules.quiet_us) {
        return;
    }
    drive->nand_rules.quiet_us = drive->now_us + QUIET_US;
    log_line(drive->log,
             "nand: bug in this firmware: the flash refused a %s of channel "
             "%u, die %u, block %u, wordline %u: %s (rule %u); %u such errors "
             "since the start; please report this",
             name_of[op->kind], op->die / seam->dies, op->die % seam->dies,
             op->block, op->wordline, rule_text(rule), rule,
             seam->rules_broken);
}
