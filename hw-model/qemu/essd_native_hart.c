/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A native hart: see essd_native_hart.h, and hw-model/core/native_hart.h for
 * what the firmware sees.
 *
 * The thread of hart 0 has two stacks.  On its own one it runs QEMU's loop for
 * virtual CPUs; TCG's hook for the beginning of an execution goes to the other
 * one, the firmware's.  The firmware comes back when it waits for an interrupt,
 * or when the loop has something to do: then it comes back from the next
 * operation.
 *
 * The firmware runs without the big lock.  An access to a register takes it.
 *
 * What the processor refuses to execute is a signal.  If the firmware has
 * caused it, the firmware reports it and resets the drive, as for a trap; if
 * QEMU has, QEMU ends.
 */
/* longjmp() changes stacks here, which glibc's check refuses. */
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 0
#include "qemu/osdep.h"
#include "essd_core.h"
#include "essd_native_hart.h"

#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "accel/tcg/cpu-ops.h"
#include "exec/address-spaces.h"
#include "hw/core/cpu.h"
#include "migration/blocker.h"
#include "monitor/monitor-internal.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "system/cpus.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "system/tcg.h"

#include "hw-model/core/native_hart.h"
#include "hw-model/regs/soc.h"

/* CPU time that the firmware may take without a look at the machine. */
#define LONG_STEP_NS NANOSECONDS_PER_SECOND

/* Of the signal handler, which cannot run on a stack that is too small. */
#define HANDLER_STACK_BYTES (64 * KiB)

/* Of a RISC-V hart. */
enum {
    MCAUSE_ILLEGAL_INSTRUCTION = 2,
    MCAUSE_LOAD_FAULT = 5,
};

static struct {
    CPUState *cpu;
    CPURISCVState *env;
    TCGCPUOps tcg_ops; /* QEMU's, with another way to execute */
    bool is_wanted;
    char *image_path;
    char *image; /* what is in this file */
    size_t image_bytes;
    MemoryRegion dram;
    MemoryRegion guard; /* before the stack: nothing is there */
    Error *no_saving;
    volatile bool is_firmware; /* its code runs, not the machine's */
    bool starts;               /* the firmware begins anew */
    bool traps;                /* it goes on with its report of `trap` */
    bool has_trapped;          /* since its start */
    struct {
        int signal;
        uint64_t mcause, pc, value;
    } trap;
    void *handler_stack;
    sigjmp_buf loop, firmware; /* where each of the two stacks goes on */
} native;

/* From the firmware to the loop, and back. */

static void native_leave(int reason)
{
    native.cpu->exception_index = reason;
    if (sigsetjmp(native.firmware, 0) == 0) {
        siglongjmp(native.loop, 1);
    }
}

/* Between operations: whether the loop has something to do. */
static void native_look(void)
{
    cpus_check_pause(native.cpu);
    if (qatomic_read(&native.cpu->exit_request)) {
        native_leave(EXCP_INTERRUPT);
    }
}

/* Operations. */

static bool native_access(uint64_t addr, void *value, unsigned int size,
                          bool is_write)
{
    MemTxResult result;

    native.is_firmware = false;
    result = address_space_rw(&address_space_memory, addr,
                              MEMTXATTRS_UNSPECIFIED, value, size, is_write);
    native_look();
    native.is_firmware = true;
    return result == MEMTX_OK;
}

static bool native_read(void *ctx, uint64_t addr, unsigned int size,
                        uint64_t *value)
{
    uint8_t bytes[8] = {0};
    bool is_done = native_access(addr, bytes, size, false);

    *value = ldn_le_p(bytes, size);
    return is_done;
}

static bool native_write(void *ctx, uint64_t addr, unsigned int size,
                         uint64_t value)
{
    uint8_t bytes[8];

    stn_le_p(bytes, size, value);
    return native_access(addr, bytes, size, true);
}

static uint64_t native_ticks(void *ctx)
{
    uint64_t ticks;

    native.is_firmware = false;
    native_look();
    ticks = native.env->rdtime_fn(native.env->rdtime_fn_arg);
    native.is_firmware = true;
    return ticks;
}

