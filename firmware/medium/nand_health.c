/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/medium/nand_health.h"

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"

enum { PERCENT = 100, USED_MOST = 255 };

void nand_health_init(struct nand_health *health,
                      const struct nand_medium *medium,
                      const struct verbs *verbs,
                      const struct usage_flash *before)
{
    *health = (struct nand_health){
        .medium = medium,
        .verbs = verbs,
        .before = *before,
    };
}

void nand_health_count(void *ctx, struct usage_flash *flash)
{
    const struct nand_health *health = ctx;
    const struct usage_flash *before = &health->before;
    const struct nand *nand = &health->medium->nand;
    const struct nand_seam *seam = &health->medium->seam;
    const struct ftl_counters *ftl = ftl_counters(health->medium->ftl);

    *flash = (struct usage_flash){
        .programmed_units =
            before->programmed_units +
            nand_counter_read(nand, NAND_COUNT_UNITS_PROGRAMMED),
        .read_units =
            before->read_units + nand_counter_read(nand, NAND_COUNT_UNITS_READ),
        .erased_blocks = before->erased_blocks +
                         nand_counter_read(nand, NAND_COUNT_BLOCKS_ERASED),
        .soft_reads =
            before->soft_reads + nand_counter_read(nand, NAND_COUNT_SOFT_READS),
        .rebuilt_units = before->rebuilt_units + ftl->rebuilt_units,
        .unreadable_units = before->unreadable_units +
                            nand_counter_read(nand, NAND_COUNT_UNCORRECTABLE),
        .transfer_errors = before->transfer_errors + seam->transfer_errors +
                           (uint32_t)rnic_counter_read(
                               health->verbs, RNIC_COUNT_PARITY_ERRORS),
        .transfers_corrected =
            before->transfers_corrected + seam->transfers_corrected,
        .added_erasures = before->added_erasures,
    };
}

static uint32_t failed_blocks(const struct nand_medium *medium)
{
    const struct ftl *ftl = medium->ftl;

    return ftl_failed_planes(ftl) + ftl_dead_dies(ftl) * medium->die_blocks;
}

/*
 * A certain number of blocks may fail while the rest still has space for all
 * data.  Return the percentage of this number that has not failed.  If a die is
 * dead, return 0, because there is no parity, and the next failure loses data.
 */
static uint8_t left_percent(const struct nand_medium *medium)
{
    uint32_t may_fail = medium->good_blocks - medium->needed_blocks;
    uint32_t left = may_fail - MIN(failed_blocks(medium), may_fail);

    if (ftl_dead_dies(medium->ftl) != 0) {
        return 0;
    }
    return (uint8_t)((uint64_t)left * PERCENT / may_fail);
}

void nand_health_read(void *ctx, struct nvmf_flash_use *use)
{
    const struct nand_health *health = ctx;
    const struct nand_medium *medium = health->medium;
    struct ftl_erase_counts erased;
    struct usage_flash flash;

    nand_health_count(ctx, &flash);
    ftl_erase_counts(medium->ftl, &erased);
    *use = (struct nvmf_flash_use){
        .written_bytes = flash.programmed_units * FTL_UNIT_DATA,
        .read_bytes = flash.read_units * FTL_UNIT_DATA,
        .unreadable = flash.unreadable_units,
        .rebuilt = flash.rebuilt_units,
        .soft_reads = flash.soft_reads,
        .transfer_errors = flash.transfer_errors,
        .transfers_corrected = flash.transfers_corrected,
        .failed_blocks = failed_blocks(medium),
        .most_erased = erased.most + flash.added_erasures,
        .least_erased = erased.least + flash.added_erasures,
        .left_percent = left_percent(medium),
        .free_percent = (uint8_t)(ftl_free_superblocks(medium->ftl) * PERCENT /
                                  medium->superblocks),
    };
}

/*
 * The erasures of all blocks.  The translation layer also counts those of a
 * preconditioning, but its counts are known after the mount only.
 */
static uint64_t all_erasures(const struct nand_health *health)
{
    const struct nand_medium *medium = health->medium;
    uint64_t counted =
        health->before.erased_blocks +
        nand_counter_read(&medium->nand, NAND_COUNT_BLOCKS_ERASED);
    struct ftl_erase_counts erased;

    ftl_erase_counts(medium->ftl, &erased);
    return MAX(counted, (uint64_t)erased.average * medium->good_blocks) +
           (uint64_t)health->before.added_erasures * medium->good_blocks;
}

void nand_health_fill(const struct nand_health *health,
                      struct nvmf_health *values)
{
    const struct nand_medium *medium = health->medium;
    uint64_t rated = (uint64_t)medium->good_blocks * MAX(medium->endurance, 1u);

    values->available_spare_percent = left_percent(medium);
    values->percentage_used = (uint8_t)MIN(
        all_erasures(health) * PERCENT / rated, (uint64_t)USED_MOST);
}

bool nand_health_has_changed(struct nand_health *health, uint64_t now_us,
                             uint64_t *deadline_us)
{
    const struct ftl_counters *ftl = ftl_counters(health->medium->ftl);
    /* The mount finds failed planes and erase counts on the flash. */
    bool is_mounted = ftl_state(health->medium->ftl) != FTL_MOUNTING;
    uint64_t seen = ftl->erasures + ftl->program_errors + ftl->erase_errors +
                    ftl->read_errors + ftl_dead_dies(health->medium->ftl) +
                    is_mounted;

    if (seen == health->seen) {
        return false;
    }
    if (now_us < health->check_us) {
        *deadline_us = MIN(*deadline_us, health->check_us);
        return false;
    }
    health->seen = seen;
    health->check_us = now_us + NAND_HEALTH_US;
    return true;
}
