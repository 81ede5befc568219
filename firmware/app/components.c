/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/components.h"

#include "firmware/app/drive_io.h"
#include "firmware/medium/media_seam.h"
#include "hw-model/regs/soc.h"

enum {
    VERBS_BUDGET = 256, /* completions of the RNIC */
    MEDIA_BUDGET = 256, /* completions of media engine or NAND controller */
    CONSOLE_BUDGET = 64,
    LOG_BUDGET = 512,
    /* How long the log waits for room in the UART's FIFO. */
    LOG_RETRY_US = 1000,
    ACKS_WAIT_US = 4000, /* longest wait before acknowledgements are polled */
};

/* ---- Time, network and media. */

/* The loop has left time out: tell those for whom it counts nevertheless. */
static void leave_out_time(struct drive *drive, uint64_t left_out_us)
{
    uint64_t us = left_out_us - drive->left_out_us;

    drive->left_out_us = left_out_us;
    nvmf_target_held_back(drive->target, us);
    drive_lag_held_back(&drive->net.lag, us);
}

/* A turn before which the loop leaves time out is a full one. */
static enum loop_work step_clock(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    if (drive->left_out_us != step->left_out_us) {
        leave_out_time(drive, step->left_out_us);
    }
    return LOOP_IDLE;
}

/* The callbacks of the polls and steps that follow use the time of this turn.
 */
static enum loop_work poll_clock(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    uint64_t now_us = step->now_us;

    drive->now_us = now_us;
    drive->connect_log.now_us = now_us;
    echo_tick(&drive->echo, now_us);
    nvmf_bindings_tick(&drive->transports, now_us);
    return LOOP_IDLE;
}

/* Frames of the stack may concern any component, completions hardly do. */
static enum loop_work poll_network(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    uint64_t deadline_us;
    bool has_completions = drive_net_poll_rnic(&drive->net, step->now_us,
                                               step->budget, &deadline_us);

    loop_call_at(step, deadline_us);
    if (drive_net_poll_frames(&drive->net, step->now_us)) {
        return LOOP_EVENT;
    }
    return has_completions ? LOOP_IO : LOOP_IDLE;
}

static enum loop_work step_network(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    uint64_t deadline_us;
    bool is_busy = drive_net_step(&drive->net, step->now_us, &deadline_us);

    loop_call_at(step, deadline_us);
    return is_busy ? LOOP_EVENT : LOOP_IDLE;
}

static void flush_network(void *ctx)
{
    struct drive *drive = ctx;

    drive_net_flush(&drive->net);
}

static bool waits_for_buffer(const struct drive *drive)
{
    return nvmf_target_is_short(drive->target) ||
           echo_awaits_write(&drive->echo);
}

/*
 * An acknowledged response frees its buffer.  While nobody waits for a buffer,
 * the loop does not ask for an interrupt at each acknowledgement, but wakes up
 * after ACKS_WAIT_US and handles all of them.
 */
static bool arm_network(void *ctx, uint64_t *deadline_us)
{
    struct drive *drive = ctx;
    enum nvmf_turn turn = nvmf_bindings_need_turn(&drive->transports);
    bool acks_wait = turn != NVMF_TURN_IS_NEEDED && !waits_for_buffer(drive);

    if (acks_wait && turn == NVMF_TURN_MAY_WAIT) {
        *deadline_us = MIN(*deadline_us, drive->now_us + ACKS_WAIT_US);
    }
    return drive_net_arm(&drive->net, acks_wait);
}

static bool take_network_irqs(void *ctx, uint32_t irqs)
{
    struct drive *drive = ctx;

    return drive_net_irqs(&drive->net, irqs);
}

static enum loop_work poll_media(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    unsigned int count =
        media_poll(&drive->media, step->budget, media_seam_done, NULL);

    /* Changes of namespaces, and erasing what deleted ones have left. */
    if (__builtin_expect(volume_has_work(drive->volume), 0)) {
        (void)volume_step(drive->volume);
        return LOOP_EVENT;
    }
    return count != 0 ? LOOP_IO : LOOP_IDLE;
}

static void flush_media(void *ctx)
{
    struct drive *drive = ctx;

    media_kick(&drive->media);
}

static bool arm_media(void *ctx, uint64_t *deadline_us)
{
    struct drive *drive = ctx;

    (void)deadline_us;
    return media_arm(&drive->media);
}

static bool take_media_irq(void *ctx, uint32_t irqs)
{
    (void)irqs;
    media_irq_take(&((struct drive *)ctx)->media);
    return false; /* the poll finds the completions */
}

/* ---- Power. */

static enum loop_work step_power(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    return power_check(&drive->power, step->now_us) ? LOOP_EVENT : LOOP_IDLE;
}

static bool take_power_irq(void *ctx, uint32_t irqs)
{
    (void)ctx;
    (void)irqs;
    return true;
}

/* ---- The medium of a drive with a NAND array, instead of the media engine. */

