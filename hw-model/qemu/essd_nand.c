/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-nand: the NAND controller of the drive; the core is hw-model/nand.
 * Reference: docs/hardware/nand.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/nand.h
 *  + sysbus IRQ 0: level, high while an enabled NAND_IRQ_STATUS bit is set
 *  + property "drive": the array's file (docs/hardware/nand-file.md), writable;
 *    default: no array, and the geometry's registers read 0.  And QEMU's other
 *    block device properties
 *  + property "timing": "fast" (the default), operations take no time, or
 *    "realtime", they take the time of the array's profile
 *  + property "busy-ns", read-only: numbers separated by commas: the virtual
 *    time, then for each die how long it has read, programmed or erased since
 *    the machine began; all 0 with timing=fast
 *  + link "mgmt": the block that gets its trace events; default: none
 *  + link "dram": the memory region that DMA reaches; default: the machine's
 *    RAM.  Bus addresses begin at SOC_DRAM_BASE
 *
 * SIGKILL is a power cut: an operation that has not ended leaves a wordline
 * half programmed, or a block half erased.  A stop of the machine (QMP stop,
 * savevm, quit, SIGTERM) lets all operations that were taken end at once, and
 * brings the file up to date.  A saved state holds the generation of the file,
 * and loads only over a file of this generation; the state of a machine without
 * an array loads only into one without an array.
 *
 * Everything runs under the big lock, in the threads that essd_data.h names.
 * The block layer reads and writes DRAM directly.
 *
 * Not modelled: see the list in the guide.  Writes to DRAM are not logged as
 * dirty, so a machine must be stopped before it is saved or migrated.
 */
#include "qemu/osdep.h"
#include "essd_nand.h"

#include "block/aio.h"
#include "block/block.h"
#include "crypto/random.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/registerfields.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/defer-call.h"
#include "qemu/error-report.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "trace.h"

#include "essd_blk.h"
#include "essd_core.h"
#include "essd_faults.h"
#include "essd_mgmt.h"
#include "essd_queue.h"
#include "hw-model/fault/fault_nand.h"
#include "hw-model/nand/hw_nand.h"
#include "hw-model/regs/nand.h"

struct EssdNandState {
    SysBusDevice parent_obj;

    EssdCore core;
    EssdBlk blk;
    EssdMgmtState *mgmt;
    char *timing;
    void *array_memory;
    size_t array_memory_size;
    /* Of the machine that was saved. */
    bool saved_has_array;
    struct nand_generation saved_generation;
    struct fault_nand faults;
    struct hw_nand nand;
};

/* The work of the core. */

static void essd_nand_run(void *opaque)
{
    EssdNandState *s = opaque;

    defer_call_begin(); /* all requests of a run cost one system call */
    hw_nand_run(&s->nand);
    defer_call_end();
}

static void essd_nand_timer(void *opaque)
{
    EssdNandState *s = opaque;

    defer_call_begin();
    hw_nand_timer(&s->nand);
    defer_call_end();
}

/* The block layer. */

static void essd_nand_io_done(void *opaque, uint32_t id, int result)
{
    EssdNandState *s = opaque;

    hw_nand_io_done(&s->nand, id, result);
}

static bool essd_nand_read_source(void *ctx, uint64_t offset, void *buf,
                                  size_t len)
{
    EssdNandState *s = ctx;

    return blk_pread(s->blk.conf.blk, offset, len, buf, 0) >= 0;
}

/* Firmware has broken a rule of the flash. */
static void essd_nand_violated(void *ctx,
                               const struct hw_nand_violation *violation)
{
    static const char *const commands[] = {
        [NAND_CMD_READ] = "READ",
        [NAND_CMD_PROGRAM] = "PROGRAM",
        [NAND_CMD_ERASE] = "ERASE",
    };

    qemu_log_mask(LOG_GUEST_ERROR,
                  "essd-nand: %s of channel %u, die %u, planes 0x%x, block %u, "
                  "wordline %u breaks rule %u of the flash: %s\n",
                  commands[violation->opcode], violation->channel,
                  violation->die, violation->planes, violation->block,
                  violation->wordline, violation->rule,
                  nand_rule_text(violation->rule));
}

/* The machine stops and continues. */

static void essd_nand_resumed(void *opaque)
{
    EssdNandState *s = opaque;

    hw_nand_resume(&s->nand);
}

/* Stop with the machine.  Completions still reach the rings in DRAM. */
static void essd_nand_stopped(void *opaque)
{
    EssdNandState *s = opaque;

    trace_essd_nand_quiesce(s->nand.active_ops);
    hw_nand_quiesce(&s->nand);
    while (!hw_nand_is_quiet(&s->nand)) {
        aio_poll(qemu_get_aio_context(), true);
    }
}

/* Registers. */

static bool essd_nand_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdNandState *s = opaque;

    return hw_nand_read(&s->nand, offset, value);
}

static bool essd_nand_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdNandState *s = opaque;

    return hw_nand_write(&s->nand, offset, value);
}

