/* SPDX-License-Identifier: BSD-2-Clause */
/* The firmware on its SoC: it sets everything up and runs the main loop. */
#include "firmware/app/board.h"
#include "firmware/app/components.h"
#include "firmware/app/version.h"
#include "firmware/arch/arch.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "firmware/settings/config_flash.h"
#include "hw-model/regs/soc.h"

/*
 * The firmware's only variables.  All functions get their context as an
 * argument.
 */
static struct board board;
static struct drive drive;
static struct hal_wait sleep;
static struct console console;
static struct loop loop;

static enum volume_record record_state(enum area_result result)
{
    static const uint8_t states[] = {
        [AREA_OK] = VOLUME_RECORD_OK,
        [AREA_OLDER] = VOLUME_RECORD_OLDER,
        [AREA_EMPTY] = VOLUME_RECORD_NONE,
        [AREA_DAMAGED] = VOLUME_RECORD_DAMAGED,
    };

    return (enum volume_record)states[result];
}

static bool has_crashed(void)
{
    return board.has_panicked || board.crash.pending_len != 0;
}

/* The watchdog leaves no record in sysctl's scratch words, only a dump. */
static struct telemetry_panic last_panic(void)
{
    struct telemetry_panic panic = {
        .is_trap = board.panic.is_trap,
        .count = board.panic.count,
        .line = board.panic.line,
        .mcause = board.panic.mcause,
        .mepc = board.panic.mepc,
        .mtval = board.panic.mtval,
        .file = board.panic.file,
    };
    struct crash_summary summary;

    if (!board.has_panicked && board.crash.pending_len != 0 &&
        crash_summarise(&summary, board.crash.pending,
                        board.crash.pending_len)) {
        panic.is_watchdog = true;
        panic.mepc = summary.pc;
    }
    return panic;
}

/* A native hart has no boot ROM, so that no image in a slot is ever started. */
static const struct flash *slots_flash(void)
{
    bool has_rom = sysctl_boot(&board.sysctl).is_done;

    return board.has_flash && has_rom ? &board.flash : NULL;
}

static struct usage_keeper_config usage_config(enum sysctl_reset_cause cause)
{
    return (struct usage_keeper_config){
        .usage = &board.usage,
        .is_power_on = cause == SYSCTL_RESET_POWER_ON,
        .start = board.generation,
        .errors = &board.errors,
        .save = board_save_usage,
        .save_error = board_save_error,
        .save_ctx = &board,
    };
}

static struct drive_record namespaces_record(void)
{
    return (struct drive_record){
        .state = record_state(board.namespaces_state),
        .record = board.namespaces,
        .len = board.namespaces_len,
        .writes = board.namespaces_sequence,
        .save = board_save_namespaces,
        .save_ctx = &board,
    };
}

static struct drive_record reservations_record(void)
{
    return (struct drive_record){
        .state = record_state(board.reservations_state),
        .record = board.reservations,
        .len = board.reservations_len,
        .writes = board.reservations_sequence,
        .save = board_save_reservations,
        .save_ctx = &board,
    };
}

/* @param panic  used during drive_init() only */
static struct telemetry_config telemetry_config(
    const struct telemetry_panic *panic)
{
    return (struct telemetry_config){
        .panic = has_crashed() ? panic : NULL,
        .crashes = board_crash_store(&board.crash),
        .record = board.telemetry,
        .record_len = board.telemetry_len,
        .save = board_save_telemetry,
        .save_ctx = &board,
    };
}

static struct firmware_config firmware_config(enum sysctl_reset_cause cause)
{
    return (struct firmware_config){
        .flash = slots_flash(),
        .is_bad = {board_slot_is_bad(&board, 1), board_slot_is_bad(&board, 2)},
        .is_unplanned = sysctl_reset_is_unplanned(cause),
        .dram_addr = SOC_DRAM_BASE,
        .dram_bytes = sysctl_dram_bytes(&board.sysctl),
        .key = board.has_key ? board.key : NULL,
        .restart = board_restart,
        .ctx = &board,
    };
}

