/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/drive.h"

#include <string.h>

#include "firmware/app/drive_io.h"
#include "firmware/app/drive_medium.h"
#include "firmware/app/drive_memory.h"
#include "firmware/app/drive_parts.h"
#include "firmware/app/drive_stages.h"
#include "firmware/app/keepers.h"
#include "firmware/requests/mgmt_requests.h"
#include "firmware/app/vendor_logs.h"
#include "net/cm/cm_rdma.h"
#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/log.h"

/* What the NQN of the discovery subsystem has after that of the NVM subsystem.
 */
#define DISCOVERY_SUFFIX ":discovery"

enum {
    STATE_ALIGN = 64, /* alignment of the target's and the transport's memory */
    SPARE_PERCENT = 100,
    VENDOR_QEMU = 0x1b36, /* the PCI vendor ID of QEMU's emulated devices */
    STATUS_INVALID_IMAGE = 0x107, /* NVM Express Base 1.4 section 4.6.1.2.2 */
};

/* ---- Changes of settings. */

static bool set_link(void *ctx, uint8_t port, uint8_t speed_gbps,
                     enum config_fec fec)
{
    struct drive *drive = ctx;

    return drive_net_set_link(&drive->net, port, speed_gbps, fec);
}

static void disable_link(void *ctx, uint8_t port)
{
    struct drive *drive = ctx;

    drive_net_disable_link(&drive->net, port);
}

static void apply_config(void *ctx, const struct config *before,
                         const struct config *after)
{
    struct drive *drive = ctx;

    drive_net_apply(&drive->net, before, after);
    services_apply(&drive->services, after, drive->now_us);
    if (before->network.has_echo != after->network.has_echo &&
        !echo_switch(&drive->echo, after->network.has_echo)) {
        log_line(drive->log,
                 "echo: cannot listen on %u: all listeners of the connection "
                 "manager are in use; the service stays off",
                 ECHO_SERVICE_PORT);
    }
    tcp_engine_switch(&drive->tcp, after->network.has_tcp_echo);
}

static void settings_start(struct drive *drive,
                           const struct drive_config *config)
{
    static const struct settings_ops ops = {set_link, disable_link,
                                            apply_config, drive_power_on_hours,
                                            drive_acting_host};
    const struct settings_config settings = {
        .log = config->log,
        .in_force = config->config,
        .saved = config->saved_config,
        .ops = &ops,
        .ops_ctx = drive,
        .save = config->save_config,
        .save_ctx = config->save_ctx,
    };

    settings_init(&drive->settings, &settings);
    drive->vendor = (struct vendor_feature){&drive->settings, &drive->net};
}

/* ---- Initialisation of the parts. */

static void copy_text(char *to, size_t size, const char *from)
{
    log_format(to, size, "%s", from);
}

/*
 * Reserve DRAM for the target and its transport, whose structures are opaque,
 * and for the volume and the reservations, whose tables are long.
 */
static enum init_result reserve_target(struct drive *drive,
                                       const struct drive_config *config)
{
    drive->target = dram_alloc(config->dram, nvmf_target_bytes(), STATE_ALIGN);
    drive->rdma = dram_alloc(config->dram, rdma_transport_bytes(), STATE_ALIGN);
    drive->volume =
        dram_alloc(config->dram, sizeof(*drive->volume), STATE_ALIGN);
    drive->reservations =
        dram_alloc(config->dram, sizeof(*drive->reservations), STATE_ALIGN);
    drive->bufs = dram_alloc(config->dram, sizeof(*drive->bufs), STATE_ALIGN);
    return drive->target != NULL && drive->rdma != NULL &&
                   drive->volume != NULL && drive->reservations != NULL &&
                   drive->bufs != NULL
               ? INIT_OK
               : INIT_NO_MEMORY;
}

static void hosts_start(struct drive *drive, const struct drive_config *config)
{
    if (config->hosts != NULL) {
        drive->hosts.list = *config->hosts;
    }
    drive->hosts.is_closed = config->is_closed;
    drive->hosts.save = config->save_hosts;
    drive->hosts.save_ctx = config->save_ctx;
    crypto_init(&drive->crypto, config->random, config->random_ctx);
}

/* Format the unique NQN of the discovery subsystem; empty if it is too long. */
static void format_discovery_nqn(const struct drive_config *config,
                                 char nqn[NVMF_NQN_MAX + 1])
{
    const char *subnqn = config->identity->subsystem_nqn;

    nqn[0] = '\0';
    if (strlen(subnqn) + strlen(DISCOVERY_SUFFIX) <= NVMF_NQN_MAX) {
        log_format(nqn, NVMF_NQN_MAX + 1, "%s%s", subnqn, DISCOVERY_SUFFIX);
    }
}

