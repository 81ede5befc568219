/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/report/nand_rules.h"

#include "firmware/report/hw_errors.h"

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

void nand_rules_note(struct nand_rules *rules, const struct nand_seam *seam,
                     const struct ftl_flash_op *op, uint8_t rule,
                     uint64_t now_us)
{
    const struct hw_error error = {
        .kind = HW_ERROR_NAND_RULE,
        .time_us = now_us,
        .address = hw_error_place(op),
        .info =
            (uint64_t)seam->rules_broken << 32 | (uint64_t)op->kind << 8 | rule,
    };

    hw_log_note(rules->hw_log, &error, now_us);
    if (now_us < rules->quiet_us) {
        return;
    }
    rules->quiet_us = now_us + QUIET_US;
    log_line(rules->log,
             "nand: bug in this firmware: the flash refused a %s of channel "
             "%u, die %u, block %u, wordline %u: %s (rule %u); %u such errors "
             "since the start; please report this",
             name_of[op->kind], op->die / seam->dies, op->die % seam->dies,
             op->block, op->wordline, rule_text(rule), rule,
             seam->rules_broken);
}