/* What the drive gets of its SoC: the addresses of the blocks, memory, power.
 */
static void add_hardware(struct drive_config *config)
{
    uint32_t budget_us = sysctl_power_budget_us(&board.sysctl);

    config->ecc.regs = SOC_ECC_BASE;
    config->ecc.dram_base = SOC_DRAM_BASE;
    config->ecc.dram_bytes = sysctl_dram_bytes(&board.sysctl);
    config->ecc.sram_base = SOC_SRAM_BASE;
    config->ecc.sram_bytes = SOC_SRAM_SIZE;
    config->power.is_failing =
        sysctl_has_capacitors(&board.sysctl) ? board_power_is_failing : NULL;
    config->power.saved = board_power_saved;
    config->power.ctx = &board;
    /* 0 would mean that there is no limit. */
    config->power.budget_us = MAX(budget_us, 1u);
    config->port_regs[0] = SOC_PORT0_BASE;
    config->port_regs[1] = SOC_PORT1_BASE;
    config->rnic_regs = SOC_RNIC_BASE;
    config->lag_regs = SOC_LAG_BASE;
    config->toe_regs = SOC_TOE_BASE;
    config->media_regs = SOC_MEDIA_BASE;
    config->nand_regs = SOC_NAND_BASE;
    config->i2c_regs[0] = SOC_I2C0_BASE;
    config->i2c_regs[1] = SOC_I2C1_BASE;
    config->i2c_regs[2] = SOC_I2C2_BASE;
    config->mgmt_regs = SOC_MGMT_BASE;
}

/* @param panic  outlives drive_init() */
static struct drive_config drive_config_of(const struct telemetry_panic *panic)
{
    uint8_t straps = gpio_read_all(&board.straps_gpio);
    enum sysctl_reset_cause cause = sysctl_reset_cause(&board.sysctl);
    struct drive_config config = {
        .dram = &board.dram,
        .log = &board.log,
        .identity = &board.identity,
        .config = &board.config,
        .saved_config = &board.saved_config,
        .save_config = straps & STRAPS_LOCKED ? NULL : board_save_config,
        .save_ctx = &board,
        .hosts = &board.hosts,
        .is_closed = board.has_lost_config,
        .save_hosts = board_save_hosts,
        .random = board_random,
        .random_ctx = &board,
        .key_log = board_key_log(&board),
        .usage = usage_config(cause),
        .events = {board.events, board_save_event, &board},
        .namespaces = namespaces_record(),
        .operations = board_records_stores(&board.records),
        .reservations = reservations_record(),
        .telemetry = telemetry_config(panic),
        .hw_errors = {&board.hw_errors, board.generation, board_save_hw_error,
                      &board},
        .flash_failures = &board.flash_failures,
        .generation = board.generation,
        .has_kept_dram = cause != SYSCTL_RESET_POWER_ON,
        .random_seed = sysctl_random64(&board.sysctl),
        .straps = straps,
        .version = ESSD_FW_VERSION,
        .slot_version = {board.slot_version[0], board.slot_version[1]},
        .firmware = firmware_config(cause),
        .active_slot = sysctl_boot(&board.sysctl).slot == SYSCTL_SLOT_B ? 2 : 1,
    };

    add_hardware(&config);
    return config;
}

static void enable_interrupts(void)
{
    static const uint8_t irq[] = {
        SOC_IRQ_PORT0, SOC_IRQ_PORT1, SOC_IRQ_RNIC, SOC_IRQ_MEDIA, SOC_IRQ_NAND,
        SOC_IRQ_MGMT,  SOC_IRQ_I2C0,  SOC_IRQ_I2C1, SOC_IRQ_I2C2,  SOC_IRQ_UART,
        SOC_IRQ_ECC,   SOC_IRQ_POWER, SOC_IRQ_TOE};

    for (unsigned int i = 0; i < ARRAY_LEN(irq); i++) {
        plic_enable(&board.plic, irq[i]);
    }
}

