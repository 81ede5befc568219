/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/native.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/app/version.h"
#include "firmware/boot/boot_slots.h"
#include "firmware/hal/time.h"
#include "firmware/native/memory.h"
#include "firmware/native/native_turn.h"
#include "lib/random.h"

enum {
    CACHE_BYTES = 16 * 1024 * 1024,
    MTU_BYTES = 1500,
    PREFIX_V4 = 24,
    PREFIX_V6 = 64,
    SPEED_GBPS = 25,
    BUDGET = 256,
    READS = 16,
    BOOT_DRAM_BYTES = 64 * 1024 * 1024, /* into which an image is loaded */
};

/* ---- Identity of a node. */

static void make_identity(struct identity *identity, uint8_t number,
                          const char *nqn)
{
    *identity = (struct identity){0};
    log_format(identity->serial, sizeof(identity->serial), "NATIVE%04u",
               number);
    log_format(identity->model, sizeof(identity->model), "essd-native");
    for (uint8_t i = 0; i < IDENTITY_MAC_COUNT; i++) {
        const uint8_t mac[6] = {0x02, 0xe5, 0x5d, 0, number, i};

        memcpy(identity->mac[i], mac, sizeof(mac));
    }
    identity->ca_guid[0] = 0x02;
    identity->ca_guid[7] = number;
    identity->uuid[6] = 0x40; /* version 4 */
    identity->uuid[8] = 0x80;
    identity->uuid[11] = number;
    identity->nguid[0] = 0xe5;
    identity->nguid[8] = 0x02; /* an OUI that is administered locally */
    identity->nguid[9] = 0xe5;
    identity->nguid[10] = 0x5d;
    identity->nguid[11] = number;
    if (nqn != NULL) {
        log_format(identity->subsystem_nqn, sizeof(identity->subsystem_nqn),
                   "%s", nqn);
    } else {
        log_format(identity->subsystem_nqn, sizeof(identity->subsystem_nqn),
                   "nqn.2026-01.net.example:native-%u", number);
    }
}

static void make_config(struct config *config,
                        const struct native_node_config *from)
{
    config_default(config);
    config->network.lag = from->lag;
    config->network.has_roce_v1 = from->has_roce_v1;
    config->network.lacp_is_fast = true;
    config->network.lag_has_revert = from->lag_has_revert;
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        struct config_port *port = &config->port[i];

        port->mtu_bytes = from->mtu_bytes != 0 ? from->mtu_bytes : MTU_BYTES;
        port->vlan = from->vlan;
        port->priority = from->priority;
        port->speed_gbps = SPEED_GBPS;
        port->fec = CONFIG_FEC_FC;
        port->has_ipv4 = from->ipv4[i] != 0;
        put_be32(port->ipv4, from->ipv4[i]);
        port->ipv4_prefix = PREFIX_V4;
        port->has_ipv6 = from->has_ipv6;
        port->ipv6[0] = 0xfd;
        port->ipv6[7] = (uint8_t)(i + 1);
        port->ipv6[15] = from->number;
        port->ipv6_prefix = PREFIX_V6;
    }
}

static uint32_t generation_of(const struct native_node_config *config)
{
    return config->generation != 0 ? config->generation : 1;
}

/* ---- The drive. */

void native_drive_wake(struct native_drive *drive)
{
    drive->sleep.is_asleep = false;
    loop_request_steps(&drive->loop);
}

static bool save_config(void *ctx, const struct config *config)
{
    struct native_drive *drive = ctx;

    if (drive->is_flash_broken) {
        return false;
    }
    drive->flash = *config;
    drive->saves++;
    return true;
}

static enum host_save save_hosts(void *ctx, const struct host_list *hosts)
{
    struct native_drive *drive = ctx;

    if (drive->is_flash_broken) {
        return HOST_SAVE_FAILED;
    }
    if (drive->hosts != NULL) {
        *drive->hosts = *hosts;
    }
    return HOST_SAVED;
}

/* Repeatable, for tests only. */
static void fill_random(void *ctx, uint8_t *buf, size_t len)
{
    struct native_drive *drive = ctx;

    while (len-- > 0) {
        *buf++ = (uint8_t)random_next(&drive->random);
    }
}

static bool save_usage(void *ctx, const struct usage *usage)
{
    struct native_drive *drive = ctx;

    *drive->usage = *usage;
    drive->usage_saves++;
    return true;
}

