/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-sysctl: chip identity, reset cause and software reset, the boot ROM's
 * findings, scratch words that survive a reset, random numbers.
 * Reference: docs/hardware/sysctl.md
 *
 * Not modelled: clocks, power domains, resets of single blocks, fuses other
 * than the key of images.
 */
#include "qemu/osdep.h"
#include "essd_sysctl.h"

#include "hw/irq.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "migration/vmstate.h"
#include "qemu/guest-random.h"
#include "qapi/error.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "system/runstate.h"
#include "trace.h"

#include "essd_data.h"

#define CHIP_VERSION_MAJOR 1
#define CHIP_VERSION_MINOR 0

static const char *const cause_name[] = {
    [SYSCTL_RESET_POWER_ON] = "power-on", [SYSCTL_RESET_PIN] = "pin",
    [SYSCTL_RESET_WATCHDOG] = "watchdog", [SYSCTL_RESET_SOFTWARE] = "software",
    [SYSCTL_RESET_PANIC] = "panic",
};

static bool is_scratch(hwaddr offset)
{
    return offset >= A_SYSCTL_SCRATCH0 && offset <= A_SYSCTL_SCRATCH15;
}

static bool is_key(hwaddr offset)
{
    return offset >= A_SYSCTL_KEY0 && offset <= A_SYSCTL_KEY7;
}

/* A word of the fused key, whose first byte is the lowest. */
static uint32_t key_word(const EssdSysctlState *s, unsigned int word)
{
    uint32_t value = 0;

    for (unsigned int i = 0; s->boot_key != NULL && i < 4; i++) {
        const char *digit = s->boot_key + 2 * (4 * word + i);
        uint32_t byte = g_ascii_xdigit_value(digit[0]) << 4 |
                        g_ascii_xdigit_value(digit[1]);

        value |= byte << 8 * i;
    }
    return value;
}

static uint32_t random_word(void)
{
    uint32_t word;

    qemu_guest_getrandom_nofail(&word, sizeof(word));
    return word;
}

/* A word of the key or of the scratch words; 0 at an unknown offset. */
static uint32_t array_word(const EssdSysctlState *s, hwaddr offset)
{
    if (is_key(offset)) {
        return key_word(s, (offset - A_SYSCTL_KEY0) / 4);
    }
    if (is_scratch(offset)) {
        return s->scratch[(offset - A_SYSCTL_SCRATCH0) / 4];
    }
    qemu_log_mask(LOG_GUEST_ERROR,
                  "essd-sysctl: read of offset 0x%" HWADDR_PRIx "\n", offset);
    return 0;
}

static uint64_t essd_sysctl_read(void *opaque, hwaddr offset, unsigned size)
{
    EssdSysctlState *s = ESSD_SYSCTL(opaque);
    uint32_t value = 0;

    switch (offset) {
    case A_SYSCTL_CHIP_ID:
        value = SYSCTL_CHIP_ID_VALUE;
        break;
    case A_SYSCTL_VERSION:
        value = FIELD_DP32(value, SYSCTL_VERSION, MAJOR, CHIP_VERSION_MAJOR);
        value = FIELD_DP32(value, SYSCTL_VERSION, MINOR, CHIP_VERSION_MINOR);
        break;
    case A_SYSCTL_RESET_CAUSE:
        value = s->cause;
        break;
    case A_SYSCTL_BOOT_STATUS:
        value = s->boot_status;
        break;
    case A_SYSCTL_RANDOM:
        value = random_word();
        break;
    case A_SYSCTL_DRAM_MIB:
        value = s->dram_mib;
        break;
    case A_SYSCTL_HARTS:
        value = s->harts;
        break;
    case A_SYSCTL_HART_ENTRY_LO:
        value = s->hart_entry[0];
        break;
    case A_SYSCTL_HART_ENTRY_HI:
        value = s->hart_entry[1];
        break;
    case A_SYSCTL_POWER:
        value = FIELD_DP32(value, SYSCTL_POWER, BACKED, s->plp);
        value = FIELD_DP32(value, SYSCTL_POWER, FAILING, s->is_failing);
        break;
    case A_SYSCTL_POWER_BUDGET:
        value = s->plp ? s->plp_budget_us : 0;
        break;
    case A_SYSCTL_KEY_LOG:
        value = FIELD_DP32(value, SYSCTL_KEY_LOG, OPEN,
                           qemu_chr_fe_backend_connected(&s->key_log));
        break;
    case A_SYSCTL_KEY_STATUS:
        value =
            FIELD_DP32(value, SYSCTL_KEY_STATUS, FUSED, s->boot_key != NULL);
        break;
    default:
        value = array_word(s, offset);
        break;
    }
    trace_essd_sysctl_read(offset, value);
    return value;
}

static void reset_machine(EssdSysctlState *s, uint32_t value)
{
    uint32_t cause = FIELD_EX32(value, SYSCTL_RESET, CAUSE);

    if (FIELD_EX32(value, SYSCTL_RESET, KEY) != SYSCTL_RESET_KEY ||
        (cause != SYSCTL_RESET_SOFTWARE && cause != SYSCTL_RESET_PANIC)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-sysctl: RESET written with 0x%08x\n", value);
        return;
    }
    s->next_cause = cause;
    qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
}