static const EssdCoreOps essd_nand_core_ops = {
    .type = TYPE_ESSD_NAND,
    .size = SOC_NAND_SIZE,
    .has_dma = true,
    .has_irq = true,
    .thread = ESSD_CORE_DATA,
    .read = essd_nand_read,
    .write = essd_nand_write,
    .run = essd_nand_run,
    .timer = essd_nand_timer,
    .resumed = essd_nand_resumed,
    .stopped = essd_nand_stopped,
};

/* Creation, reset and migration. */

/* After the reset, no DMA from before it may reach DRAM. */
static void essd_nand_reset_hold(Object *obj, ResetType type)
{
    EssdNandState *s = ESSD_NAND(obj);

    essd_core_cancel(&s->core);
    hw_nand_reset(&s->nand);
    while (hw_nand_has_dma(&s->nand)) {
        aio_poll(qemu_get_aio_context(), true);
    }
}

static void essd_nand_refuse_file(EssdNandState *s,
                                  const struct nand_file_failure *failure,
                                  Error **errp)
{
    error_setg(errp, "essd-nand: the array '%s' cannot be used: %s",
               bdrv_get_device_or_node_name(blk_bs(s->blk.conf.blk)),
               failure->text);
}

/* Read the file and connect the array to the controller. */
static bool essd_nand_open_array(EssdNandState *s, Error **errp)
{
    struct nand_file_failure failure;
    struct nand_file file;
    int64_t size = blk_getlength(s->blk.conf.blk);
    struct nand_file_source source = {
        .ctx = s,
        .size_bytes = size < 0 ? 0 : size,
        .read = essd_nand_read_source,
    };
    struct nand_backend backend = {
        .ctx = &s->blk,
        .readv = essd_blk_readv,
        .writev = essd_blk_writev,
        .discard = essd_blk_discard,
        .flush = essd_blk_flush,
    };

    if (!nand_file_open(&file, &source, &failure)) {
        essd_nand_refuse_file(s, &failure, errp);
        return false;
    }
    essd_blk_start(&s->blk, hw_nand_io_ids(&file.geometry), essd_nand_io_done,
                   s);
    s->array_memory_size = hw_nand_array_bytes(&file.geometry);
    /* Pages that are never used take no memory. */
    s->array_memory =
        qemu_anon_ram_alloc(s->array_memory_size, NULL, false, true);
    if (!s->array_memory) {
        error_setg(errp, "essd-nand: no memory for the state of the blocks");
        return false;
    }
    if (!hw_nand_attach(&s->nand, &file, &backend, s->array_memory, &source,
                        &failure)) {
        essd_nand_refuse_file(s, &failure, errp);
        return false;
    }
    return true;
}

/* The rules of the machine's faults apply to the array, too. */
static void essd_nand_init_faults(EssdNandState *s)
{
    struct nand_fault_hook hook;

    s->faults = (struct fault_nand){
        .table = essd_faults_table(),
        .power_cut = essd_faults_power_cut,
    };
    if (s->faults.table) {
        hook = fault_nand_hook(&s->faults);
        nand_array_set_hook(s->nand.array, &hook);
    }
}

static void essd_nand_realize(DeviceState *dev, Error **errp)
{
    EssdNandState *s = ESSD_NAND(dev);
    bool is_realtime = s->timing && strcmp(s->timing, "realtime") == 0;
    uint64_t nonce = 0;

    if (s->timing && !is_realtime && strcmp(s->timing, "fast") != 0) {
        error_setg(errp,
                   "essd-nand: \"timing\" is 'fast' or 'realtime', not '%s'",
                   s->timing);
        return;
    }
    if (s->blk.conf.blk &&
        !essd_blk_open(&s->blk, TYPE_ESSD_NAND, "the array", errp)) {
        return;
    }
    /* Not from QEMU's generator for guests, which QEMU's option -seed makes
     * repeatable. */
    if (s->blk.conf.blk &&
        qcrypto_random_bytes(&nonce, sizeof(nonce), errp) < 0) {
        return;
    }
    if (!essd_core_realize(&s->core, errp)) {
        return;
    }
    hw_nand_init(&s->nand,
                 &(struct hw_nand_config){
                     .env = essd_core_env(&s->core),
                     .trace = s->mgmt ? essd_mgmt_trace(s->mgmt) : NULL,
                     .is_realtime = is_realtime,
                     .nonce = nonce,
                     .violated = essd_nand_violated,
                     .ctx = s,
                 });
    if (s->blk.conf.blk && !essd_nand_open_array(s, errp)) {
        return;
    }
    if (s->nand.array) {
        essd_nand_init_faults(s);
    }
}

static void essd_nand_unrealize(DeviceState *dev)
{
    EssdNandState *s = ESSD_NAND(dev);

    essd_core_unrealize(&s->core);
    if (s->array_memory) {
        qemu_anon_ram_free(s->array_memory, s->array_memory_size);
    }
    essd_blk_end(&s->blk);
}