/* @return false when the drive cannot serve hosts; the log has the reason */
static bool start_drive(void)
{
    const struct telemetry_panic panic = last_panic();
    struct drive_config config = drive_config_of(&panic);
    struct init_report report;
    struct crash_ring ring;

    if (!board.has_identity) {
        log_line(&board.log, "drive: serves no hosts: there is no identity in "
                             "flash; create the drive's flash again");
        return false;
    }
    enable_interrupts();
    report = drive_init(&drive, &config, hal_now_us());
    if (report.result != INIT_OK) {
        log_line(&board.log, "drive: serves no hosts: %s: %s", report.part,
                 init_result_text(report.result));
        return false;
    }
    if (mgmt_trace_ring(&drive.mgmt, &ring)) {
        crash_plan_ring(board.crash.region, &ring);
    }
    console_init(&console, &board.uart, &drive.parts);
    return true;
}

/* Record the images that the boot ROM rejected in the error log. */
static void report_images(void)
{
    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        if (board_slot_is_bad(&board, slot)) {
            drive_report_image(&drive, slot);
        }
    }
}

/* See slot_record_trial_fails(). */
static void end_failed_trial(void)
{
    const bool is_bad[SLOT_COUNT] = {board_slot_is_bad(&board, 1),
                                     board_slot_is_bad(&board, 2)};
    struct slot_record record;
    uint32_t sequence;

    if (!board.has_flash) {
        return;
    }
    /* If there is no record, slot_record_read() says that nothing is on trial.
     */
    (void)slot_record_read(&board.flash, &record, &sequence);
    if (slot_record_trial_fails(
            &record, (uint8_t)sysctl_boot(&board.sysctl).slot, is_bad)) {
        log_line(&board.log, "drive: the image is on trial: resetting");
        board_restart(&board);
    }
}

/* The image before one on trial may know a configuration that is intact.  No
 * image knows a damaged one: its owner needs the console of this one. */
static void check_config(void)
{
    if (board.has_lost_config && config_flash_is_unknown(&board.flash)) {
        end_failed_trial();
    }
}

/* Without a drive, the loop serves the log alone. */
static void fill_loop(void)
{
    board_add_components(&board, &loop);
    check_config();
    if (start_drive()) {
        report_images();
        components_add_drive(&loop, &drive, &console);
    } else {
        end_failed_trial();
        components_add_log(&loop, &board.log);
    }
}

static void sleep_until(uint64_t deadline_us)
{
    uint32_t irqs;

    hal_wait_until(&sleep, deadline_us);
    irqs = plic_claim(&board.plic);
    loop_irqs(&loop, irqs);
    plic_complete(&board.plic, irqs);
}

void arch_main(uint64_t hart)
{
    struct sysctl sysctl;
    uint8_t *free_memory = arch_free_memory();
    void *region;
    uint64_t deadline_us;

    (void)hart;
    ASSERT(sysctl_init(&sysctl, SOC_SYSCTL_BASE));
    region = crash_region(SOC_DRAM_BASE, sysctl_dram_bytes(&sysctl));
    board_crash_init(&board.crash, region, arch_build_id(),
                     sysctl_harts(&sysctl), arch_stack_bottom(),
                     arch_stack_top());
    arch_enable_nmi();
    hal_wait_init(&sleep);
    loop_init(&loop);
    board_init(&board, arch_build_id(), free_memory,
               (uintptr_t)region - (uintptr_t)free_memory);
    fill_loop();
    /* The start does much that is not interrupted; the first turn has the whole
     * time again. */
    watchdog_kick(&board.watchdog);
    for (;;) {
        if (!loop_turn(&loop, hal_now_us()) && loop_arm(&loop, &deadline_us)) {
            sleep_until(deadline_us);
        }
    }
}