static void native_relax(void *ctx)
{
    native.is_firmware = false;
    native_look();
    native.is_firmware = true;
}

static void native_set_enabled(void *ctx, uint64_t mie)
{
    native.is_firmware = false;
    bql_lock();
    native.env->mie = mie;
    bql_unlock();
    native.is_firmware = true;
}

static void native_wait(void *ctx)
{
    native.is_firmware = false;
    native.cpu->halted = 1;
    native_leave(EXCP_HLT);
    native.is_firmware = true;
}

static const struct native_hart_ops native_ops = {
    .read = native_read,
    .write = native_write,
    .ticks = native_ticks,
    .relax = native_relax,
    .set_enabled = native_set_enabled,
    .wait = native_wait,
    .copy = memcpy,
    .move = memmove,
    .fill = memset,
    .compare = memcmp,
};

/* Start and execution. */

static struct native_hart_image *native_image(void)
{
    return (struct native_hart_image *)(uintptr_t)SOC_DRAM_BASE;
}

/* As the machine has checked it: firmware that fails may have overwritten the
 * one in its memory. */
static const struct native_hart_image *native_header(void)
{
    return (const struct native_hart_image *)native.image;
}

static void native_first(void)
{
    native.is_firmware = true;
    native_header()->start(&native_ops);
    g_assert_not_reached();
}

static void native_first_of_trap(void)
{
    native.is_firmware = true;
    native_header()->trap(native.trap.mcause, native.trap.pc,
                          native.trap.value);
    g_assert_not_reached();
}

/* What was on the firmware's stack is forgotten. */
G_NORETURN static void native_run(void (*first)(void))
{
    ucontext_t context;

    getcontext(&context);
    context.uc_stack.ss_sp = (void *)(uintptr_t)native_header()->stack_bottom;
    context.uc_stack.ss_size =
        native_header()->stack_top - native_header()->stack_bottom;
    context.uc_link = NULL;
    makecontext(&context, first, 0);
    setcontext(&context);
    g_assert_not_reached();
}

G_NORETURN static void native_start(void)
{
    native.starts = false;
    native.traps = false;
    native.has_trapped = false;
    memcpy(native_image(), native.image, native.image_bytes);
    native_run(native_first);
}

/* Let the firmware report a trap; what reports it has no second try. */
static void native_report_trap(void)
{
    native.traps = false;
    warn_report("essd: the firmware has failed at 0x%" PRIx64
                ": signal %d, address 0x%" PRIx64 "%s",
                native.trap.pc, native.trap.signal, native.trap.value,
                native.has_trapped ? ", while it reported a failure; the hart "
                                     "stops until a reset"
                                   : "");
    if (!native.has_trapped) {
        native.has_trapped = true;
        native_run(native_first_of_trap);
    }
    native.env->mie = 0;
    native.cpu->halted = 1;
    native.cpu->exception_index = EXCP_HLT;
}

static int64_t native_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * NANOSECONDS_PER_SECOND + now.tv_nsec;
}

/* The signal handler's stack is the thread's. */
static void native_set_handler_stack(void)
{
    stack_t stack = {.ss_size = HANDLER_STACK_BYTES};

    native.handler_stack = g_malloc(HANDLER_STACK_BYTES);
    stack.ss_sp = native.handler_stack;
    if (sigaltstack(&stack, NULL) != 0) {
        error_report("essd: hart=native: no stack for signals: %s",
                     strerror(errno));
        exit(EXIT_FAILURE);
    }
}

