/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/board.h"

#include <string.h>

#include "firmware/medium/nand_medium.h"
#include "firmware/hosts/host_store.h"
#include "firmware/settings/config_flash.h"
#include "firmware/settings/settings.h"
#include "firmware/app/version.h"
#include "storage/volume/reservations.h"
#include "storage/volume/volume_table.h"
#include "firmware/store/area_restore.h"
#include "firmware/store/flash_layout.h"
#include "firmware/store/slot_record.h"
#include "firmware/store/store.h"
#include "hw-model/regs/soc.h"

/* The first expiry already ends the firmware, with a crash dump. */
#define WATCHDOG_PERIOD_US 4000000

/* Log what runs; six bytes of the build ID suffice to tell builds apart. */
static void report_reset(struct board *board, const uint8_t *build_id)
{
    struct sysctl_boot boot = sysctl_boot(&board->sysctl);
    const struct sysctl_panic *panic = &board->panic;

    log_line(&board->log,
             "drive: firmware %s, build %02x%02x%02x%02x%02x%02x, "
             "reset by %s, slot %c",
             ESSD_FW_VERSION, build_id[0], build_id[1], build_id[2],
             build_id[3], build_id[4], build_id[5],
             sysctl_reset_cause_name(sysctl_reset_cause(&board->sysctl)),
             "-AB"[boot.slot]);
    board->has_panicked = sysctl_take_panic(&board->sysctl, &board->panic);
    if (board->has_panicked) {
        log_line(&board->log,
                 "drive: panic %u led to the reset: %s %s:%u at 0x%lx",
                 panic->count, panic->is_trap ? "trap" : "assertion",
                 panic->file, panic->line, panic->mepc);
    }
}

/* Log a port's settings; drive.c logs addresses once they are in use. */
static void report_port(struct board *board, unsigned int i)
{
    static const char *const fec[] = {"no FEC", "FC-FEC", "RS-FEC"};
    const struct config_port *port = &board->config.port[i];
    const uint8_t *mac = board->identity.mac[i];

    log_line(&board->log,
             "port %u: %02x:%02x:%02x:%02x:%02x:%02x, MTU %u, %u Gb/s, %s", i,
             mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], port->mtu_bytes,
             port->speed_gbps, fec[port->fec]);
}

static void read_slots(struct board *board)
{
    static const uint32_t addr[] = {FLASH_SLOT_A_ADDR, FLASH_SLOT_B_ADDR};

    for (unsigned int i = 0; i < ARRAY_LEN(addr); i++) {
        uint8_t buf[IMAGE_HEADER_LEN];
        struct image_header header;

        flash_read(&board->flash, addr[i], buf, sizeof(buf));
        if (image_header_parse(&header, buf, sizeof(buf)) == IMAGE_OK) {
            memcpy(board->slot_version[i], header.version,
                   sizeof(header.version));
        }
    }
}

static void note_loss(struct board *board, uint32_t addr)
{
    struct hw_error_records *errors = &board->hw_errors;

    ASSERT(errors->losses < ARRAY_LEN(errors->lost_addr));
    errors->lost_addr[errors->losses++] = addr;
}

/* The boot ROM or the updater replaces a lost record. */
static void check_slot_record(struct board *board)
{
    struct slot_record record;
    uint32_t sequence;
    enum area_result result =
        slot_record_read(&board->flash, &record, &sequence);

    if (area_is_lost(result) || record.was_lost) {
        note_loss(board, FLASH_SLOT_RECORD_ADDR);
    }
}

/* Restore an area, or note that its newest record is lost. */
static void restore_area(struct board *board, const struct area *area,
                         const char *what, uint32_t *sequence,
                         const struct area_found *found)
{
    if (area_restore(&board->flash, &board->log, area, what, sequence, found)) {
        note_loss(board, area->addr);
    }
}