static enum loop_work poll_nand(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    enum loop_work work = nand_medium_poll(&drive->nand, step);

    if (__builtin_expect(volume_has_work(drive->volume), 0)) {
        (void)volume_step(drive->volume);
        return LOOP_EVENT;
    }
    return work;
}

static void flush_nand(void *ctx)
{
    nand_kick(&((struct drive *)ctx)->nand.nand);
}

static bool arm_nand(void *ctx, uint64_t *deadline_us)
{
    (void)deadline_us;
    return nand_medium_arm(&((struct drive *)ctx)->nand);
}

static bool take_nand_irq(void *ctx, uint32_t irqs)
{
    (void)irqs;
    nand_irq_take(&((struct drive *)ctx)->nand.nand);
    return false; /* the poll finds the completions */
}

/* ---- Components that process what network and media have received. */

static enum loop_work step_services(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    loop_call_at(
        step, services_step(&drive->services, step->now_us, step->left_out_us));
    return LOOP_IDLE;
}

/* Pass address changes on to the target and the transports. */
static void update_addresses(struct drive *drive)
{
    struct addresses *addresses = &drive->addresses;

    if (!addresses_update(addresses)) {
        return;
    }
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        if (addresses->changed & BIT(i)) {
            nvmf_bindings_set_address(&drive->transports, i,
                                      addresses_portid(addresses, i),
                                      addresses_link(addresses, i));
        }
    }
    nvmf_target_set_addresses(drive->target, addresses->list, addresses->count);
}

static enum loop_work step_addresses(void *ctx, struct loop_step *step)
{
    (void)step;
    update_addresses(ctx);
    return LOOP_IDLE;
}

static enum loop_work step_target(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    loop_call_at(step, nvmf_target_timer(drive->target, step->now_us));
    return LOOP_IDLE;
}

/* Responses that fault rules delay are not put off until the next full turn,
 * and an authentication gets one multiplication in each turn. */
static enum loop_work poll_target(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    if (__builtin_expect(!nvmf_target_has_work(drive->target), 1)) {
        return LOOP_IDLE;
    }
    if (nvmf_target_is_holding(drive->target)) {
        (void)step_target(ctx, step);
    }
    return nvmf_target_auth_step(drive->target, step->now_us) ? LOOP_IO
                                                              : LOOP_IDLE;
}

/* A second may be some milliseconds longer, so this is no poll. */
static enum loop_work step_transports(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    loop_call_at(step, nvmf_bindings_watch(&drive->transports));
    return nvmf_bindings_step(&drive->transports) ? LOOP_EVENT : LOOP_IDLE;
}

static __attribute__((noinline)) enum loop_work poll_echo(
    struct drive *drive, struct loop_step *step)
{
    uint64_t deadline_us;
    bool is_busy = echo_step(&drive->echo, &deadline_us);

    loop_call_at(step, deadline_us);
    return is_busy ? LOOP_EVENT : LOOP_IDLE;
}

/* TLS may have to encrypt at once what the transports have sent. */
static enum loop_work step_bindings(struct drive *drive)
{
    if (!nvmf_bindings_step(&drive->transports)) {
        return LOOP_IDLE;
    }
    return tcp_engine_needs_step(&drive->tcp) ? LOOP_EVENT : LOOP_IO;
}

/*
 * The TCP engine's entries come first, so that the transports take in the same
 * turn what these have brought.  Neither the engine nor the echo service is a
 * poll of its own, because each poll costs every turn some instructions.
 */
static enum loop_work poll_transports(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    enum loop_work work = LOOP_IDLE, next;

    if (__builtin_expect(drive->tcp.is_on, 0)) {
        work = tcp_services_poll(ctx, step);
    }
    next = step_bindings(drive);
    work = MAX(work, next);
    if (__builtin_expect(echo_has_work(&drive->echo), 0)) {
        next = poll_echo(drive, step);
        work = MAX(work, next);
    }
    return work;
}

static enum loop_work step_usage(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    if (drive->nand.ftl != NULL) {
        drive_report_nand_health(drive, step);
    }
    loop_call_at(step, usage_keeper_step(&drive->keeper, step->now_us));
    hw_errors_step(&drive->hw_errors, drive->now_us);
    loop_call_at(step, event_keeper_step(&drive->events, step->now_us));
    loop_call_at(step, latency_keeper_step(&drive->latency, step->now_us));
    loop_call_at(step, share_keeper_step(&drive->shares, step->now_us));
    loop_call_at(step, hw_log_step(&drive->hw_log, step->now_us));
    return LOOP_IDLE;
}

static enum loop_work step_memory(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    loop_call_at(step, memory_check_step(&drive->memory, step->now_us));
    return LOOP_IDLE;
}

static bool take_memory_irq(void *ctx, uint32_t irqs)
{
    (void)irqs;
    memory_check_irq(&((struct drive *)ctx)->memory);
    return true;
}

/* ---- Tools. */