static void essd_nand_init(Object *obj)
{
    EssdNandState *s = ESSD_NAND(obj);

    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_nand_core_ops, s);
}

/* If the file was not brought up to date, refuse to save. */
static int essd_nand_pre_save(void *opaque)
{
    EssdNandState *s = opaque;

    if (s->nand.active_ops != 0 || s->nand.sync_failed) {
        return -EBUSY;
    }
    s->saved_has_array = s->nand.array != NULL;
    s->saved_generation = (struct nand_generation){0};
    if (!s->nand.array) {
        return 0;
    }
    if (!nand_array_is_synced(s->nand.array)) {
        error_report("essd-nand: a machine that has never run cannot be saved, "
                     "because its NAND file was not brought up to date; start "
                     "and stop the machine first");
        return -EBUSY;
    }
    s->saved_generation = *nand_array_generation(s->nand.array);
    return 0;
}

/* Whether the file holds what it held when the machine was saved. */
static bool essd_nand_is_same_array(EssdNandState *s)
{
    const struct nand_generation *found;

    if (s->saved_has_array != (s->nand.array != NULL)) {
        error_report("essd-nand: the machine was saved %s a NAND array, and "
                     "this one has %s",
                     s->saved_has_array ? "with" : "without",
                     s->saved_has_array ? "none" : "one");
        return false;
    }
    if (!s->nand.array) {
        return true;
    }
    found = nand_array_generation(s->nand.array);
    if (!nand_generation_is_equal(found, &s->saved_generation)) {
        error_report("essd-nand: the NAND file is another one, or has changed "
                     "since the machine was saved: its generation is %" PRIu64
                     " with nonce %016" PRIx64 ", not %" PRIu64
                     " with nonce %016" PRIx64
                     "; use the file that was saved with the machine",
                     found->count, found->nonce, s->saved_generation.count,
                     s->saved_generation.nonce);
        return false;
    }
    if (!nand_array_is_synced(s->nand.array)) {
        error_report("essd-nand: the NAND file was copied while a machine used "
                     "it, or is damaged; use the file that was saved with the "
                     "machine");
        return false;
    }
    return true;
}

static int essd_nand_post_load(void *opaque, int version_id)
{
    EssdNandState *s = opaque;

    return essd_nand_is_same_array(s) && hw_nand_loaded(&s->nand) ? 0 : -EINVAL;
}

static const VMStateDescription essd_nand_vmstate = {
    .name = TYPE_ESSD_NAND,
    .version_id = 2,
    .minimum_version_id = 2,
    .pre_save = essd_nand_pre_save,
    .post_load = essd_nand_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_BOOL(saved_has_array, EssdNandState),
        VMSTATE_UINT64(saved_generation.count, EssdNandState),
        VMSTATE_UINT64(saved_generation.nonce, EssdNandState),
        VMSTATE_UINT32(nand.regs.irq_status, EssdNandState),
        VMSTATE_UINT32(nand.regs.irq_enable, EssdNandState),
        VMSTATE_UINT32(nand.regs.counter_high, EssdNandState),
        VMSTATE_UINT64_ARRAY(nand.regs.counters, EssdNandState,
                             HW_NAND_COUNTERS),
        VMSTATE_STRUCT_ARRAY(nand.regs.queues, EssdNandState, HW_NAND_QUEUES, 1,
                             essd_queue_vmstate, struct dev_queue),
        VMSTATE_END_OF_LIST()}};

static const Property essd_nand_properties[] = {
    DEFINE_BLOCK_PROPERTIES(EssdNandState, blk.conf),
    DEFINE_PROP_STRING("timing", EssdNandState, timing),
    DEFINE_PROP_LINK("mgmt", EssdNandState, mgmt, TYPE_ESSD_MGMT,
                     EssdMgmtState *),
    DEFINE_PROP_LINK("dram", EssdNandState, core.dram, TYPE_MEMORY_REGION,
                     MemoryRegion *),
};

static char *essd_nand_get_busy(Object *obj, Error **errp)
{
    EssdNandState *s = ESSD_NAND(obj);
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "%" PRIi64,
                           qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    for (uint32_t die = 0; die < s->nand.num_dies; die++) {
        g_string_append_printf(text, ",%" PRIu64,
                               hw_nand_busy_time(&s->nand, die));
    }
    return g_string_free(text, false);
}

static void essd_nand_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "NAND controller of the drive";
    dc->realize = essd_nand_realize;
    dc->unrealize = essd_nand_unrealize;
    dc->vmsd = &essd_nand_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_nand_properties);
    object_class_property_add_str(oc, "busy-ns", essd_nand_get_busy, NULL);
    rc->phases.hold = essd_nand_reset_hold;
    set_bit(DEVICE_CATEGORY_STORAGE, dc->categories);
}

static const TypeInfo essd_nand_types[] = {
    {
        .name = TYPE_ESSD_NAND,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdNandState),
        .instance_init = essd_nand_init,
        .class_init = essd_nand_class_init,
    },
};

DEFINE_TYPES(essd_nand_types)