static void read_namespaces(struct board *board)
{
    board->namespaces_state = AREA_EMPTY;
    board->namespaces = dram_alloc(&board->dram, VOLUME_RECORD_MAX, 8);
    if (board->namespaces == NULL) {
        return;
    }
    board->namespaces_state = area_read(
        &board->flash, &namespace_area, board->namespaces, VOLUME_RECORD_MAX,
        &board->namespaces_len, &board->namespaces_sequence);
    restore_area(
        board, &namespace_area, "namespaces", &board->namespaces_sequence,
        &(struct area_found){board->namespaces_state, board->namespaces,
                             board->namespaces_len});
}

/* Without memory for the events, those of earlier boots are not shown. */
static void read_events(struct board *board)
{
    board->events = dram_alloc(&board->dram, sizeof(*board->events), 8);
    if (board->events != NULL) {
        store_read_events(&board->flash, &board->event_place, board->events);
    }
}

static void read_reservations(struct board *board)
{
    board->reservations_state = AREA_EMPTY;
    board->reservations = dram_alloc(&board->dram, RESERVATIONS_RECORD_MAX, 8);
    if (board->reservations != NULL) {
        board->reservations_state =
            area_read(&board->flash, &reservation_area, board->reservations,
                      RESERVATIONS_RECORD_MAX, &board->reservations_len,
                      &board->reservations_sequence);
        restore_area(board, &reservation_area, "reservations",
                     &board->reservations_sequence,
                     &(struct area_found){board->reservations_state,
                                          board->reservations,
                                          board->reservations_len});
    }
}

static void read_telemetry(struct board *board)
{
    enum area_result result =
        area_read(&board->flash, &telemetry_area, board->telemetry,
                  sizeof(board->telemetry), &board->telemetry_len,
                  &board->telemetry_sequence);

    if (result != AREA_OK && result != AREA_OLDER) {
        board->telemetry_len = 0;
    }
}

/* A damaged list lets nobody in, because the lost one may have had keys. */
static void read_hosts(struct board *board)
{
    static const char *const repairs[] = {
        [HOST_REPAIR_FINISHED] =
            "hosts: both copies of the list of hosts in flash were written "
            "again, because a change was not finished or older secrets were "
            "left",
        [HOST_REPAIR_DAMAGE] =
            "hosts: a copy of the list of hosts in flash was damaged, and was "
            "written again; the list is complete",
        [HOST_REPAIR_FAILED] =
            "hosts: writing the copies of the list of hosts in flash again "
            "failed; the list in force is complete",
    };
    enum host_repair repair;

    if (host_store_read(&board->flash, &board->hosts) == HOST_STORE_DAMAGED) {
        note_loss(board, FLASH_HOSTS_A_ADDR);
        log_line(&board->log,
                 "hosts: the list of hosts in flash is damaged; no host may "
                 "connect until the list is made again (console: host add NQN, "
                 "or host exclusive off, which lets every host connect)");
        board->hosts = (struct host_list){.is_exclusive = true};
        return;
    }
    repair = host_store_repair(&board->flash, &board->hosts);
    if (repair != HOST_REPAIR_NONE) {
        log_line(&board->log, "%s", repairs[repair]);
    }
}

/* With the strap pin for the defaults, the owner has said what is in force. */
static void read_config(struct board *board, uint8_t straps)
{
    if (config_flash_read(&board->flash, &board->log, &board->saved_config)) {
        return;
    }
    note_loss(board, FLASH_CONFIG_A_ADDR);
    board->has_lost_config = !(straps & STRAPS_DEFAULTS);
}

static void kick_watchdog(void *ctx)
{
    struct board *board = ctx;

    watchdog_kick(&board->watchdog);
}

