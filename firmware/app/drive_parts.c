/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/drive_parts.h"

#include "firmware/hal/time.h"

uint64_t drive_clock_us(void *ctx)
{
    const struct drive *drive = ctx;

    return hal_now_us() - drive->left_out_us;
}

uint64_t drive_power_on_hours(void *ctx)
{
    const struct drive *drive = ctx;

    return usage_keeper_power_on_hours(&drive->keeper);
}

uint32_t drive_acting_host(void *ctx)
{
    const struct drive *drive = ctx;

    return nvmf_target_acting_host(drive->target);
}

static void stop_drive(void *ctx)
{
    drive_stop(ctx);
}

void drive_fill_parts(struct drive *drive)
{
    struct tcp_engine *tcp = &drive->tcp;

    drive->parts = (struct request_parts){
        .log = drive->log,
        .target = drive->target,
        .transports = &drive->transports,
        .rdma = drive->rdma,
        .bufs = drive->bufs,
        .volume = drive->volume,
        .settings = &drive->settings,
        .hosts = &drive->hosts,
        .net = &drive->net,
        .services = &drive->services,
        .telemetry = &drive->telemetry,
        .hw_log = &drive->hw_log,
        .memory = &drive->memory,
        .media = &drive->media,
        .nand = &drive->nand,
        .nand_health = &drive->nand_health,
        .buses = drive->peripherals.bus,
        .modules = drive->peripherals.module,
        .sensors = &drive->peripherals.sensors,
        .bmc = &drive->peripherals.bmc.counters,
        .echo = &drive->echo,
        .aoe = drive->aoe.aoe,
        .toe = tcp->exists ? &tcp->toe : NULL,
        .tcp_echo = &tcp->echo,
        .mpa_cm = tcp->mpa_cm,
        .nvme_tcp = tcp->nvme_tcp,
        .tls = tcp->tls,
        .pdu_faults = &tcp->pdu_faults,
        .service_port = DRIVE_SERVICE_PORT,
        .now_us = &drive->now_us,
        .clock_us = drive_clock_us,
        .stop = stop_drive,
        .ctx = drive,
    };
}