static void name_target(struct nvmf_config *target,
                        const struct drive_config *config)
{
    const struct identity *identity = config->identity;

    copy_text(target->subnqn, sizeof(target->subnqn), identity->subsystem_nqn);
    format_discovery_nqn(config, target->discovery_nqn);
    copy_text(target->sn, sizeof(target->sn), identity->serial);
    copy_text(target->mn, sizeof(target->mn), identity->model);
    copy_text(target->fr, sizeof(target->fr), config->version);
    for (unsigned int i = 0; i < ARRAY_LEN(target->slot_fr); i++) {
        copy_text(target->slot_fr[i], sizeof(target->slot_fr[i]),
                  config->slot_version[i]);
    }
}

static void target_start(struct drive *drive, const struct drive_config *config)
{
    const struct identity *identity = config->identity;
    struct nvmf_config target = {
        .vid = VENDOR_QEMU,
        .ssvid = VENDOR_QEMU,
        .ieee = {identity->nguid[10], identity->nguid[9], identity->nguid[8]},
        .genctr = (uint64_t)config->generation << 16,
        .vs = config->config->network.profile == CONFIG_PROFILE_DATASHEET
                  ? NVMF_VS_1_2_1
                  : NVMF_VS_2_0,
        .active_slot = config->active_slot,
        .bufs = buf_pool_seam(drive->bufs),
        .volume = volume_seam(drive->volume),
        .operations = operations_seam(drive),
        .reservations = reservations_seam(drive->reservations),
        .firmware = updater_seam(&drive->firmware.updater),
        .subsystem_reset = firmware_update_subsystem_reset,
        .is_intact = drive_memory_is_intact,
        .memory_ctx = drive,
        .subsystem_reset_ctx = drive,
        .addresses = drive->addresses.list,
        .address_count = drive->addresses.count,
        .health =
            {
                .available_spare_percent = SPARE_PERCENT,
                .power_cycles = config->generation,
                .has_capacitors = drive->nand.ftl != NULL &&
                                  nand_medium_has_capacitors(&drive->nand),
            },
        .media = drive_stages_media(drive),
        .telemetry = telemetry_seam(&drive->telemetry),
        .vendor = vendor_features(&drive->vendor),
        .trace = mgmt_trace(&drive->mgmt),
        .now_us = drive_clock_us,
        .now_ctx = drive,
        .has_bmc = peripherals_has_bmc(drive, config),
        .connect_ended = connect_log_end,
        .connect_ctx = &drive->connect_log,
        .hosts = host_table_ops(&drive->hosts),
        .crypto = crypto_ops(&drive->crypto),
        .auth_ended = connect_log_auth,
        .auth_ctx = &drive->connect_log,
    };

    keepers_init(drive, config, &target);
    usage_keeper_fill(&drive->keeper, &target.health, &target.counters);
    vendor_logs_fill(&target, drive);
    if (drive->nand.ftl != NULL) {
        drive_nand_health_start(drive, &target);
    }
    name_target(&target, config);
    nvmf_target_init(drive->target, &target, drive->now_us);
    usage_keeper_start(&drive->keeper, drive->target);
    event_keeper_start(&drive->events, &config->events, drive->target);
    keepers_start(drive);
    firmware_update_report(drive);
    nvmf_target_started(drive->target, usage_keeper_was_unsafe(&drive->keeper));
}

/* The memory for the data buffers of all transports, and its checks. */
static enum init_result bufs_start(struct drive *drive,
                                   const struct drive_config *config)
{
    void *memory = dram_reserve(config->dram, BUF_POOL_BYTES, 4096);

    if (memory == NULL) {
        return INIT_NO_MEMORY;
    }
    buf_pool_init(drive->bufs, memory, verbs_local_key(&drive->net.verbs));
    drive_memory_start(drive, config, memory);
    return INIT_OK;
}

