/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens when the program fails: print the reason on the console, keep a
 * record in sysctl's scratch words and a crash dump in DRAM, and reset.  Of the
 * program's state this uses only the plan of hal/crash.h.
 */
#include "firmware/arch/arch.h"
#include "firmware/arch/csr.h"
#include "firmware/arch/panic_report.h"
#include "firmware/drivers/ecc.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/watchdog.h"
#include "firmware/hal/crash.h"
#include "firmware/hal/log.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/time.h"
#include "hw-model/regs/nand.h"
#include "hw-model/regs/soc.h"
#include "lib/regfields.h"

#include <string.h>

#define MCAUSE_FETCH_FAULT 1
#define MCAUSE_BREAKPOINT  3
#define MCAUSE_LOAD_FAULT  5
#define MCAUSE_STORE_FAULT 7

void trap_panic(const uint64_t *x);
void nmi_panic(const uint64_t *x);

/* The instruction at which assert_failed() stops; x10 has its findings. */
extern const uint8_t assert_trap[];

/* The stack and the stack of this handler, from the linker scripts. */
extern const uint8_t __stacks_start[], __stacks_end[];

/* What assert_failed() passes on to trap_panic(). */
struct failed_assertion {
    const char *expression;
    const char *file;
    uint32_t line;
    uint64_t caller;
};

/* Set the lost words of memory to zero, so that it can be read. */
static void clear_lost_words(const void *memory, size_t len)
{
    struct ecc ecc;

    if (ecc_init(&ecc, SOC_ECC_BASE)) {
        ecc_clear_memory(&ecc, memory, len);
    }
}

/* Keep a crash dump.  The boot ROM, which is not in DRAM, keeps none. */
static void keep_dump(struct crash_state *state, const uint64_t *x)
{
    static const char text[] = "crash: the dump is in DRAM; read it with essd "
                               "dump after the restart\r\n";
    struct sysctl sysctl = {.base = SOC_SYSCTL_BASE};
    void *region = crash_region(SOC_DRAM_BASE, sysctl_dram_bytes(&sysctl));

    state->mstatus = csr_read(mstatus);
    state->time_ns = hal_now_ns();
    memcpy(state->registers, x, sizeof(state->registers));
    state->clear_lost_words = clear_lost_words;
    if ((uintptr_t)text >= SOC_DRAM_BASE && crash_save(region, state)) {
        panic_print(text, sizeof(text) - 1);
    }
}

static void print_registers(const uint64_t *x)
{
    char text[128];

    for (unsigned int i = 1; i < CRASH_REGISTERS; i++) {
        size_t len = log_format(text, sizeof(text), "x%02u %016lx%s", i, x[i],
                                i % 4 == 3 ? "\r\n" : "  ");

        panic_print(text, len);
    }
}

/* Trap on purpose, so that all registers are saved as they are here. */
__attribute__((noinline)) void assert_failed(const char *expression,
                                             const char *file, int line)
{
    const struct failed_assertion failed = {
        .expression = expression,
        .file = file,
        .line = (uint32_t)line,
        .caller = (uintptr_t)__builtin_return_address(0),
    };
    register const struct failed_assertion *a0 __asm__("a0") = &failed;

    __asm__ volatile(".globl assert_trap\n"
                     "assert_trap:\n"
                     "    ebreak\n"
                     :
                     : "r"(a0)
                     : "memory");
    arch_stop();
}

__attribute__((noreturn)) static void assert_panic(const uint64_t *x)
{
    const struct failed_assertion *failed =
        (const struct failed_assertion *)x[10];
    struct sysctl_panic panic = {.line = failed->line, .mepc = failed->caller};
    struct crash_state state = {
        .cause = CRASH_ASSERTION,
        .line = failed->line,
        .file = failed->file,
        .expression = failed->expression,
    };
    size_t len = strlen(failed->file);
    size_t keep = MIN(len, sizeof(panic.file) - 1);
    char text[256];

    memcpy(panic.file, failed->file + len - keep, keep);
    len = log_format(
        text, sizeof(text),
        "\r\npanic: %s:%u: assertion failed: %s, called from 0x%lx\r\n",
        failed->file, failed->line, failed->expression, failed->caller);
    panic_print(text, len);
    keep_dump(&state, x);
    panic_reset(&panic);
}

