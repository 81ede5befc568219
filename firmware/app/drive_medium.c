/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/drive_medium.h"

#include "firmware/app/drive_io.h"
#include "firmware/app/drive_memory.h"
#include "firmware/drivers/nand.h"
#include "firmware/medium/media_seam.h"

enum { MEDIA_COMMANDS = 512 };

/* ---- The medium. */

static enum init_result media_start(struct drive *drive,
                                    const struct drive_config *config)
{
    struct media_config media = {
        .regs = config->media_regs,
        .dram = config->dram,
        .block_shift = VOLUME_MEDIA_SHIFT,
        .commands = MEDIA_COMMANDS,
        .max_pieces = NVMF_MAX_PIECES,
    };
    enum init_result result = media_init(&drive->media, &media);
    struct media_info info;

    if (result != INIT_OK) {
        return result;
    }
    media_irq_enable(&drive->media);
    media_info_get(&drive->media, &info);
    drive->medium = (struct drive_medium){
        .submit = media_seam_submit,
        .ctx = &drive->media,
        .size_blocks = info.size_blocks,
        .has_cache = info.cache_bytes != 0,
    };
    log_line(drive->log, "media: %lu MiB, blocks of %u, %lu KiB of write cache",
             (unsigned long)(info.size_blocks << info.block_shift >> 20),
             1u << info.block_shift, (unsigned long)(info.cache_bytes >> 10));
    return INIT_OK;
}

static enum init_result nand_start(struct drive *drive,
                                   const struct drive_config *config,
                                   const struct nand_info *info)
{
    struct nand_medium_config nand = {
        .log = config->log,
        .trace = mgmt_trace(&drive->mgmt),
        .dram = config->dram,
        .regs = config->nand_regs,
        .spare_bytes = drive_memory_of_services(config->config),
        .capacity_bytes = config->identity->capacity_bytes,
        .has_kept_dram = config->has_kept_dram,
        .seed = config->random_seed,
        .boot = config->generation,
        .has_capacitors = config->power.is_failing != NULL,
        .budget_us = config->power.budget_us,
        .unsafe_start = usage_keeper_unsafe_start(&drive->keeper),
        .lost_words = {memory_check_lost_word(config->ecc.regs),
                       drive_memory_trap_word(config)},
        .ecc_regs = config->ecc.regs,
        .find_lost_words = drive_memory_look,
        .ctx = drive,
    };
    enum init_result result;

    log_line(drive->log,
             "nand: %u channels, %u dies each, %u planes of %u blocks of "
             "%lu KiB",
             info->channels, info->dies, info->planes, info->blocks,
             (unsigned long)info->wordlines * info->pages * info->units *
                 (NAND_DATA_LEN >> 10));
    drive_take_nand_reports(&nand);
    result = nand_medium_start(&drive->nand, info, &nand);
    drive->medium = (struct drive_medium){
        .submit = nand_medium_submit,
        .ctx = &drive->nand,
        .size_blocks = drive->nand.size_blocks,
        .has_cache = !nand_medium_has_capacitors(&drive->nand),
    };
    return result;
}

/* The medium is the NAND array, if there is one, or that of the engine. */
struct init_report drive_medium_start(struct drive *drive,
                                      const struct drive_config *config)
{
    struct nand_info info;

    if (nand_find(config->nand_regs, &info)) {
        return (struct init_report){nand_start(drive, config, &info), "nand"};
    }
    return (struct init_report){media_start(drive, config), "media"};
}

void drive_nand_health_start(struct drive *drive, struct nvmf_config *target)
{
    nand_health_init(&drive->nand_health, &drive->nand, &drive->net.verbs,
                     usage_keeper_add_flash(&drive->keeper, nand_health_count,
                                            &drive->nand_health));
    nand_health_fill(&drive->nand_health, &target->health);
    target->read_flash = nand_health_read;
    target->flash_ctx = &drive->nand_health;
}

/* ---- Namespaces. */

static void end_volume_job(void *ctx, enum nvmf_volume_result result,
                           uint32_t nsid)
{
    nvmf_volume_done(((struct drive *)ctx)->target, result, nsid);
}

static void load_namespace(void *ctx, uint32_t nsid)
{
    nvmf_target_ns_loaded(((struct drive *)ctx)->target, nsid);
}

void drive_volume_start(struct drive *drive, const struct drive_config *config)
{
    const struct drive_record *namespaces = &config->namespaces;
    const struct config_namespaces *setting =
        &config->config->network.namespaces;
    const struct volume_plan plan = {
        .count = setting->count,
        .size_mib = setting->size_mib,
        .block_shift = setting->has_4096 ? VOLUME_SHIFT_4096 : VOLUME_SHIFT_512,
    };
    const struct drive_medium *medium = &drive->medium;
    struct volume_config volume = {
        .log = config->log,
        .is_power_on = config->usage.is_power_on,
        .identity = config->identity,
        .plan = &plan,
        .record_state = namespaces->state,
        .record = namespaces->record,
        .record_len = namespaces->len,
        .writes = namespaces->writes,
        .save = namespaces->save,
        .save_ctx = namespaces->save_ctx,
        .power_on_hours = drive_power_on_hours,
        .hours_ctx = drive,
        .acting_host = drive_acting_host,
        .acting_ctx = drive,
        .medium_blocks = medium->size_blocks,
        .has_cache = medium->has_cache,
        .has_metadata = drive->nand.ftl != NULL,
        .submit = medium->submit,
        .submit_ctx = medium->ctx,
        .job_done = end_volume_job,
        .ns_changed = load_namespace,
        .write_begins = operations_note_write,
        .done_ctx = drive,
    };

    volume_init(drive->volume, &volume);
    drive->media_seam = (struct media_seam){&drive->media, drive->volume};
}

void drive_reservations_start(struct drive *drive,
                              const struct drive_config *config)
{
    const struct drive_record *record = &config->reservations;
    const struct reservations_config reservations = {
        .log = config->log,
        .state = record->state,
        .record = record->record,
        .record_len = record->len,
        .writes = record->writes,
        .identity = config->identity,
        .save = record->save,
        .save_ctx = record->save_ctx,
        .power_on_hours = drive_power_on_hours,
        .hours_ctx = drive,
    };

    reservations_init(drive->reservations, &reservations);
}