static void native_execute(CPUState *cpu)
{
    int64_t begin_ns = get_clock();
    int64_t begin_cpu_ns = native_cpu_ns();

    if (!native.handler_stack) {
        native_set_handler_stack();
    }
    if (sigsetjmp(native.loop, 0) == 0) {
        if (native.starts) {
            native_start();
        } else if (native.traps) {
            native_report_trap();
            return;
        }
        siglongjmp(native.firmware, 1);
    }
    /* A thread that does not get the processor computes nothing. */
    if (get_clock() - begin_ns > LONG_STEP_NS) {
        int64_t took_ns = native_cpu_ns() - begin_cpu_ns;

        if (took_ns > LONG_STEP_NS) {
            warn_report("essd: the firmware has computed for %" PRId64
                        " ms in one step, and nothing could stop it meanwhile",
                        took_ns / SCALE_MS);
        }
    }
}

/* Signals. */

static uint64_t native_pc(const ucontext_t *context)
{
#if defined(__x86_64__)
    return context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return context->uc_mcontext.pc;
#else
    return 0;
#endif
}

static void native_on_signal(int number, siginfo_t *info, void *context)
{
    bool is_sent = info->si_code <= 0; /* by a process, not the processor */

    if (is_sent || current_cpu != native.cpu || !native.is_firmware) {
        signal(number, SIG_DFL); /* if tried again, ends QEMU */
        if (is_sent) {
            raise(number);
        }
        return;
    }
    native.is_firmware = false;
    native.trap.signal = number;
    native.trap.mcause =
        number == SIGSEGV ? MCAUSE_LOAD_FAULT : MCAUSE_ILLEGAL_INSTRUCTION;
    native.trap.pc = native_pc(context);
    native.trap.value = number == SIGSEGV ? (uintptr_t)info->si_addr : 0;
    native.traps = true;
    native.cpu->exception_index = EXCP_INTERRUPT;
    siglongjmp(native.loop, 1);
}

/* The handler does not return, so that its signal must not stay blocked. */
static void native_handle_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGFPE, SIGILL};
    struct sigaction action = {
        .sa_sigaction = native_on_signal,
        .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
    };

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

static void native_reset(void *opaque)
{
    native.starts = true;
}

/* Creation. */

static void native_refuse(const char *why)
{
    error_report("essd: hart=native %s", why);
    exit(EXIT_FAILURE);
}

static void native_check(const MachineState *machine)
{
    if (!native.image_path) {
        native_refuse("needs hart-image=FILE");
    }
    if (runstate_check(RUN_STATE_INMIGRATE)) {
        native_refuse("cannot be loaded: omit -incoming");
    }
    if (machine->smp.cpus != 1) {
        native_refuse("has one hart: omit -smp");
    }
    if (!tcg_enabled() || !qemu_tcg_mttcg_enabled()) {
        native_refuse("needs a thread of the hart's own: omit -icount and "
                      "-accel");
    }
}

static bool native_image_is_good(uint64_t dram_bytes)
{
    const struct native_hart_image *image = native_header();
    size_t page = qemu_real_host_page_size();

    return native.image_bytes >= sizeof(*image) &&
           image->magic == NATIVE_HART_MAGIC &&
           image->version == NATIVE_HART_VERSION &&
           image->ops_bytes == sizeof(native_ops) &&
           image->guard_bottom >= SOC_DRAM_BASE + native.image_bytes &&
           QEMU_IS_ALIGNED(image->guard_bottom, page) &&
           QEMU_IS_ALIGNED(image->stack_bottom, page) &&
           image->stack_bottom > image->guard_bottom &&
           image->stack_top > image->stack_bottom &&
           image->stack_top - SOC_DRAM_BASE <= dram_bytes;
}

static void native_load(uint64_t dram_bytes)
{
    g_autoptr(GError) error = NULL;

    if (!g_file_get_contents(native.image_path, &native.image,
                             &native.image_bytes, &error)) {
        error_report("essd: hart-image: %s", error->message);
        exit(EXIT_FAILURE);
    }
    if (!native_image_is_good(dram_bytes)) {
        error_report(
            "essd: hart-image: %s is not firmware for a native hart of "
            "this version",
            native.image_path);
        exit(EXIT_FAILURE);
    }
}

