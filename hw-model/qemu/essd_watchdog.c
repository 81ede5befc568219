/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-watchdog: the drive's watchdog; the core is hw-model/watchdog.
 * Reference: docs/hardware/soc.md, section 4
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/watchdog.h
 *  + sysbus IRQ 0: level, high from the first expiry to WDOG_INTCLR
 *  + link "hart": the hart that serves the watchdog
 *  + link "mtimer": the timer of that hart, number 0 of its block
 *
 * The second expiry does what QEMU's watchdog action says: by default it resets
 * the machine.
 */
#include "qemu/osdep.h"
#include "essd_watchdog.h"

#include "hw/intc/riscv_aclint.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "system/qtest.h"
#include "system/watchdog.h"
#include "target/riscv/cpu.h"
#include "trace.h"

#include "essd_core.h"
#include "hw-model/regs/soc.h"
#include "hw-model/watchdog/hw_watchdog.h"

/* A hart that had less than a twentieth of the time as its own is starved. */
enum { STARVED_PART = 20 };

struct EssdWatchdogState {
    SysBusDevice parent_obj;

    EssdCore core;
    RISCVCPU *hart;
    RISCVAclintMTimerState *mtimer;
    struct hw_watchdog watchdog;

    /* When could_run() was called last, and the time of the hart's thread. */
    int64_t asked_ns;
    int64_t thread_ns;
};

/* The environment of the core. */

/* How long the computer has run the hart's thread; -1 if it does not say. */
static int64_t essd_watchdog_thread_ns(const EssdWatchdogState *s)
{
    const CPUState *cpu = CPU(s->hart);
    struct timespec time;
    clockid_t clock;

    if (qtest_enabled() || !cpu->created ||
        pthread_getcpuclockid(cpu->thread->thread, &clock) != 0 ||
        clock_gettime(clock, &time) != 0) {
        return -1;
    }
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Whether the interrupt of the hart's timer is enabled, and due. */
static bool essd_watchdog_timer_is_due(const EssdWatchdogState *s)
{
    const CPURISCVState *env = &s->hart->env;

    return (env->mie & MIP_MTIP) != 0 && env->rdtime_fn != NULL &&
           env->rdtime_fn(env->rdtime_fn_arg) >= s->mtimer->timecmp[0];
}

static bool essd_watchdog_could_run(void *ctx)
{
    EssdWatchdogState *s = ctx;
    CPUState *cpu = CPU(s->hart);
    int64_t now_ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    int64_t thread_ns = essd_watchdog_thread_ns(s);
    int64_t past_ns = now_ns - s->asked_ns;
    int64_t ran_ns = thread_ns - s->thread_ns;
    bool sleeps;

    s->asked_ns = now_ns;
    s->thread_ns = thread_ns;
    sleeps =
        cpu->halted && !cpu_has_work(cpu) && !essd_watchdog_timer_is_due(s);
    if (thread_ns < 0 || sleeps || ran_ns >= past_ns / STARVED_PART) {
        return true;
    }
    trace_essd_watchdog_starved(past_ns, ran_ns);
    return false;
}

static void essd_watchdog_bite(void *ctx)
{
    trace_essd_watchdog_bite();
    watchdog_perform_action();
}

static void essd_watchdog_timer(void *opaque)
{
    EssdWatchdogState *s = opaque;

    hw_watchdog_timer(&s->watchdog);
}

/* Registers. */

static bool essd_watchdog_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdWatchdogState *s = opaque;

    return hw_watchdog_read(&s->watchdog, offset, value);
}

static bool essd_watchdog_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdWatchdogState *s = opaque;

    return hw_watchdog_write(&s->watchdog, offset, value);
}

static const EssdCoreOps essd_watchdog_core_ops = {
    .type = TYPE_ESSD_WATCHDOG,
    .size = SOC_WATCHDOG_SIZE,
    .has_irq = true,
    .read = essd_watchdog_read,
    .write = essd_watchdog_write,
    .timer = essd_watchdog_timer,
};

/* Creation, reset and migration. */

static void essd_watchdog_reset_hold(Object *obj, ResetType type)
{
    hw_watchdog_reset(&ESSD_WATCHDOG(obj)->watchdog);
}

static void essd_watchdog_realize(DeviceState *dev, Error **errp)
{
    EssdWatchdogState *s = ESSD_WATCHDOG(dev);

    if (s->hart == NULL || s->mtimer == NULL) {
        error_setg(errp, "essd-watchdog: \"hart\" or \"mtimer\" is not set");
        return;
    }
    if (!essd_core_realize(&s->core, errp)) {
        return;
    }
    hw_watchdog_init(&s->watchdog,
                     &(struct hw_watchdog_config){
                         .env = essd_core_env(&s->core),
                         .tick_ns = NANOSECONDS_PER_SECOND / SOC_WATCHDOG_HZ,
                         .ctx = s,
                         .could_run = essd_watchdog_could_run,
                         .bite = essd_watchdog_bite,
                     });
}

static void essd_watchdog_unrealize(DeviceState *dev)
{
    essd_core_unrealize(&ESSD_WATCHDOG(dev)->core);
}

static void essd_watchdog_init(Object *obj)
{
    EssdWatchdogState *s = ESSD_WATCHDOG(obj);

    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_watchdog_core_ops, s);
}

static int essd_watchdog_post_load(void *opaque, int version_id)
{
    EssdWatchdogState *s = opaque;

    hw_watchdog_loaded(&s->watchdog);
    return 0;
}

static const VMStateDescription essd_watchdog_vmstate = {
    .name = TYPE_ESSD_WATCHDOG,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = essd_watchdog_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT64(watchdog.state.countdown.left_ns, EssdWatchdogState),
        VMSTATE_UINT64(watchdog.state.countdown.since_ns, EssdWatchdogState),
        VMSTATE_UINT8(watchdog.state.countdown.is_running, EssdWatchdogState),
        VMSTATE_UINT32(watchdog.state.load, EssdWatchdogState),
        VMSTATE_UINT32(watchdog.state.control, EssdWatchdogState),
        VMSTATE_UINT8(watchdog.state.has_expired, EssdWatchdogState),
        VMSTATE_UINT8(watchdog.state.is_locked, EssdWatchdogState),
        VMSTATE_END_OF_LIST()}};

static const Property essd_watchdog_properties[] = {
    DEFINE_PROP_LINK("hart", EssdWatchdogState, hart, TYPE_RISCV_CPU,
                     RISCVCPU *),
    DEFINE_PROP_LINK("mtimer", EssdWatchdogState, mtimer,
                     TYPE_RISCV_ACLINT_MTIMER, RISCVAclintMTimerState *),
};

static void essd_watchdog_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "Watchdog of the drive";
    dc->realize = essd_watchdog_realize;
    dc->unrealize = essd_watchdog_unrealize;
    dc->vmsd = &essd_watchdog_vmstate;
    dc->user_creatable = false; /* it is part of the machine */
    device_class_set_props(dc, essd_watchdog_properties);
    rc->phases.hold = essd_watchdog_reset_hold;
    set_bit(DEVICE_CATEGORY_WATCHDOG, dc->categories);
}

static const TypeInfo essd_watchdog_types[] = {
    {
        .name = TYPE_ESSD_WATCHDOG,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdWatchdogState),
        .instance_init = essd_watchdog_init,
        .class_init = essd_watchdog_class_init,
    },
};

DEFINE_TYPES(essd_watchdog_types)