static bool save_error(void *ctx, const struct error_record *record)
{
    struct native_drive *drive = ctx;

    error_records_add(drive->errors, record);
    return true;
}

static bool save_event(void *ctx, const uint8_t *record)
{
    struct native_drive *drive = ctx;
    struct native_events *events = drive->events;

    if (drive->is_flash_broken) {
        return false;
    }
    memcpy(events->record[events->writes % ARRAY_LEN(events->record)], record,
           RECORD_DATA_LEN);
    events->writes++;
    return true;
}

/* Put the events in flash together, as the board does. */
static struct event_records *read_events(struct native_drive *drive)
{
    const struct native_events *from = drive->events;
    struct event_records *events =
        dram_alloc(&drive->machine.dram, sizeof(*events), 8);
    unsigned int first;

    ASSERT(events != NULL);
    memset(events, 0, sizeof(*events));
    first = from->writes - MIN(from->writes, ARRAY_LEN(from->record));
    for (unsigned int i = first; i < from->writes; i++) {
        event_records_add(events, from->record[i % ARRAY_LEN(from->record)]);
    }
    return events;
}

static bool save_namespaces(void *ctx, const uint8_t *record, size_t len)
{
    struct native_drive *drive = ctx;

    if (drive->is_flash_broken) {
        return false;
    }
    ASSERT(len <= sizeof(drive->namespaces->record));
    memcpy(drive->namespaces->record, record, len);
    drive->namespaces->len = len;
    drive->namespaces->writes++;
    return true;
}

static bool save_reservations(void *ctx, const uint8_t *record, size_t len)
{
    struct native_drive *drive = ctx;

    if (drive->is_flash_broken) {
        return false;
    }
    ASSERT(len <= sizeof(drive->reservations->record));
    memcpy(drive->reservations->record, record, len);
    drive->reservations->len = len;
    drive->reservations->writes++;
    return true;
}

static bool save_telemetry(void *ctx, const uint8_t *record, size_t len)
{
    struct native_drive *drive = ctx;

    if (drive->is_flash_broken || drive->telemetry == NULL) {
        return false;
    }
    memcpy(drive->telemetry->record, record, len);
    drive->telemetry->len = len;
    drive->telemetry->writes++;
    return true;
}

/* ---- Power. */

void native_drive_power_fails(struct native_drive *drive)
{
    drive->power_is_failing = true;
    drive->fail_ns = drive->machine.node.world->now_ns;
    native_drive_wake(drive);
}

static bool power_is_failing(void *ctx)
{
    return ((const struct native_drive *)ctx)->power_is_failing;
}

static void note_power_saved(void *ctx)
{
    struct native_drive *drive = ctx;

    drive->saved_ns = drive->machine.node.world->now_ns;
}

/* ---- Image slots. */

static void want_restart(void *ctx)
{
    ((struct native_drive *)ctx)->wants_restart = true;
}

/* Choose an image as the boot ROM does.  The image is not run, because the
 * firmware is linked into this process. */
static struct firmware_config choose_image(
    struct native_drive *drive, const struct native_drive_config *config)
{
    struct boot_config boot = {
        .flash = &config->spi_flash->flash,
        .dram_addr = SOC_DRAM_BASE,
        .dram_bytes = BOOT_DRAM_BYTES,
        .key = config->key,
    };
    struct firmware_config firmware = {
        .flash = boot.flash,
        .dram_addr = boot.dram_addr,
        .dram_bytes = boot.dram_bytes,
        .key = config->key,
        .restart = want_restart,
        .ctx = drive,
    };
    struct boot_slots slots;

    boot.dram = malloc(boot.dram_bytes);
    ASSERT(boot.dram != NULL);
    boot_slots_read(&slots, &boot);
    drive->slot = boot_slots_choose(&slots);
    for (unsigned int i = 0; i < SLOT_COUNT; i++) {
        firmware.is_bad[i] = slots.slot[i].verdict != SYSCTL_VERDICT_UNTRIED &&
                             slots.slot[i].verdict != SYSCTL_VERDICT_GOOD;
    }
    if (drive->slot != 0) {
        log_format(drive->version, sizeof(drive->version), "%s",
                   slots.slot[drive->slot - 1].header.version);
    }
    free(boot.dram);
    return firmware;
}

