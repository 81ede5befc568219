/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An image for a native hart that does what firmware must not do.  The straps
 * choose what, once after the power came; tests/py/test_native_trial.py reads
 * the results on the console.
 */
#include "firmware/arch/arch.h"
#include "firmware/drivers/cmd_queue.h"
#include "firmware/drivers/gpio.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/uart.h"
#include "firmware/hal/log.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "hw-model/core/native_hart.h"
#include "hw-model/regs/soc.h"
#include "lib/util.h"

#include <string.h>

enum trial { /* chosen by the straps */
             TRY_IDLE = 0,
             TRY_WRITE = 1,
             TRY_DIVIDE = 2,
             TRY_STACK = 3,
             TRY_LONG_STEP = 4,
             TRY_COPY = 5,
             TRY_SHORT_STEPS = 6,
             TRY_JUMP = 7,
             TRY_OVERWRITE = 8,
             TRY_QUEUES = 9,
};

#define LONG_STEP   UINT64_C(8000000000)
#define SHORT_STEP  UINT64_C(300000000)
#define GUARD_BYTES 65536

struct trial_state {
    struct uart uart;
    struct log log;
    struct sysctl sysctl;
    struct gpio straps;
    struct hal_wait wait;
};

static struct trial_state state;

/* The compiler must not see that a trial is wrong. */
static uintptr_t hidden_value(uintptr_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

/* About one step a cycle, without a look at the machine. */
static void compute_steps(uint64_t steps)
{
    for (uint64_t n = 0; n < steps; n++) {
        __asm__ volatile("" : : "r"(n));
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): it is to need too much stack. */
__attribute__((noinline)) static uintptr_t recurse_deeply(uintptr_t depth)
{
    volatile uint8_t frame[512];

    frame[depth % sizeof(frame)] = 1;
    return depth == 0 ? 0
                      : recurse_deeply(hidden_value(depth) - 1) +
                            frame[depth % 7 & 0xff];
}

/* The machine must not need what the firmware has overwritten. */
static void try_overwrite(void)
{
    memset((void *)hidden_value(SOC_DRAM_BASE), 0,
           sizeof(struct native_hart_image));
    *(volatile uint32_t *)hidden_value(0x40) = 1;
}

static void try_short_steps(void)
{
    for (unsigned int n = 0;; n++) {
        compute_steps(SHORT_STEP);
        log_line(&state.log, "trial: step %u", n);
        log_flush(&state.log);
        hal_wait_until(&state.wait, hal_now_us() + 1000);
    }
}

/* Whether the media engine takes a queue with its page there. */
static bool queue_is_taken(uintptr_t page)
{
    uintptr_t rings = ((uintptr_t)arch_free_memory() + 1023) & ~UINT64_C(1023);
    struct cmd_queue queue = {
        .regs = SOC_MEDIA_BASE,
        .page = (uint8_t *)page,
        .commands = (uint8_t *)rings,
        .completions = (uint8_t *)rings + 1024,
        .mask = 1,
    };
    bool is_taken = cmd_queue_start(&queue);

    mmio_write32(queue.regs + A_QUEUE_ENABLE, 0);
    return is_taken;
}

/* With a part of the page, or all of it, in the pages before the stack; and
 * behind them. */
static void try_queues(void)
{
    uintptr_t top = arch_stack_bottom();
    uintptr_t bottom = top - GUARD_BYTES;

    log_line(&state.log, "trial: queues %d%d%d%d", queue_is_taken(bottom - 64),
             queue_is_taken(bottom), queue_is_taken(top - 64),
             queue_is_taken(top));
}

static void try_once(enum trial trial)
{
    uint8_t buf[16] = {0};

    switch (trial) {
    case TRY_WRITE:
        *(volatile uint32_t *)hidden_value(0x10) = 1;
        break;
    case TRY_DIVIDE:
        (void)hidden_value(hidden_value(100) / hidden_value(0));
        break;
    case TRY_STACK:
        (void)hidden_value(recurse_deeply(1u << 20));
        break;
    case TRY_LONG_STEP:
        compute_steps(LONG_STEP);
        break;
    case TRY_COPY: /* in the process's memcpy() */
        memcpy((void *)hidden_value(0x20), buf, hidden_value(sizeof(buf)));
        break;
    case TRY_SHORT_STEPS:
        try_short_steps();
        break;
    case TRY_JUMP:
        ((void (*)(void))hidden_value(0x30))();
        break;
    case TRY_OVERWRITE:
        try_overwrite();
        break;
    case TRY_QUEUES:
        try_queues();
        break;
    default:
        break;
    }
}

void arch_main(uint64_t hart)
{
    enum sysctl_reset_cause cause;
    struct sysctl_panic panic;
    enum trial trial;

    (void)hart;
    uart_init(&state.uart, SOC_UART_BASE);
    log_init(&state.log, uart_log_sink(&state.uart));
    ASSERT(sysctl_init(&state.sysctl, SOC_SYSCTL_BASE));
    gpio_init(&state.straps, SOC_STRAPS_BASE);
    hal_wait_init(&state.wait);
    cause = sysctl_reset_cause(&state.sysctl);
    trial = (enum trial)gpio_read_all(&state.straps);
    log_line(&state.log, "trial: %d after %s, stack %lx", trial,
             sysctl_reset_cause_name(cause), arch_stack_bottom());
    if (sysctl_take_panic(&state.sysctl, &panic)) {
        log_line(&state.log, "trial: panic %u: cause %lu value %lx",
                 panic.count, panic.mcause, panic.mtval);
    }
    log_flush(&state.log);
    if (cause == SYSCTL_RESET_POWER_ON) {
        try_once(trial);
    }
    log_line(&state.log, "trial: idle");
    log_flush(&state.log);
    for (;;) {
        hal_wait_until(&state.wait, UINT64_MAX);
    }
}
