/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-media: the media engine of the drive; the core is hw-model/media.
 * Reference: docs/hardware/media.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/media.h
 *  + sysbus IRQ 0: level, high while an enabled MEDIA_IRQ_STATUS bit is set
 *  + property "drive": the medium, 64 MiB to 16 TiB and writable; and QEMU's
 *    other block device properties
 *  + property "cache-size": volatile write cache in bytes, default 64 MiB; 0:
 *    none
 *  + property "write-out", also while running: whether the cache is written
 *    out when the host is idle and when data is old; default on.  Off keeps
 *    unflushed data in the cache for as long as there is room, for tests of
 *    power cuts
 *  + link "mgmt": the block that gets its trace events; default: none
 *  + link "dram": the memory region that DMA reaches; default: the machine's
 *    RAM.  Bus addresses begin at SOC_DRAM_BASE
 *
 * The volatile write cache is memory of this process: SIGKILL is a power cut
 * and loses data that was not flushed.  A stop of the machine (QMP stop,
 * savevm, quit, SIGTERM) lets every command in progress complete, empties the
 * cache and flushes the medium, so that a saved state holds no data.  A reset
 * keeps the cache.
 *
 * Everything runs under the big lock, in the threads that essd_data.h names.  A
 * write that fits into the cache is complete when the hart continues after the
 * doorbell.  The block layer reads and writes DRAM directly.
 *
 * Not modelled: see the list in the guide; changes of the drive's size.  Writes
 * to DRAM are not logged as dirty, so a machine must be stopped before it is
 * saved or migrated.
 */
#include "qemu/osdep.h"
#include "essd_media.h"

#include "block/aio.h"
#include "block/block.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/defer-call.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "trace.h"

#include "essd_blk.h"
#include "essd_core.h"
#include "essd_faults.h"
#include "essd_mgmt.h"
#include "essd_queue.h"
#include "hw-model/fault/fault_media.h"
#include "hw-model/media/hw_media.h"

#define MEDIA_SIZE_MIN  (64 * MiB)
#define MEDIA_SIZE_MAX  (16 * TiB)
#define MEDIA_SIZE_UNIT 4096
#define MEDIA_CACHE_MAX (4 * GiB)

struct EssdMediaState {
    SysBusDevice parent_obj;

    EssdCore core;
    EssdBlk blk;
    EssdMgmtState *mgmt;
    uint64_t cache_size;
    void *cache_memory;
    size_t cache_memory_size;
    struct hw_media media;
    struct fault_media faults; /* between the core and the block layer */
    QEMUTimer *faults_timer;
    Notifier faults_changed;
};

/* The work of the core. */

static void essd_media_run(void *opaque)
{
    EssdMediaState *s = opaque;

    defer_call_begin(); /* all requests of a run cost one system call */
    hw_media_run(&s->media);
    defer_call_end();
}

static void essd_media_timer(void *opaque)
{
    EssdMediaState *s = opaque;

    defer_call_begin();
    hw_media_timer(&s->media);
    defer_call_end();
}

/* The block layer. */

static void essd_media_io_done(void *opaque, uint32_t id, int result)
{
    EssdMediaState *s = opaque;

    fault_media_below_done(&s->faults, id, result);
}

/* The world of the media faults. */

static void essd_media_faults_done(void *ctx, uint32_t id, int result)
{
    EssdMediaState *s = ctx;

    hw_media_io_done(&s->media, id, result);
}

static void essd_media_cache_error(void *ctx, bool is_lost)
{
    EssdMediaState *s = ctx;

    hw_media_note_cache_error(&s->media, is_lost);
}

static void essd_media_faults_set_timer(void *ctx, uint64_t deadline_ns)
{
    EssdMediaState *s = ctx;

    essd_core_timer_mod(s->faults_timer, deadline_ns);
}

static void essd_media_faults_timer(void *opaque)
{
    EssdMediaState *s = opaque;

    fault_media_timer(&s->faults);
}

static void essd_media_faults_changed(Notifier *notifier, void *data)
{
    EssdMediaState *s = container_of(notifier, EssdMediaState, faults_changed);

    if (s->faults.num_ended > 0) {
        fault_media_timer(&s->faults);
    }
}