void essd_sysctl_end_power(void)
{
    essd_data_send_now();
    trace_essd_sysctl_power_end();
    kill(getpid(), SIGKILL);
    abort();
}

static void drop_key_line(EssdSysctlState *s)
{
    memset(s->key_line, 0, sizeof(s->key_line));
    s->key_line_len = 0;
}

/*
 * Lines are written whole: several drives may append to one file.  What is too
 * long is dropped up to its end.
 */
static void put_key_log(EssdSysctlState *s, char byte)
{
    if (s->key_line_len < sizeof(s->key_line)) {
        s->key_line[s->key_line_len++] = byte;
    }
    if (byte != '\n') {
        return;
    }
    if (s->key_line[s->key_line_len - 1] == '\n') {
        qemu_chr_fe_write_all(&s->key_log, (const uint8_t *)s->key_line,
                              s->key_line_len);
    }
    drop_key_line(s);
}

static void essd_sysctl_write(void *opaque, hwaddr offset, uint64_t value,
                              unsigned size)
{
    EssdSysctlState *s = ESSD_SYSCTL(opaque);

    if (offset == A_SYSCTL_KEY_LOG_OUT) { /* no trace has secrets */
        put_key_log(s, (char)value);
        return;
    }
    trace_essd_sysctl_write(offset, value);
    switch (offset) {
    case A_SYSCTL_BOOT_STATUS:
        s->boot_status = value;
        break;
    case A_SYSCTL_RESET:
        reset_machine(s, value);
        break;
    case A_SYSCTL_POWER_DONE:
        if (s->is_failing && (value & 1)) {
            essd_sysctl_end_power();
        }
        break;
    case A_SYSCTL_HART_ENTRY_LO:
        s->hart_entry[0] = value;
        break;
    case A_SYSCTL_HART_ENTRY_HI:
        s->hart_entry[1] = value;
        break;
    default:
        if (is_scratch(offset)) {
            s->scratch[(offset - A_SYSCTL_SCRATCH0) / 4] = value;
            break;
        }
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-sysctl: write of 0x%" PRIx64
                      " to offset 0x%" HWADDR_PRIx "\n",
                      value, offset);
        break;
    }
}

static const MemoryRegionOps essd_sysctl_ops = {
    .read = essd_sysctl_read,
    .write = essd_sysctl_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
};

void essd_sysctl_fail_power(EssdSysctlState *s)
{
    s->is_failing = true;
    trace_essd_sysctl_power_fail(s->plp_budget_us);
    qemu_set_irq(s->power_irq, 1);
    countdown_start(&s->power, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL),
                    (uint64_t)s->plp_budget_us * 1000);
    timer_mod(s->power_timer, countdown_deadline_ns(&s->power));
}

/*
 * Capacitors supply the firmware, so a pause of the emulator does not empty
 * them.
 */
static void look_at_power(void *opaque)
{
    EssdSysctlState *s = opaque;

    if (countdown_look(&s->power, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL),
                       true)) {
        essd_sysctl_end_power();
    } else {
        timer_mod(s->power_timer, countdown_deadline_ns(&s->power));
    }
}

static bool get_power_fail(Object *obj, Error **errp)
{
    return ESSD_SYSCTL(obj)->is_failing;
}

static void set_power_fail(Object *obj, bool value, Error **errp)
{
    EssdSysctlState *s = ESSD_SYSCTL(obj);

    if (!value || s->is_failing) {
        if (value != s->is_failing) {
            error_setg(errp, "power that has failed does not come back");
        }
        return;
    }
    if (!s->plp) {
        error_setg(errp, "the board has no capacitors (plp=on)");
        return;
    }
    essd_sysctl_fail_power(s);
}

static void watchdog_input(void *opaque, int n, int level)
{
    EssdSysctlState *s = ESSD_SYSCTL(opaque);

    s->watchdog_pending = level;
}

static uint32_t cause_of_this_reset(const EssdSysctlState *s)
{
    if (!s->powered) {
        return SYSCTL_RESET_POWER_ON;
    }
    if (s->next_cause != SYSCTL_RESET_POWER_ON) {
        return s->next_cause;
    }
    /*
     * The watchdog resets the machine only if nobody has reacted to its
     * interrupt.
     */
    return s->watchdog_pending ? SYSCTL_RESET_WATCHDOG : SYSCTL_RESET_PIN;
}

static void essd_sysctl_reset_enter(Object *obj, ResetType type)
{
    EssdSysctlState *s = ESSD_SYSCTL(obj);

    if (type == RESET_TYPE_SNAPSHOT_LOAD) {
        return; /* loading fills every field */
    }
    s->cause = cause_of_this_reset(s);
    if (s->cause == SYSCTL_RESET_POWER_ON) {
        memset(s->scratch, 0, sizeof(s->scratch));
    }
    s->powered = true;
    s->next_cause = SYSCTL_RESET_POWER_ON;
    s->watchdog_pending = false;
    s->boot_status = 0;
    memset(s->hart_entry, 0, sizeof(s->hart_entry));
    drop_key_line(s);
    trace_essd_sysctl_reset(cause_name[s->cause], s->straps);
}