/* @return false: there is no flash */
static bool find_flash(struct board *board)
{
    if (!flash_init(&board->flash, &board->spi, &board->gpio,
                    SOC_GPIO_FLASH_SELECT)) {
        log_line(&board->log, "flash: no flash of the expected size answers: "
                              "there is no identity and no configuration");
        return false;
    }
    board->flash.ended = kick_watchdog;
    board->flash.ended_ctx = board;
    board_crash_keep(&board->crash, &board->flash, &board->log);
    board->flash.failures = &board->flash_failures;
    board->flash.change = &board->flash_change;
    board->has_flash = true;
    board->has_key = sysctl_boot_key(&board->sysctl, board->key);
    return true;
}

static void count_boot(struct board *board)
{
    uint32_t fresh = (uint32_t)sysctl_random64(&board->sysctl) >> 1;

    if (!store_count_boot(&board->flash, fresh, &board->generation)) {
        log_line(&board->log, "drive: writing the boot count to flash failed");
    }
    if (sysctl_reset_cause(&board->sysctl) != SYSCTL_RESET_POWER_ON) {
        nand_medium_count_start(board->dram.base + board->dram.size_bytes,
                                SOC_ECC_BASE, board->generation);
    }
    crash_plan_boot(board->crash.region, board->generation);
}

static void read_records(struct board *board)
{
    struct board_record *sanitize = &board->records.sanitize;

    store_read_usage(&board->flash, &board->usage_place, &board->usage);
    store_read_errors(&board->flash, &board->error_place, &board->errors);
    store_read_hw_errors(&board->flash, &board->hw_error_place,
                         &board->hw_errors);
    check_slot_record(board);
    read_events(board);
    read_namespaces(board);
    board_records_read(&board->records, &board->flash, &board->dram);
    restore_area(
        board, &sanitize_area, "sanitize", &sanitize->sequence,
        &(struct area_found){sanitize->state, sanitize->data, sanitize->len});
    read_reservations(board);
    read_telemetry(board);
    read_hosts(board);
}

static void use_config(struct board *board)
{
    uint8_t straps = gpio_read_all(&board->straps_gpio);

    read_config(board, straps);
    config_flash_repair(&board->flash, &board->log, straps);
    board->config = board->saved_config;
    settings_apply_straps(&board->config, straps);
}

static void read_identity(struct board *board)
{
    board->has_identity = store_read_identity(&board->flash, &board->identity);
    if (!board->has_identity) {
        log_line(&board->log,
                 "drive: neither identity block in flash is intact");
        return;
    }
    log_line(&board->log, "drive: %s, serial %s, boot %u",
             board->identity.model, board->identity.serial, board->generation);
    log_line(&board->log, "drive: %s", board->identity.subsystem_nqn);
    for (unsigned int i = 0; i < CONFIG_PORTS; i++) {
        report_port(board, i);
    }
}

/* Read identity, configuration, usage and error log from flash. */
static void read_flash(struct board *board)
{
    if (find_flash(board)) {
        read_slots(board);
        count_boot(board);
        read_records(board);
        use_config(board);
        read_identity(board);
    }
}

void board_init(struct board *board, const uint8_t *build_id, void *free_memory,
                size_t free_bytes)
{
    uart_init(&board->uart, SOC_UART_BASE);
    log_init(&board->log, uart_log_sink(&board->uart));
    board_crash_add_log(&board->crash, &board->log);
    ASSERT(sysctl_init(&board->sysctl, SOC_SYSCTL_BASE));
    watchdog_init(&board->watchdog, SOC_WATCHDOG_BASE);
    watchdog_start(&board->watchdog, WATCHDOG_PERIOD_US);
    gpio_init(&board->straps_gpio, SOC_STRAPS_BASE);
    gpio_init(&board->gpio, SOC_GPIO_BASE);
    spi_init(&board->spi, SOC_SPI_BASE, SOC_SPI_DMA_BASE);
    plic_init(&board->plic, SOC_PLIC_BASE, 0);
    dram_init(&board->dram, free_memory, free_bytes);
    if (ecc_init(&board->ecc, SOC_ECC_BASE)) {
        dram_clear_lost_words(&board->dram, ecc_clear_memory, &board->ecc);
    }
    report_reset(board, build_id);
    log_line(&board->log,
             "drive: DRAM %zu MiB, %zu free, harts %u, straps %02x",
             sysctl_dram_bytes(&board->sysctl) >> 20, free_bytes >> 20,
             sysctl_harts(&board->sysctl), gpio_read_all(&board->straps_gpio));
    read_flash(board);
}