static void essd_media_init_faults(EssdMediaState *s)
{
    s->faults_timer =
        timer_new_ns(QEMU_CLOCK_VIRTUAL, essd_media_faults_timer, s);
    fault_media_init(&s->faults,
                     &(struct fault_media_config){
                         .table = essd_faults_table(),
                         .below =
                             {
                                 .ctx = &s->blk,
                                 .readv = essd_blk_readv,
                                 .writev = essd_blk_writev,
                                 .write_zeroes = essd_blk_write_zeroes,
                                 .flush = essd_blk_flush,
                             },
                         .ctx = s,
                         .first_cache_id = HW_MEDIA_BATCH_ID0,
                         .end_cache_id = HW_MEDIA_BATCH_ID0 + HW_MEDIA_BATCHES,
                         .cache_error = essd_media_cache_error,
                         .done = essd_media_faults_done,
                         .now_ns = essd_core_now_ns,
                         .set_timer = essd_media_faults_set_timer,
                         .power_cut = essd_faults_power_cut,
                     });
    s->faults_changed.notify = essd_media_faults_changed;
    essd_faults_add_notifier(&s->faults_changed);
}

/* The machine stops and continues. */

/* Wait for requests to end.  Fault rules do not hold them any longer, since
 * their clock may stand still. */
static void essd_media_poll(EssdMediaState *s)
{
    fault_media_release(&s->faults);
    aio_poll(qemu_get_aio_context(), false);
}

static void essd_media_resumed(void *opaque)
{
    EssdMediaState *s = opaque;

    hw_media_resume(&s->media);
}

/*
 * Stop with the machine.  The harts are stopped already; completions still
 * reach the rings in DRAM.
 */
static void essd_media_stopped(void *opaque)
{
    EssdMediaState *s = opaque;

    trace_essd_media_quiesce(s->media.active_ops, s->media.cache.used_lines);
    hw_media_quiesce(&s->media);
    while (!hw_media_is_quiet(&s->media)) {
        essd_media_poll(s);
    }
}

/* Registers. */

static bool essd_media_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdMediaState *s = opaque;

    return hw_media_read(&s->media, offset, value);
}

static bool essd_media_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdMediaState *s = opaque;

    return hw_media_write(&s->media, offset, value);
}

static const EssdCoreOps essd_media_core_ops = {
    .type = TYPE_ESSD_MEDIA,
    .size = SOC_MEDIA_SIZE,
    .has_dma = true,
    .has_irq = true,
    .thread = ESSD_CORE_DATA,
    .read = essd_media_read,
    .write = essd_media_write,
    .run = essd_media_run,
    .timer = essd_media_timer,
    .resumed = essd_media_resumed,
    .stopped = essd_media_stopped,
};

/* Creation, reset and migration. */

/* After the reset, no DMA from before it may reach DRAM. */
static void essd_media_reset_hold(Object *obj, ResetType type)
{
    EssdMediaState *s = ESSD_MEDIA(obj);

    essd_core_cancel(&s->core);
    hw_media_reset(&s->media);
    while (hw_media_has_dma(&s->media)) {
        essd_media_poll(s);
    }
}

/* @return the size of the medium in bytes, or 0 with *errp set */
static uint64_t essd_media_open(EssdMediaState *s, Error **errp)
{
    int64_t size;

    if (!s->blk.conf.blk) {
        error_setg(errp, "essd-media: the drive has no media: name a block "
                         "device with -M essd,media=NODE");
        return 0;
    }
    if (!essd_blk_open(&s->blk, TYPE_ESSD_MEDIA, "the media", errp)) {
        return 0;
    }
    size = blk_getlength(s->blk.conf.blk);
    if (size < 0) {
        error_setg_errno(errp, -size, "essd-media: the media has no size");
        return 0;
    }
    if (size < MEDIA_SIZE_MIN || size > MEDIA_SIZE_MAX ||
        size % MEDIA_SIZE_UNIT != 0) {
        error_setg(errp,
                   "essd-media: the media has %" PRId64 " bytes, not 64 "
                   "MiB to 16 TiB in units of 4 KiB",
                   size);
        return 0;
    }
    return size;
}

static bool essd_media_alloc_cache(EssdMediaState *s, Error **errp)
{
    if (s->cache_size > MEDIA_CACHE_MAX ||
        s->cache_size % MEDIA_SIZE_UNIT != 0) {
        error_setg(errp, "essd-media: \"cache-size\" can be at most 4 GiB, in "
                         "units of 4 KiB");
        return false;
    }
    s->cache_memory_size = media_cache_memory_bytes(s->cache_size);
    if (s->cache_memory_size > 0) {
        /* Pages that are never used take no memory. */
        s->cache_memory =
            qemu_anon_ram_alloc(s->cache_memory_size, NULL, false, true);
        if (!s->cache_memory) {
            error_setg(errp, "essd-media: no memory for the write cache");
            return false;
        }
    }
    return true;
}