/*
 * PL061 forgets its inputs in its own reset, so the pins are driven after that.
 */
static void essd_sysctl_reset_exit(Object *obj, ResetType type)
{
    EssdSysctlState *s = ESSD_SYSCTL(obj);

    for (int i = 0; i < ESSD_STRAPS; i++) {
        qemu_set_irq(s->strap[i], extract32(s->straps, i, 1));
    }
}

static int essd_sysctl_post_load(void *opaque, int version_id)
{
    EssdSysctlState *s = ESSD_SYSCTL(opaque);

    drop_key_line(s); /* no state has it: it is not the loaded firmware's */
    return s->cause < ARRAY_SIZE(cause_name) &&
                   s->next_cause < ARRAY_SIZE(cause_name)
               ? 0
               : -EINVAL;
}

static const VMStateDescription vmstate_essd_sysctl = {
    .name = TYPE_ESSD_SYSCTL,
    .version_id = 3,
    .minimum_version_id = 3,
    .post_load = essd_sysctl_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32_EQUAL(dram_mib, EssdSysctlState, "DRAM size differs"),
        VMSTATE_UINT32_EQUAL(harts, EssdSysctlState, "hart count differs"),
        VMSTATE_BOOL(powered, EssdSysctlState),
        VMSTATE_BOOL(watchdog_pending, EssdSysctlState),
        VMSTATE_UINT32(cause, EssdSysctlState),
        VMSTATE_UINT32(next_cause, EssdSysctlState),
        VMSTATE_UINT32(boot_status, EssdSysctlState),
        VMSTATE_BOOL(is_failing, EssdSysctlState),
        VMSTATE_UINT64(power.left_ns, EssdSysctlState),
        VMSTATE_UINT64(power.since_ns, EssdSysctlState),
        VMSTATE_UINT8(power.is_running, EssdSysctlState),
        VMSTATE_TIMER_PTR(power_timer, EssdSysctlState),
        VMSTATE_UINT32_ARRAY(hart_entry, EssdSysctlState, 2),
        VMSTATE_UINT32_ARRAY(scratch, EssdSysctlState, SYSCTL_SCRATCH_WORDS),
        VMSTATE_END_OF_LIST()}};

static void essd_sysctl_init(Object *obj)
{
    EssdSysctlState *s = ESSD_SYSCTL(obj);

    memory_region_init_io(&s->iomem, obj, &essd_sysctl_ops, s, TYPE_ESSD_SYSCTL,
                          0x1000);
    sysbus_init_mmio(SYS_BUS_DEVICE(obj), &s->iomem);
    sysbus_init_irq(SYS_BUS_DEVICE(obj), &s->power_irq);
    s->power_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, look_at_power, s);
    qdev_init_gpio_in_named(DEVICE(obj), watchdog_input, "watchdog", 1);
    qdev_init_gpio_out_named(DEVICE(obj), s->strap, "strap", ESSD_STRAPS);
}

static void essd_sysctl_finalize(Object *obj)
{
    timer_free(ESSD_SYSCTL(obj)->power_timer);
}

static const Property essd_sysctl_properties[] = {
    DEFINE_PROP_BOOL("plp", EssdSysctlState, plp, false),
    DEFINE_PROP_UINT32("plp-budget-us", EssdSysctlState, plp_budget_us,
                       SYSCTL_POWER_BUDGET_US),
    DEFINE_PROP_UINT32("dram-mib", EssdSysctlState, dram_mib, 0),
    DEFINE_PROP_UINT32("harts", EssdSysctlState, harts, 1),
    DEFINE_PROP_UINT8("straps", EssdSysctlState, straps, 0),
    DEFINE_PROP_STRING("boot-key", EssdSysctlState, boot_key),
    DEFINE_PROP_CHR("key-log", EssdSysctlState, key_log),
};

static void essd_sysctl_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    dc->desc = "Ethernet SSD system controller";
    dc->vmsd = &vmstate_essd_sysctl;
    dc->user_creatable = false; /* it is part of the machine */
    device_class_set_props(dc, essd_sysctl_properties);
    object_class_property_add_bool(klass, "power-fail", get_power_fail,
                                   set_power_fail);
    object_class_property_set_description(
        klass, "power-fail",
        "true: the power fails; capacitors hold it for "
        "plp-budget-us");
    rc->phases.enter = essd_sysctl_reset_enter;
    rc->phases.exit = essd_sysctl_reset_exit;
}

static const TypeInfo essd_sysctl_types[] = {
    {
        .name = TYPE_ESSD_SYSCTL,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdSysctlState),
        .instance_init = essd_sysctl_init,
        .instance_finalize = essd_sysctl_finalize,
        .class_init = essd_sysctl_class_init,
    },
};

DEFINE_TYPES(essd_sysctl_types)