bool board_save_config(void *ctx, const struct config *config)
{
    struct board *board = ctx;

    return config_flash_write(&board->flash, &board->log, config);
}

enum host_save board_save_hosts(void *ctx, const struct host_list *hosts)
{
    struct board *board = ctx;

    return host_store_write(&board->flash, hosts);
}

static bool key_log_is_open(void *ctx)
{
    return sysctl_key_log_is_open(&((const struct board *)ctx)->sysctl);
}

static void key_log_put(void *ctx, const char *line)
{
    sysctl_key_log_put(&((const struct board *)ctx)->sysctl, line);
}

struct tls_key_log board_key_log(struct board *board)
{
    return (struct tls_key_log){key_log_is_open, key_log_put, board};
}

void board_random(void *ctx, uint8_t *buf, size_t len)
{
    const struct board *board = ctx;

    while (len > 0) {
        uint64_t bits = sysctl_random64(&board->sysctl);
        size_t n = MIN(len, sizeof(bits));

        memcpy(buf, &bits, n);
        buf += n;
        len -= n;
    }
}

bool board_save_usage(void *ctx, const struct usage *usage)
{
    struct board *board = ctx;

    return store_write_usage(&board->flash, &board->usage_place, usage);
}

bool board_save_error(void *ctx, const struct error_record *record)
{
    struct board *board = ctx;

    return store_write_error(&board->flash, &board->error_place, record);
}

bool board_save_hw_error(void *ctx, const struct hw_error *error)
{
    struct board *board = ctx;

    return store_write_hw_error(&board->flash, &board->hw_error_place, error);
}

bool board_save_event(void *ctx, const uint8_t *record)
{
    struct board *board = ctx;

    return board->events != NULL &&
           store_write_event_part(&board->flash, &board->event_place, record);
}

bool board_save_namespaces(void *ctx, const uint8_t *record, size_t len)
{
    struct board *board = ctx;

    return area_write(&board->flash, &namespace_area,
                      &board->namespaces_sequence, record, len);
}

bool board_save_reservations(void *ctx, const uint8_t *record, size_t len)
{
    struct board *board = ctx;

    return area_write(&board->flash, &reservation_area,
                      &board->reservations_sequence, record, len);
}

bool board_save_telemetry(void *ctx, const uint8_t *record, size_t len)
{
    struct board *board = ctx;

    return area_write(&board->flash, &telemetry_area,
                      &board->telemetry_sequence, record, len);
}

bool board_slot_is_bad(const struct board *board, uint8_t slot)
{
    enum sysctl_boot_verdict verdict =
        sysctl_boot(&board->sysctl).verdict[slot - 1];

    return verdict != SYSCTL_VERDICT_UNTRIED && verdict != SYSCTL_VERDICT_GOOD;
}

void board_restart(void *ctx)
{
    struct board *board = ctx;

    log_flush(&board->log);
    sysctl_reset(&board->sysctl, SYSCTL_RESET_SOFTWARE);
}

bool board_power_is_failing(void *ctx)
{
    const struct board *board = ctx;

    return sysctl_power_is_failing(&board->sysctl);
}

void board_power_saved(void *ctx)
{
    const struct board *board = ctx;

    sysctl_power_done(&board->sysctl);
}

void board_add_components(struct board *board, struct loop *loop)
{
    static const struct component watchdog = {
        .name = "watchdog",
        .step = watchdog_keeper_step,
    };

    board->watchdog_keeper.watchdog = &board->watchdog;
    loop_add(loop, &watchdog, &board->watchdog_keeper);
}
