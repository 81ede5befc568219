/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/keepers.h"

#include <string.h>

#include "firmware/app/drive.h"

static void shares_init(struct drive *drive, const struct drive_config *config)
{
    const struct share_keeper_config shares = {
        .store = config->operations.shares,
        .random = config->random,
        .random_ctx = config->random_ctx,
    };

    if (!share_keeper_init(&drive->shares, &shares)) {
        log_line(drive->log,
                 "shares: the record in flash is damaged, so hosts begin with "
                 "full shares of what is limited (errors, events, writes to "
                 "flash); there is nothing to do");
    }
}

static void shares_start(struct drive *drive)
{
    struct updater *updater = &drive->firmware.updater;
    struct write_shares *const shares[SHARE_KINDS] = {
        [SHARE_OF_NAMESPACES] = volume_write_shares(drive->volume),
        [SHARE_OF_RESERVATIONS] =
            reservations_write_shares(drive->reservations),
        [SHARE_OF_FENCES] = reservations_fence_shares(drive->reservations),
        [SHARE_OF_SETTINGS] = settings_write_shares(&drive->settings),
        [SHARE_OF_LATENCY] = latency_keeper_shares(&drive->latency),
        [SHARE_OF_IMAGES] = updater_store_shares(updater),
        [SHARE_OF_SLOTS] = updater_record_shares(updater),
    };

    share_keeper_start(&drive->shares, shares, drive->target);
}

static void latency_start(struct drive *drive)
{
    if (!latency_keeper_start(&drive->latency, drive->target)) {
        log_line(drive->log,
                 "latency monitor: the record in flash is damaged, so its "
                 "settings and counts are lost; switch it on again if you use "
                 "it (nvme ocp set-latency-monitor-feature)");
    }
}

void keepers_init(struct drive *drive, const struct drive_config *config,
                  struct nvmf_config *target)
{
    const struct latency_keeper_config latency = {
        .store = config->operations.latency,
        .power_on_hours = drive_power_on_hours,
        .acting_host = drive_acting_host,
        .ctx = drive,
    };

    shares_init(drive, config);
    memcpy(target->number_key, share_keeper_key(&drive->shares),
           sizeof(target->number_key));
    latency_keeper_init(&drive->latency, &latency);
    target->latency = latency_keeper_seam(&drive->latency);
}

void keepers_start(struct drive *drive)
{
    shares_start(drive);
    latency_start(drive);
}