static struct drive_config drive_config_of(
    struct native_drive *drive, const struct native_drive_config *config)
{
    const struct native_node *node = &drive->machine.node;
    struct native_operations *operations = config->operations != NULL
                                               ? config->operations
                                               : &drive->own_operations;

    return (struct drive_config){
        .dram = &drive->machine.dram,
        .log = &drive->log,
        .identity = &drive->identity,
        .config = &drive->config,
        .save_config = save_config,
        .save_ctx = drive,
        .hosts = config->hosts,
        .save_hosts = save_hosts,
        .random = fill_random,
        .random_ctx = drive,
        .usage =
            {
                .usage = config->usage,
                .is_power_on = config->kept_dram == NULL,
                .start = generation_of(&config->node),
                .errors = config->errors,
                .save = config->usage != NULL ? save_usage : NULL,
                .save_error = config->errors != NULL ? save_error : NULL,
                .save_ctx = drive,
            },
        .events =
            {
                .events = drive->events != NULL ? read_events(drive) : NULL,
                .save = drive->events != NULL ? save_event : NULL,
                .save_ctx = drive,
            },
        .namespaces =
            {
                .state = drive->namespaces->writes != 0 ? VOLUME_RECORD_OK
                                                        : VOLUME_RECORD_NONE,
                .record = drive->namespaces->record,
                .len = drive->namespaces->len,
                .writes = drive->namespaces->writes,
                .save = save_namespaces,
                .save_ctx = drive,
            },
        .telemetry =
            {
                .panic = config->panic,
                .crashes = config->crashes != NULL ? *config->crashes
                                                   : (struct crash_store){0},
                .record = config->telemetry != NULL ? config->telemetry->record
                                                    : NULL,
                .record_len =
                    config->telemetry != NULL ? config->telemetry->len : 0,
                .save = save_telemetry,
                .save_ctx = drive,
            },
        .operations =
            native_operations_stores(operations, &drive->is_flash_broken),
        .reservations =
            {
                .state = drive->reservations->writes != 0 ? VOLUME_RECORD_OK
                                                          : VOLUME_RECORD_NONE,
                .record = drive->reservations->record,
                .len = drive->reservations->len,
                .writes = drive->reservations->writes,
                .save = save_reservations,
                .save_ctx = drive,
            },
        .flash_failures = &drive->flash_failures,
        .hw_errors = {.records = config->hw_errors,
                      .boot = generation_of(&config->node)},
        .generation = generation_of(&config->node),
        .has_kept_dram = config->kept_dram != NULL,
        .power = {config->has_capacitors ? power_is_failing : NULL,
                  note_power_saved, drive, config->budget_us},
        .random_seed =
            UINT64_C(0x9e3779b97f4a7c15) *
            (config->node.number + 256u * generation_of(&config->node)),
        .port_regs = {native_node_regs(node, SOC_PORT0_BASE),
                      native_node_regs(node, SOC_PORT1_BASE)},
        .rnic_regs = native_node_regs(node, SOC_RNIC_BASE),
        .lag_regs = native_node_regs(node, SOC_LAG_BASE),
        .toe_regs = native_node_regs(node, SOC_TOE_BASE),
        .media_regs = native_node_regs(node, SOC_MEDIA_BASE),
        .nand_regs = native_node_regs(node, SOC_NAND_BASE),
        .straps = config->straps,
        .i2c_regs = {native_node_regs(node, SOC_I2C0_BASE),
                     native_node_regs(node, SOC_I2C1_BASE),
                     native_node_regs(node, SOC_I2C2_BASE)},
        .mgmt_regs = native_node_regs(node, SOC_MGMT_BASE),
        .ecc = {native_node_regs(node, SOC_ECC_BASE), SOC_DRAM_BASE,
                drive->machine.node.dram_bytes, SOC_SRAM_BASE, SOC_SRAM_SIZE},
        .version = ESSD_FW_VERSION,
        .slot_version = {ESSD_FW_VERSION, ""},
        .active_slot = 1,
    };
}

/* What a drive without power has kept is at the end of its DRAM again. */
static void keep_memory(struct native_drive *drive,
                        const struct native_drive_config *config,
                        uint32_t dram_bytes)
{
    if (config->kept_dram != NULL) {
        memcpy(native_node_dma(&drive->machine.node,
                               SOC_DRAM_BASE + dram_bytes - config->kept_bytes,
                               config->kept_bytes),
               config->kept_dram, config->kept_bytes);
    }
    if (config->kept_ecc != NULL) {
        machine_keep_errors(&drive->machine, config->kept_ecc);
    }
}