static enum init_result transport_start(struct drive *drive,
                                        const struct drive_config *config)
{
    struct rdma_transport_config rdma = {
        .verbs = &drive->net.verbs,
        .managers = {{.cm = cm_rdma(&drive->net.cm),
                      .service_port = DRIVE_SERVICE_PORT,
                      .qp_type = VERBS_QP_RC}},
        .manager_count = 1,
        .target = drive->target,
        .capsules = dram_reserve(config->dram, RDMA_CAPSULE_BYTES, 64),
        .requests = dram_alloc(config->dram, rdma_transport_request_bytes(),
                               STATE_ALIGN),
        .conn_event = connect_log_event,
        .conn_event_ctx = &drive->connect_log,
        .relay = drive_stages_relay(drive),
    };

    addresses_fill(&drive->addresses, rdma.managers[0].portid,
                   rdma.managers[0].link);
    tcp_services_add_manager(drive, config, &rdma);
    if (rdma.capsules == NULL || rdma.requests == NULL) {
        return INIT_NO_MEMORY;
    }
    if (!rdma_transport_init(drive->rdma, &rdma)) {
        return INIT_NO_ROOM;
    }
    nvmf_bindings_add(&drive->transports, rdma_transport_binding(drive->rdma));
    log_line(drive->log, "nvme-of: listening on %u, %s", DRIVE_SERVICE_PORT,
             config->identity->subsystem_nqn);
    return INIT_OK;
}

static enum init_result echo_start(struct drive *drive,
                                   const struct drive_config *config)
{
    const struct echo_config echo = {
        .verbs = &drive->net.verbs,
        .cm = cm_rdma(&drive->net.cm),
        .iwarp_cm = tcp_services_iwarp(&drive->tcp),
        .memory = dram_reserve(config->dram, ECHO_MEMORY_LEN, 4096),
    };

    if (echo.memory == NULL) {
        return INIT_NO_MEMORY;
    }
    memory_check_add_service(&drive->memory, echo.memory, ECHO_MEMORY_LEN);
    echo_init(&drive->echo, &echo);
    if (config->config->network.has_echo) {
        if (!echo_switch(&drive->echo, true)) {
            return INIT_NO_ROOM;
        }
        log_line(drive->log, "echo: listening on %u", ECHO_SERVICE_PORT);
    }
    return INIT_OK;
}

static struct init_report net_start(struct drive *drive,
                                    const struct drive_config *config)
{
    struct drive_net_config net = {
        .dram = config->dram,
        .log = config->log,
        .identity = config->identity,
        .config = config->config,
        .generation = config->generation,
        .random_seed = config->random_seed,
        .random = config->random,
        .random_ctx = config->random_ctx,
        .port_regs = {config->port_regs[0], config->port_regs[1]},
        .rnic_regs = config->rnic_regs,
        .lag_regs = config->lag_regs,
        .initiator_depth = RDMA_MAX_RD_ATOMIC,
        .parity_error = drive_report_rnic_transfer,
        .parity_ctx = drive,
        .trace = mgmt_trace(&drive->mgmt),
    };

    return drive_net_init(&drive->net, &net, drive->now_us);
}

static void services_start(struct drive *drive,
                           const struct drive_config *config)
{
    char nqn[NVMF_NQN_MAX + 1];
    struct services_config services = {
        .log = config->log,
        .discovery_nqn = nqn,
        .discovery_port = DRIVE_SERVICE_PORT,
        .net = &drive->net,
        .target = drive->target,
        .identity = config->identity,
        .config = config->config,
        .version = config->version,
        .random_seed = config->random_seed,
    };

    format_discovery_nqn(config, nqn);
    if (config->config->network.profile == CONFIG_PROFILE_DATASHEET ||
        nqn[0] == '\0') {
        services.discovery_nqn = NVME_DISCOVERY_NQN;
    }
    services_init(&drive->services, &services, drive->now_us);
}

static void mgmt_start(struct drive *drive, const struct drive_config *config)
{
    const struct mgmt_service_config service = {
        .mgmt = &drive->mgmt,
        .requests = mgmt_requests,
        .request_count = MGMT_REQUESTS,
        .ctx = &drive->parts,
    };
    enum init_result result =
        mgmt_init(&drive->mgmt, config->mgmt_regs, config->dram);

    if (result != INIT_OK) {
        log_line(drive->log,
                 "mgmt: tools cannot send requests to this drive: %s",
                 init_result_text(result));
    }
    mgmt_service_init(&drive->mgmt_service, &service);
    drive->connect_log = (struct connect_log){
        .log = config->log,
        .trace = mgmt_trace(&drive->mgmt),
    };
}

/* Start the drivers and the network. */
static struct init_report start_below(struct drive *drive,
                                      const struct drive_config *config)
{
    struct init_report report = {reserve_target(drive, config), "nvme-of"};

    if (report.result == INIT_OK) {
        report = net_start(drive, config);
    }
    if (report.result == INIT_OK) {
        report = drive_medium_start(drive, config);
    }
    return report;
}