static void essd_media_realize(DeviceState *dev, Error **errp)
{
    EssdMediaState *s = ESSD_MEDIA(dev);
    uint64_t size;

    size = essd_media_open(s, errp);
    if (size == 0 || !essd_media_alloc_cache(s, errp) ||
        !essd_core_realize(&s->core, errp)) {
        return;
    }
    essd_blk_start(&s->blk, HW_MEDIA_IO_IDS, essd_media_io_done, s);
    essd_media_init_faults(s);
    hw_media_init(&s->media,
                  &(struct hw_media_config){
                      .env = essd_core_env(&s->core),
                      .backend = fault_media_backend(&s->faults),
                      .capacity_bytes = size,
                      .cache_bytes = s->cache_size,
                      .cache_memory = s->cache_memory,
                      .trace = s->mgmt ? essd_mgmt_trace(s->mgmt) : NULL,
                      .cache_bits = fault_media_cache_bits,
                      .cache_ctx = &s->faults,
                  });
}

static void essd_media_unrealize(DeviceState *dev)
{
    EssdMediaState *s = ESSD_MEDIA(dev);

    essd_core_unrealize(&s->core);
    timer_free(s->faults_timer);
    notifier_remove(&s->faults_changed);
    if (s->cache_memory) {
        qemu_anon_ram_free(s->cache_memory, s->cache_memory_size);
    }
    essd_blk_end(&s->blk);
}

static void essd_media_init(Object *obj)
{
    EssdMediaState *s = ESSD_MEDIA(obj);

    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_media_core_ops, s);
}

/* If the medium refuses writes, data stays in the cache: refuse to save. */
static int essd_media_pre_save(void *opaque)
{
    EssdMediaState *s = opaque;

    return s->media.active_ops == 0 && s->media.cache.used_lines == 0 ? 0
                                                                      : -EBUSY;
}

static int essd_media_post_load(void *opaque, int version_id)
{
    EssdMediaState *s = opaque;

    return hw_media_loaded(&s->media) ? 0 : -EINVAL;
}

static const VMStateDescription essd_media_vmstate = {
    .name = TYPE_ESSD_MEDIA,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = essd_media_pre_save,
    .post_load = essd_media_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32(media.regs.irq_status, EssdMediaState),
        VMSTATE_UINT32(media.regs.irq_enable, EssdMediaState),
        VMSTATE_UINT32(media.regs.block_shift, EssdMediaState),
        VMSTATE_UINT32(media.regs.cache_ctrl, EssdMediaState),
        VMSTATE_UINT32(media.regs.counter_high, EssdMediaState),
        VMSTATE_UINT64_ARRAY(media.regs.counters, EssdMediaState,
                             HW_MEDIA_COUNTERS),
        VMSTATE_STRUCT_ARRAY(media.regs.queues, EssdMediaState, HW_MEDIA_QUEUES,
                             1, essd_queue_vmstate, struct dev_queue),
        VMSTATE_END_OF_LIST()}};

static const Property essd_media_properties[] = {
    DEFINE_BLOCK_PROPERTIES(EssdMediaState, blk.conf),
    DEFINE_PROP_SIZE("cache-size", EssdMediaState, cache_size, 64 * MiB),
    DEFINE_PROP_LINK("mgmt", EssdMediaState, mgmt, TYPE_ESSD_MGMT,
                     EssdMgmtState *),
    DEFINE_PROP_LINK("dram", EssdMediaState, core.dram, TYPE_MEMORY_REGION,
                     MemoryRegion *),
};

static bool essd_media_get_write_out(Object *obj, Error **errp)
{
    return !ESSD_MEDIA(obj)->media.config.keeps_dirty;
}

static void essd_media_set_write_out(Object *obj, bool value, Error **errp)
{
    ESSD_MEDIA(obj)->media.config.keeps_dirty = !value;
}

static void essd_media_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "Media engine of the drive";
    dc->realize = essd_media_realize;
    dc->unrealize = essd_media_unrealize;
    dc->vmsd = &essd_media_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_media_properties);
    object_class_property_add_bool(oc, "write-out", essd_media_get_write_out,
                                   essd_media_set_write_out);
    rc->phases.hold = essd_media_reset_hold;
    set_bit(DEVICE_CATEGORY_STORAGE, dc->categories);
}

static const TypeInfo essd_media_types[] = {
    {
        .name = TYPE_ESSD_MEDIA,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdMediaState),
        .instance_init = essd_media_init,
        .class_init = essd_media_class_init,
    },
};

DEFINE_TYPES(essd_media_types)