struct native_drive *native_drive_create(
    struct native_world *world, const struct native_drive_config *config)
{
    struct native_drive *drive = native_memory_get(sizeof(*drive));
    struct machine_config machine = {
        .dram_bytes = config->dram_bytes != 0 ? config->dram_bytes
                                              : (uint32_t)NATIVE_DRAM_BYTES,
        .medium = config->medium,
        .cache_bytes =
            config->cache_bytes != 0 ? config->cache_bytes : CACHE_BYTES,
        .flash = config->nand_flash,
        .flash_is_realtime = config->flash_is_realtime,
        .software = native_turn_of_drive(drive),
    };
    struct drive_config drive_config;

    make_identity(&drive->identity, config->node.number, config->nqn);
    drive->identity.capacity_bytes = config->capacity_bytes;
    make_config(&drive->config, &config->node);
    drive->usage = config->usage;
    drive->errors = config->errors;
    drive->events = config->events;
    drive->namespaces = config->namespaces != NULL ? config->namespaces
                                                   : &drive->own_namespaces;
    drive->reservations = config->reservations != NULL
                              ? config->reservations
                              : &drive->own_reservations;
    drive->hosts = config->hosts;
    drive->telemetry = config->telemetry;
    drive->random = config->node.number + 256u * generation_of(&config->node);
    native_set_services(&drive->config, config);
    machine_init(&drive->machine, world, &machine);
    keep_memory(drive, config, machine.dram_bytes);
    drive->power_is_failing = config->power_is_failing;
    drive->fail_ns = world->now_ns;
    drive->machine.holds_flash = config->flash_is_held;
    drive->machine.flash_is_batched = config->flash_is_batched;
    uart_init(&drive->uart,
              native_node_regs(&drive->machine.node, SOC_UART_BASE));
    log_init(&drive->log, uart_log_sink(&drive->uart));
    if (config->kept_dram != NULL) {
        nand_medium_count_start(
            (uint8_t *)native_node_dma(&drive->machine.node, SOC_DRAM_BASE, 1) +
                machine.dram_bytes,
            native_node_regs(&drive->machine.node, SOC_ECC_BASE),
            generation_of(&config->node));
    }
    if (ecc_init(&drive->ecc,
                 native_node_regs(&drive->machine.node, SOC_ECC_BASE))) {
        dram_clear_lost_words(&drive->machine.dram, ecc_clear_memory,
                              &drive->ecc);
    }
    drive_config = drive_config_of(drive, config);
    drive_config.has_stages = config->has_stages;
    if (config->spi_flash != NULL) {
        drive_config.firmware = choose_image(drive, config);
        ASSERT(drive->slot != 0);
        drive_config.active_slot = drive->slot;
        drive_config.version = drive->version;
    }
    drive->report = drive_init(&drive->drive, &drive_config, hal_now_us());
    loop_init(&drive->loop);
    if (drive->report.result != INIT_OK) {
        ASSERT(config->may_be_refused);
        components_add_log(&drive->loop, &drive->log);
        return drive;
    }
    console_init(&drive->console, &drive->uart, &drive->drive.parts);
    components_add_drive(&drive->loop, &drive->drive, &drive->console);
    return drive;
}

void native_drive_destroy(struct native_drive *drive)
{
    ASSERT(drive->machine.nand_violations == 0); /* See nand_rules_note(). */
    machine_end(&drive->machine);
    native_memory_free(drive);
}

void native_drive_power_cut(struct native_drive *drive)
{
    struct machine *machine = &drive->machine;

    medium_power_cut(machine->medium);
    if (machine->flash != NULL) {
        nand_ram_power_cut(machine->flash, machine->node.world->now_ns);
    }
    native_drive_destroy(drive);
}

/* ---- The host. */

/* A poll, because tests call the network's functions between turns. */
static enum loop_work host_poll(void *ctx, struct loop_step *step)
{
    struct native_host *host = ctx;
    uint64_t links_us, rnic_us;
    bool is_busy = drive_net_step(&host->net, step->now_us, &links_us);

    is_busy |=
        drive_net_poll_rnic(&host->net, step->now_us, step->budget, &rnic_us);
    is_busy |= drive_net_poll_frames(&host->net, step->now_us);
    loop_call_at(step, MIN(links_us, rnic_us));
    return is_busy ? LOOP_EVENT : LOOP_IDLE;
}