/* If the lost word is in the write buffer, the NAND controller must not program
 * the zeroes that replace it.  The next start marks the block as unreadable. */
static void stop_nand(void)
{
    mmio_write32(SOC_NAND_BASE + A_NAND_CTRL, FIELD_MAKE(NAND_CTRL, RESET, 1));
}

/*
 * Whether an access fault comes from a word that could not be corrected.  The
 * word is zeroed, so that the next start does not stop at it, too.  The next
 * start finds its address in the registers of the ECC block, which outlive
 * resets.
 */
static bool has_lost_word(const struct sysctl_panic *panic)
{
    struct ecc ecc;

    if ((panic->mcause != MCAUSE_FETCH_FAULT &&
         panic->mcause != MCAUSE_LOAD_FAULT &&
         panic->mcause != MCAUSE_STORE_FAULT) ||
        !ecc_init(&ecc, SOC_ECC_BASE)) {
        return false;
    }
    stop_nand();
    return ecc_clear_trap_word(&ecc, panic->mtval);
}

__attribute__((noinline)) static void report_trap(const uint64_t *x)
{
    struct sysctl_panic panic = {
        .is_trap = true,
        .mcause = csr_read(mcause),
        .mepc = x[0],
        .mtval = csr_read(mtval),
    };
    struct crash_state state = {
        .cause = CRASH_TRAP,
        .mcause = panic.mcause,
        .mtval = panic.mtval,
    };
    char text[128];
    size_t len;

    if (panic.mcause == MCAUSE_BREAKPOINT &&
        panic.mepc == (uintptr_t)assert_trap) {
        assert_panic(x);
    }
    if (has_lost_word(&panic)) {
        state.cause = CRASH_MEMORY;
    }
    len = log_format(
        text, sizeof(text), "\r\npanic: trap %lu at 0x%lx, value 0x%lx%s\r\n",
        panic.mcause, panic.mepc, panic.mtval,
        state.cause == CRASH_MEMORY ? ": a word of memory is lost" : "");
    panic_print(text, len);
    print_registers(x);
    keep_dump(&state, x);
    panic_reset(&panic);
}

/*
 * Set the lost words of the stacks to zero.  A store to a part of such a word
 * would trap again.  Devices do not read the stacks, so none takes these zeroes
 * for good data.
 */
static inline void clear_stacks(void)
{
    clear_lost_words(__stacks_start, (size_t)(__stacks_end - __stacks_start));
}

/*
 * Called by trap_entry.  Up to the end of clear_stacks(), only whole words are
 * written to the stack.
 * @param x  pc and the integer registers x1 to x31
 */
void trap_panic(const uint64_t *x)
{
    clear_stacks();
    report_trap(x);
}

__attribute__((noinline)) static void report_watchdog(const uint64_t *x)
{
    const struct watchdog watchdog = {.base = SOC_WATCHDOG_BASE};
    struct crash_state state = {.cause = CRASH_WATCHDOG};
    char text[128];
    size_t len = log_format(text, sizeof(text),
                            "\r\nwatchdog: the firmware does not serve it; "
                            "it hangs at 0x%lx\r\n",
                            x[0]);

    panic_print(text, len);
    print_registers(x);
    keep_dump(&state, x);
    watchdog_expire(&watchdog);
    arch_stop();
}

/*
 * The watchdog has expired for the first time.  Called by nmi_save.
 * @param x  pc and the integer registers x1 to x31
 */
void nmi_panic(const uint64_t *x)
{
    clear_stacks();
    report_watchdog(x);
}
