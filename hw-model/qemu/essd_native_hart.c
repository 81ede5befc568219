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
 */
/* longjmp() changes stacks here, which glibc's check refuses. */
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 0
#include "qemu/osdep.h"
#include "essd_native_hart.h"

#include <sys/mman.h>
#include <ucontext.h>

#include "accel/tcg/cpu-ops.h"
#include "exec/address-spaces.h"
#include "hw/core/cpu.h"
#include "migration/blocker.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "system/cpus.h"
#include "system/reset.h"
#include "system/tcg.h"

#include "hw-model/core/native_hart.h"
#include "hw-model/regs/soc.h"

/* What the firmware may compute without a look at the machine. */
#define LONG_STEP_NS NANOSECONDS_PER_SECOND

static struct {
    CPUState *cpu;
    CPURISCVState *env;
    TCGCPUOps tcg_ops; /* QEMU's, with another way to execute */
    bool is_wanted;
    char *image_path;
    char *image; /* what is in this file */
    size_t image_bytes;
    MemoryRegion dram;
    Error *no_saving;
    bool starts;               /* the firmware begins anew */
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
    MemTxResult result =
        address_space_rw(&address_space_memory, addr, MEMTXATTRS_UNSPECIFIED,
                         value, size, is_write);

    native_look();
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
    native_look();
    return native.env->rdtime_fn(native.env->rdtime_fn_arg);
}

static void native_relax(void *ctx)
{
    native_look();
}

static void native_set_enabled(void *ctx, uint64_t mie)
{
    bql_lock();
    native.env->mie = mie;
    bql_unlock();
}

static void native_wait(void *ctx)
{
    native.cpu->halted = 1;
    native_leave(EXCP_HLT);
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

static void native_first(void)
{
    native_image()->start(&native_ops);
    g_assert_not_reached();
}

/* The stack that the firmware had before a reset is forgotten. */
static void native_start(void)
{
    ucontext_t context;

    native.starts = false;
    memcpy(native_image(), native.image, native.image_bytes);
    getcontext(&context);
    context.uc_stack.ss_sp = (void *)(uintptr_t)native_image()->stack_bottom;
    context.uc_stack.ss_size =
        native_image()->stack_top - native_image()->stack_bottom;
    context.uc_link = NULL;
    makecontext(&context, native_first, 0);
    setcontext(&context);
    g_assert_not_reached();
}

static void native_execute(CPUState *cpu)
{
    int64_t begin_ns = get_clock();
    int64_t took_ns;

    if (sigsetjmp(native.loop, 0) == 0) {
        if (native.starts) {
            native_start();
        }
        siglongjmp(native.firmware, 1);
    }
    took_ns = get_clock() - begin_ns;
    if (took_ns > LONG_STEP_NS) {
        warn_report("essd: the firmware has computed for %" PRId64
                    " ms in one step, and nothing could stop it meanwhile",
                    took_ns / SCALE_MS);
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
    const struct native_hart_image *image =
        (const struct native_hart_image *)native.image;

    return native.image_bytes >= sizeof(*image) &&
           image->magic == NATIVE_HART_MAGIC &&
           image->version == NATIVE_HART_VERSION &&
           image->ops_bytes == sizeof(native_ops) &&
           image->stack_bottom >= SOC_DRAM_BASE + native.image_bytes &&
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
    machine->ram = &native.dram;
}

void essd_native_hart_create(RISCVCPU *hart)
{
    CPUClass *class = CPU_GET_CLASS(hart);

    if (!native.is_wanted) {
        return;
    }
    error_setg(&native.no_saving,
               "a drive with hart=native cannot be saved: its firmware's state "
               "is a part of this process");
    migrate_add_blocker(&native.no_saving, &error_fatal);
    native.cpu = CPU(hart);
    native.env = &hart->env;
    native.tcg_ops = *class->tcg_ops;
    native.tcg_ops.cpu_exec_enter = native_execute;
    class->tcg_ops = &native.tcg_ops;
    native.starts = true;
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