static void host_flush(void *ctx)
{
    struct native_host *host = ctx;

    drive_net_flush(&host->net);
}

static bool host_arm(void *ctx, uint64_t *deadline_us)
{
    struct native_host *host = ctx;

    (void)deadline_us;
    return drive_net_arm(&host->net, false);
}

static bool host_take_irqs(void *ctx, uint32_t irqs)
{
    struct native_host *host = ctx;

    return drive_net_irqs(&host->net, irqs);
}

static const struct component host_component = {
    .name = "network",
    .budget = BUDGET,
    .poll = host_poll,
    .flush = host_flush,
    .arm = host_arm,
    .irqs = host_take_irqs,
};

static bool host_turn(void *ctx)
{
    struct native_host *host = ctx;

    return native_turn_wakes(&host->sleep, &host->machine) &&
           native_turn_or_sleep(&host->loop, &host->sleep, &host->machine);
}

static uint64_t host_deadline_ns(void *ctx)
{
    const struct native_host *host = ctx;

    return native_turn_sleep_ends(&host->sleep);
}

static bool host_run(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                     uint64_t timeout_us)
{
    struct native_host *host = ctx;

    /* What the caller posted may have changed the deadlines. */
    host->sleep.is_asleep = false;
    return native_world_run(host->machine.node.world, is_done, done_ctx,
                            timeout_us * 1000);
}

void native_host_add(struct native_host *node, struct nvme_host *more,
                     uint16_t max_io_queues)
{
    struct host_config config = node->host_config;

    config.max_io_queues = max_io_queues;
    config.dram =
        dram_reserve(&node->machine.dram, HOST_DRAM_BYTES(max_io_queues), 64);
    ASSERT(config.dram != NULL);
    config.dram_addr = hal_dma_addr(config.dram);
    ASSERT(host_init(more, &config));
}

static void host_start(struct native_host *host,
                       const struct native_node_config *config)
{
    const struct native_node *node = &host->machine.node;
    struct dram *dram = &host->machine.dram;
    uint32_t data_bytes = config->data_bytes != 0
                              ? config->data_bytes
                              : (uint32_t)NATIVE_HOST_DATA_BYTES;
    struct drive_net_config net = {
        .dram = dram,
        .log = &host->log,
        .identity = &host->identity,
        .config = &host->config,
        .generation = generation_of(config),
        .random_seed = config->number + UINT64_C(0xd1b54a32d192ed03),
        .port_regs = {native_node_regs(node, SOC_PORT0_BASE),
                      native_node_regs(node, SOC_PORT1_BASE)},
        .rnic_regs = native_node_regs(node, SOC_RNIC_BASE),
        .lag_regs = native_node_regs(node, SOC_LAG_BASE),
        .initiator_depth = 1,
        .responder_resources = READS,
    };

    ASSERT(drive_net_init(&host->net, &net, hal_now_us()).result == INIT_OK);
    drive_net_start(&host->net);
    host->data = dram_reserve(dram, data_bytes, 4096);
    ASSERT(host->data != NULL);
    host->host_config = (struct host_config){
        .verbs = &host->net.verbs,
        .cm = &host->net.cm,
        .data = host->data,
        .data_addr = hal_dma_addr(host->data),
        .data_len = data_bytes,
        .run = host_run,
        .run_ctx = host,
    };
    native_host_add(host, &host->host, HOST_MAX_IO_QUEUES);
}

struct native_host *native_host_create(struct native_world *world,
                                       const struct native_node_config *config)
{
    struct native_host *host = native_memory_get(sizeof(*host));
    struct machine_config machine = {
        .dram_bytes = NATIVE_DRAM_BYTES,
        .software = {host, host_turn, host_deadline_ns},
    };

    make_identity(&host->identity, config->number, NULL);
    make_config(&host->config, config);
    machine_init(&host->machine, world, &machine);
    uart_init(&host->uart,
              native_node_regs(&host->machine.node, SOC_UART_BASE));
    log_init(&host->log, uart_log_sink(&host->uart));
    host_start(host, config);
    loop_init(&host->loop);
    loop_add(&host->loop, &host_component, host);
    components_add_log(&host->loop, &host->log);
    return host;
}

void native_host_destroy(struct native_host *host)
{
    machine_end(&host->machine);
    native_memory_free(host);
}