static enum loop_work step_mgmt(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    uint64_t deadline_us;
    bool is_busy =
        mgmt_service_step(&drive->mgmt_service, step->now_us, &deadline_us);

    loop_call_at(step, deadline_us);
    return is_busy ? LOOP_EVENT : LOOP_IDLE;
}

static bool arm_mgmt(void *ctx, uint64_t *deadline_us)
{
    struct drive *drive = ctx;

    (void)deadline_us;
    return !mgmt_has_input(&drive->mgmt);
}

static bool take_mgmt_irq(void *ctx, uint32_t irqs)
{
    (void)irqs;
    mgmt_irq_take(&((struct drive *)ctx)->mgmt);
    return true;
}

/* ---- Console and log. */

static enum loop_work step_console(void *ctx, struct loop_step *step)
{
    return console_step(ctx, step->now_us, step->budget) ? LOOP_EVENT
                                                         : LOOP_IDLE;
}

static bool take_console_irq(void *ctx, uint32_t irqs)
{
    (void)irqs;
    console_wake(ctx);
    return true;
}

/* A poll, because what serves commands may log a line. */
static enum loop_work poll_log(void *ctx, struct loop_step *step)
{
    if (log_is_empty(ctx)) {
        return LOOP_IDLE;
    }
    if (log_poll(ctx, step->budget) == 0) {
        loop_call_at(step, step->now_us + LOG_RETRY_US);
        return LOOP_IDLE;
    }
    return LOOP_EVENT;
}

/* ---- The table. */

static const struct component console_component = {
    .name = "console",
    .budget = CONSOLE_BUDGET,
    .step = step_console,
    .irq_lines = BIT(SOC_IRQ_UART),
    .irqs = take_console_irq,
};

static const struct component nand_component = {
    .name = "nand",
    .budget = MEDIA_BUDGET,
    .poll = poll_nand,
    .flush = flush_nand,
    .arm = arm_nand,
    .irq_lines = BIT(SOC_IRQ_NAND),
    .irqs = take_nand_irq,
};

/*
 * The order of the table is the order of a turn: the first components receive
 * completions and frames, the next ones process them, and the flushes send the
 * results.
 */
static const struct component drive_components[] = {
    {.name = "clock", .poll = poll_clock, .step = step_clock},
    {
        .name = "power",
        .step = step_power,
        .irq_lines = BIT(SOC_IRQ_POWER),
        .irqs = take_power_irq,
    },
    {
        .name = "network",
        .budget = VERBS_BUDGET,
        .poll = poll_network,
        .step = step_network,
        .flush = flush_network,
        .arm = arm_network,
        .irqs = take_network_irqs,
    },
    {
        .name = "media",
        .budget = MEDIA_BUDGET,
        .poll = poll_media,
        .flush = flush_media,
        .arm = arm_media,
        .irq_lines = BIT(SOC_IRQ_MEDIA),
        .irqs = take_media_irq,
    },
    {.name = "services", .step = step_services},
    {.name = "addresses", .step = step_addresses},
    {.name = "target", .poll = poll_target, .step = step_target},
    {.name = "transport", .poll = poll_transports, .step = step_transports},
    {
        .name = "tcp", /* poll_transports() polls it */
        .step = tcp_services_step,
        .flush = tcp_services_flush,
        .arm = tcp_services_arm,
        .irq_lines = BIT(SOC_IRQ_TOE),
        .irqs = tcp_services_irqs,
    },
    {.name = "operations", .step = operations_step},
    {
        .name = "memory",
        .step = step_memory,
        .irq_lines = BIT(SOC_IRQ_ECC),
        .irqs = take_memory_irq,
    },
    {
        .name = "peripherals",
        .step = peripherals_step,
        .irq_lines = BIT(SOC_IRQ_I2C0) | BIT(SOC_IRQ_I2C1) | BIT(SOC_IRQ_I2C2),
        .irqs = peripherals_take_irq,
    },
    {.name = "firmware", .step = firmware_update_step},
    {.name = "usage", .step = step_usage},
    {
        .name = "mgmt",
        .step = step_mgmt,
        .arm = arm_mgmt,
        .irq_lines = BIT(SOC_IRQ_MGMT),
        .irqs = take_mgmt_irq,
    },
};

static const struct component log_component = {
    .name = "log",
    .budget = LOG_BUDGET,
    .poll = poll_log,
};

void components_add_log(struct loop *loop, struct log *log)
{
    loop_add(loop, &log_component, log);
}

void components_add_drive(struct loop *loop, struct drive *drive,
                          struct console *console)
{
    /* The console comes first: its commands may change what others do next. */
    loop_add(loop, &console_component, console);
    for (unsigned int i = 0; i < ARRAY_LEN(drive_components); i++) {
        const struct component *component = &drive_components[i];

        if (component->poll == poll_media && drive->nand.ftl != NULL) {
            component = &nand_component;
        }
        loop_add(loop, component, drive);
    }
    /* Last, to print what the others have logged. */
    components_add_log(loop, drive->log);
}