/* Memory at the address that it has on the bus.  The image can be executed. */
static void *native_map(uint64_t bytes)
{
    void *base = native_image();
    void *memory =
        mmap(base, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             -1, 0);

    if (memory == MAP_FAILED) {
        error_report(
            "essd: hart=native: the addresses of the DRAM, from %p on, "
            "are not free in this process: %s",
            base, strerror(errno));
        exit(EXIT_FAILURE);
    }
    if (mprotect(base, ROUND_UP(native.image_bytes, qemu_real_host_page_size()),
                 PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        error_report("essd: hart=native: memory cannot be executed: %s",
                     strerror(errno));
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* The pages before the firmware's stack, for the firmware and for devices. */
static void native_guard_stack(MachineState *machine)
{
    const struct native_hart_image *image = native_header();
    uint64_t bytes = image->stack_bottom - image->guard_bottom;

    if (mprotect((void *)(uintptr_t)image->guard_bottom, bytes, PROT_NONE) !=
        0) {
        error_report("essd: hart=native: no guard before the stack: %s",
                     strerror(errno));
        exit(EXIT_FAILURE);
    }
    memory_region_init_io(&native.guard, OBJECT(machine), NULL, NULL,
                          "essd.native-guard", bytes);
    memory_region_add_subregion_overlap(
        &native.dram, image->guard_bottom - SOC_DRAM_BASE, &native.guard, 1);
    essd_core_guard =
        (struct essd_core_guard){image->guard_bottom, image->stack_bottom};
}

void essd_native_hart_create_dram(MachineState *machine)
{
    if (!native.is_wanted) {
        if (native.image_path) {
            error_report("essd: hart-image is for hart=native");
            exit(EXIT_FAILURE);
        }
        return;
    }
    native_check(machine);
    native_load(machine->ram_size);
    memory_region_init_ram_ptr(&native.dram, OBJECT(machine),
                               "essd.native-dram", machine->ram_size,
                               native_map(machine->ram_size));
    native_guard_stack(machine);
    machine->ram = &native.dram;
}

void essd_native_hart_create(RISCVCPU *hart)
{
    static const char *const commands[] = {"snapshot-save", "snapshot-load"};
    CPUClass *class = CPU_GET_CLASS(hart);

    if (!native.is_wanted) {
        return;
    }
    error_setg(&native.no_saving,
               "a drive with hart=native cannot be saved: its firmware's state "
               "is a part of this process");
    migrate_add_blocker(&native.no_saving, &error_fatal);
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        qmp_disable_command(&qmp_commands, commands[i],
                            "a drive with hart=native can neither be saved nor "
                            "loaded");
    }
    native.cpu = CPU(hart);
    native.env = &hart->env;
    native.tcg_ops = *class->tcg_ops;
    native.tcg_ops.cpu_exec_enter = native_execute;
    class->tcg_ops = &native.tcg_ops;
    native.starts = true;
    native_handle_signals();
    qemu_register_reset(native_reset, NULL);
}

/* Properties. */

static char *native_get_hart(Object *obj, Error **errp)
{
    return g_strdup(native.is_wanted ? "native" : "riscv");
}

static void native_set_hart(Object *obj, const char *value, Error **errp)
{
    if (strcmp(value, "riscv") != 0 && strcmp(value, "native") != 0) {
        error_setg(errp, "hart: it is riscv or native, not %s", value);
        return;
    }
    native.is_wanted = strcmp(value, "native") == 0;
}

static char *native_get_image(Object *obj, Error **errp)
{
    return g_strdup(native.image_path);
}

static void native_set_image(Object *obj, const char *value, Error **errp)
{
    g_free(native.image_path);
    native.image_path = g_strdup(value);
}

void essd_native_hart_add_properties(ObjectClass *machine)
{
    object_class_property_add_str(machine, "hart", native_get_hart,
                                  native_set_hart);
    object_class_property_set_description(
        machine, "hart", "what executes the firmware: riscv or native");
    object_class_property_add_str(machine, "hart-image", native_get_image,
                                  native_set_image);
    object_class_property_set_description(
        machine, "hart-image", "file with the firmware for hart=native");
}