static void telemetry_start(struct drive *drive,
                            const struct drive_config *config)
{
    const struct telemetry_sources sources = {
        .log = drive->log,
        .mgmt = &drive->mgmt,
        .requests = mgmt_requests,
        .request_count = MGMT_REQUESTS,
        .ctx = &drive->parts,
    };

    telemetry_init(&drive->telemetry, &sources, config->dram,
                   &config->telemetry);
}

/* Start the ways in which hosts reach the target. */
static struct init_report start_transports(struct drive *drive,
                                           const struct drive_config *config)
{
    struct init_report report = {bufs_start(drive, config), "nvme-of"};

    if (report.result == INIT_OK) {
        report.result = transport_start(drive, config);
    }
    if (report.result == INIT_OK) {
        report = (struct init_report){echo_start(drive, config), "echo"};
    }
    if (report.result == INIT_OK) {
        tcp_services_start(drive, config);
        aoe_service_start(drive, config);
        drive_fill_parts(drive);
    }
    return report;
}

/* Start the services to which hosts connect. */
static struct init_report start_above(struct drive *drive,
                                      const struct drive_config *config)
{
    peripherals_start(drive, config);
    addresses_init(&drive->addresses, config->log, &drive->net,
                   DRIVE_SERVICE_PORT);
    services_start(drive, config);
    drive_volume_start(drive, config);
    if (!drive_stages_start(drive, config) ||
        !operations_start(drive, config)) {
        return (struct init_report){INIT_NO_MEMORY, "stages and operations"};
    }
    firmware_update_start(drive, config);
    drive_reservations_start(drive, config);
    hosts_start(drive, config);
    drive_fill_parts(drive);
    telemetry_start(drive, config);
    target_start(drive, config);
    reservations_loaded(drive->reservations, volume_now(drive->volume));
    if (config->telemetry.panic != NULL) {
        telemetry_record_panic(&drive->telemetry, config->telemetry.panic);
        nvmf_target_telemetry_made(drive->target);
        nvmf_target_was_fatal(drive->target);
    }
    peripherals_start_bmc(drive, config);
    return start_transports(drive, config);
}

static void record_event(void *ctx, const struct nvmf_vendor_event *event)
{
    nvmf_target_record_vendor(((struct drive *)ctx)->target, event);
}

struct init_report drive_init(struct drive *drive,
                              const struct drive_config *config,
                              uint64_t now_us)
{
    const struct hw_errors_config errors = {
        .log = config->log,
        .hw_log = &drive->hw_log,
        .flash_failures = config->flash_failures,
        .record = record_event,
        .ctx = drive,
    };
    struct init_report report;

    drive->log = config->log;
    drive->now_us = now_us;
    drive->transports = (struct nvmf_bindings){0};
    drive->transfer_errors =
        (struct transfer_errors){.log = config->log, .hw_log = &drive->hw_log};
    drive->nand_rules =
        (struct nand_rules){.log = config->log, .hw_log = &drive->hw_log};
    drive_start_power(drive, config);
    mgmt_start(drive, config);
    settings_start(drive, config);
    usage_keeper_init(&drive->keeper, &config->usage, now_us);
    hw_errors_start(&drive->hw_errors, &errors, &config->hw_errors,
                    config->telemetry.panic, now_us);
    report = start_below(drive, config);
    if (report.result == INIT_OK) {
        report = start_above(drive, config);
    }
    if (report.result == INIT_OK) {
        drive_net_start(&drive->net);
    }
    return report;
}

void drive_stop(struct drive *drive)
{
    bool is_flushed;

    services_stop(&drive->services);
    aoe_service_stop(drive);
    is_flushed = drive->nand.ftl == NULL || nand_medium_stop(&drive->nand);
    drive_net_flush(&drive->net);
    usage_keeper_stop(&drive->keeper, is_flushed, drive->now_us);
    event_keeper_stop(&drive->events);
    latency_keeper_stop(&drive->latency);
    share_keeper_stop(&drive->shares);
    hw_log_stop(&drive->hw_log);
}

void drive_report_image(struct drive *drive, uint8_t slot)
{
    log_line(drive->log, "drive: firmware image in slot %u is damaged", slot);
    nvmf_target_log_error(drive->target, STATUS_INVALID_IMAGE, 0, slot);
}
