/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"
#include "essd_ecc.h"

#include "exec/address-spaces.h"
#include "hw/irq.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/cutils.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "system/cpus.h"
#include "trace.h"

/* ---- Memories. */

/* The memory at an address, or NULL when there is none with ECC. */
static uint8_t *memory_at(const EssdEccState *s, hwaddr addr, uint64_t len)
{
    if (addr >= SOC_SRAM_BASE && addr - SOC_SRAM_BASE <= SOC_SRAM_SIZE - len) {
        return s->sram + (addr - SOC_SRAM_BASE);
    }
    if (addr >= SOC_DRAM_BASE && addr - SOC_DRAM_BASE <= s->dram_size - len &&
        !essd_core_is_guarded(addr, len)) {
        return s->dram + (addr - SOC_DRAM_BASE);
    }
    return NULL;
}

/* ---- Accesses of harts to pages with errors. */

static MemTxResult essd_ecc_page_read(void *opaque, hwaddr offset,
                                      uint64_t *value, unsigned size,
                                      MemTxAttrs attrs)
{
    const EssdEccPage *page = opaque;

    trace_essd_ecc_access("read", page->base + offset, size);
    if (!hw_ecc_read(&page->ecc->core, page->base + offset, size, false)) {
        return MEMTX_ERROR;
    }
    *value = ldn_le_p(page->ptr + offset, size);
    return MEMTX_OK;
}

static MemTxResult essd_ecc_page_write(void *opaque, hwaddr offset,
                                       uint64_t value, unsigned size,
                                       MemTxAttrs attrs)
{
    const EssdEccPage *page = opaque;
    hwaddr addr = page->base + offset;

    trace_essd_ecc_access("write", addr, size);
    if (!hw_ecc_write(&page->ecc->core, addr, size, false)) {
        return MEMTX_ERROR;
    }
    stn_le_p(page->ptr + offset, size, value);
    return MEMTX_OK;
}

static const MemoryRegionOps essd_ecc_page_ops = {
    .read_with_attrs = essd_ecc_page_read,
    .write_with_attrs = essd_ecc_page_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 1,
    .valid.max_access_size = 8,
    .impl.min_access_size = 1,
    .impl.max_access_size = 8,
};

static bool page_has_errors(const EssdEccState *s, hwaddr base)
{
    for (uint32_t i = 0; i < s->core.count; i++) {
        if (s->core.words[i].addr - base < ESSD_ECC_PAGE) {
            return true;
        }
    }
    return false;
}

static EssdEccPage *find_page(EssdEccState *s, hwaddr base)
{
    EssdEccPage *free_page = NULL;

    for (unsigned int i = 0; i < HW_ECC_WORDS; i++) {
        EssdEccPage *page = &s->page[i];

        if (page->is_on && page->base == base) {
            return page;
        }
        if (!page->is_on && !free_page) {
            free_page = page;
        }
    }
    return free_page;
}

static void turn_page(EssdEccPage *page, bool is_on)
{
    page->is_on = is_on;
    memory_region_set_address(&page->iomem, page->base);
    memory_region_set_enabled(&page->iomem, is_on);
}

/*
 * Cover the pages with errors, and no others, with a region each.  This runs in
 * the main thread.
 *
 * The harts are stopped meanwhile.  For a device, an entry of a hart's TLB
 * holds the number of a section of the memory map.  A hart that ran between the
 * change of the map and the flush of its TLB would look up the old number in
 * the new map.  It would reach another device, or none; then QEMU aborts.
 */
static void update_pages(void *opaque)
{
    EssdEccState *s = opaque;

    pause_all_vcpus();
    memory_region_transaction_begin();
    for (unsigned int i = 0; i < HW_ECC_WORDS; i++) {
        if (s->page[i].is_on && !page_has_errors(s, s->page[i].base)) {
            turn_page(&s->page[i], false);
        }
    }
    for (uint32_t i = 0; i < s->core.count; i++) {
        hwaddr base = QEMU_ALIGN_DOWN(s->core.words[i].addr, ESSD_ECC_PAGE);
        EssdEccPage *page = find_page(s, base);

        if (!page->is_on) {
            page->base = base;
            page->ptr = memory_at(s, base, ESSD_ECC_PAGE);
            turn_page(page, true);
        }
    }
    memory_region_transaction_commit();
    resume_all_vcpus();
}

/* ---- Accesses of devices. */

/* Without errors the cores find DRAM by themselves: see essd_core_dma(). */
static void update_cores(EssdEccState *s)
{
    for (EssdCore *core = s->cores; core; core = core->next) {
        core->direct_size = hw_ecc_has_errors(&s->core) ? 0 : core->dram_size;
    }
}

void essd_core_attach(EssdCore *core)
{
    Object *obj = object_resolve_path_type("", TYPE_ESSD_ECC, NULL);
    EssdEccState *s;

    core->direct_size = core->dram_size;
    if (obj) {
        s = ESSD_ECC(obj);
        core->ecc = &s->core;
        core->next = s->cores;
        s->cores = core;
    }
}

bool essd_ecc_is_memory(hwaddr addr, uint64_t len)
{
    Object *obj = object_resolve_path_type("", TYPE_ESSD_ECC, NULL);

    return obj && memory_at(ESSD_ECC(obj), addr, len);
}

bool essd_ecc_device_writes(hwaddr addr, uint64_t len)
{
    Object *obj = object_resolve_path_type("", TYPE_ESSD_ECC, NULL);

    return !obj || hw_ecc_write(&ESSD_ECC(obj)->core, addr, len, true);
}

void *essd_core_map_checked(EssdCore *core, uint64_t addr, uint64_t len,
                            bool is_write)
{
    if (!essd_core_is_dram(core, addr, len)) {
        return NULL;
    }
    if (core->ecc && !(is_write ? hw_ecc_write(core->ecc, addr, len, true)
                                : hw_ecc_read(core->ecc, addr, len, true))) {
        return NULL;
    }
    return core->dram_ptr + (addr - SOC_DRAM_BASE);
}

/* ---- The core's environment. */

static void ecc_set_irq(void *ctx, bool level)
{
    EssdEccState *s = ctx;

    qemu_set_irq(s->irq, level);
}

static void ecc_changed(void *ctx)
{
    EssdEccState *s = ctx;

    update_cores(s);
    qemu_bh_schedule(s->bh);
}

static void ecc_clear_word(void *ctx, uint64_t addr)
{
    memset(memory_at(ctx, addr, sizeof(uint64_t)), 0, sizeof(uint64_t));
}

/* ---- Registers and properties. */

static uint64_t essd_ecc_read(void *opaque, hwaddr offset, unsigned size)
{
    EssdEccState *s = opaque;
    uint32_t value;

    if (!hw_ecc_reg_read(&s->core, offset, &value)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-ecc: read of offset 0x%" HWADDR_PRIx "\n", offset);
    }
    trace_essd_ecc_read(offset, value);
    return value;
}

static void essd_ecc_write(void *opaque, hwaddr offset, uint64_t value,
                           unsigned size)
{
    EssdEccState *s = opaque;

    trace_essd_ecc_write(offset, value);
    if (!hw_ecc_reg_write(&s->core, offset, value)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-ecc: write of 0x%" PRIx64
                      " to offset 0x%" HWADDR_PRIx "\n",
                      value, offset);
    }
}

static const MemoryRegionOps essd_ecc_ops = {
    .read = essd_ecc_read,
    .write = essd_ecc_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
};

static void essd_ecc_inject(Object *obj, const char *value, Error **errp)
{
    EssdEccState *s = ESSD_ECC(obj);
    uint64_t addr, bits;
    const char *end;

    if (qemu_strtou64(value, &end, 16, &addr) || *end != ' ' ||
        qemu_strtou64(end + 1, NULL, 16, &bits)) {
        error_setg(errp, "inject takes an address and bits, both hexadecimal");
        return;
    }
    if (!memory_at(s, addr, sizeof(uint64_t))) {
        error_setg(errp, "there is no memory with ECC at 0x%" PRIx64, addr);
        return;
    }
    if (!hw_ecc_inject(&s->core, addr, bits)) {
        error_setg(errp,
                   "the error cannot be injected: the address has to be a "
                   "multiple of 8, at least one bit has to be given, and at "
                   "most %d words can have errors",
                   HW_ECC_WORDS);
        return;
    }
    update_pages(s);
}

static void essd_ecc_get_words(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    uint32_t count = ESSD_ECC(obj)->core.count;

    visit_type_uint32(v, name, &count, errp);
}

/* ---- Life. */

void essd_ecc_set_memories(EssdEccState *s, MemoryRegion *sram,
                           MemoryRegion *dram)
{
    s->sram = memory_region_get_ram_ptr(sram);
    s->dram = memory_region_get_ram_ptr(dram);
    s->dram_size = memory_region_size(dram);
}

static void essd_ecc_realize(DeviceState *dev, Error **errp)
{
    EssdEccState *s = ESSD_ECC(dev);

    for (unsigned int i = 0; i < HW_ECC_WORDS; i++) {
        EssdEccPage *page = &s->page[i];

        page->ecc = s;
        memory_region_init_io(&page->iomem, OBJECT(dev), &essd_ecc_page_ops,
                              page, "essd-ecc-page", ESSD_ECC_PAGE);
        memory_region_set_enabled(&page->iomem, false);
        memory_region_add_subregion_overlap(get_system_memory(), SOC_DRAM_BASE,
                                            &page->iomem, 1);
    }
}

static void essd_ecc_reset_hold(Object *obj, ResetType type)
{
    EssdEccState *s = ESSD_ECC(obj);

    if (type == RESET_TYPE_SNAPSHOT_LOAD) {
        return; /* loading fills every field */
    }
    hw_ecc_reset(&s->core, !s->powered);
    s->powered = true;
}

static int essd_ecc_post_load(void *opaque, int version_id)
{
    EssdEccState *s = opaque;

    if (s->core.count > HW_ECC_WORDS) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < s->core.count; i++) {
        if (s->core.words[i].addr % sizeof(uint64_t) != 0 ||
            s->core.words[i].bits == 0 ||
            !memory_at(s, s->core.words[i].addr, sizeof(uint64_t))) {
            return -EINVAL;
        }
    }
    hw_ecc_loaded(&s->core);
    update_pages(s);
    return 0;
}

static const VMStateDescription vmstate_essd_ecc_word = {
    .name = "essd-ecc/word",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]){VMSTATE_UINT64(addr, struct hw_ecc_word),
                                     VMSTATE_UINT64(bits, struct hw_ecc_word),
                                     VMSTATE_END_OF_LIST()}};

static const VMStateDescription vmstate_essd_ecc = {
    .name = TYPE_ESSD_ECC,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = essd_ecc_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_BOOL(powered, EssdEccState),
        VMSTATE_STRUCT_ARRAY(core.words, EssdEccState, HW_ECC_WORDS, 1,
                             vmstate_essd_ecc_word, struct hw_ecc_word),
        VMSTATE_UINT32(core.count, EssdEccState),
        VMSTATE_UINT32(core.ctrl, EssdEccState),
        VMSTATE_UINT32(core.status, EssdEccState),
        VMSTATE_UINT32(core.corrected, EssdEccState),
        VMSTATE_UINT32(core.uncorrected, EssdEccState),
        VMSTATE_UINT64(core.corrected_addr, EssdEccState),
        VMSTATE_UINT64(core.uncorrected_addr, EssdEccState),
        VMSTATE_UINT64(core.scrub_addr, EssdEccState),
        VMSTATE_UINT32(core.scrub_len, EssdEccState), VMSTATE_END_OF_LIST()}};

static void essd_ecc_init(Object *obj)
{
    EssdEccState *s = ESSD_ECC(obj);
    const struct hw_ecc_config config = {
        .ctx = s,
        .set_irq = ecc_set_irq,
        .changed = ecc_changed,
        .clear_word = ecc_clear_word,
    };

    hw_ecc_init(&s->core, &config);
    /*
     * There is no guard against re-entrance, because a hart may finish an
     * access to a page while update_pages() waits for the harts to stop.
     */
    s->bh = qemu_bh_new(update_pages, s);
    memory_region_init_io(&s->iomem, obj, &essd_ecc_ops, s, TYPE_ESSD_ECC,
                          SOC_ECC_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(obj), &s->iomem);
    sysbus_init_irq(SYS_BUS_DEVICE(obj), &s->irq);
}

static void essd_ecc_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    dc->desc = "Ethernet SSD error correction of memories";
    dc->vmsd = &vmstate_essd_ecc;
    dc->realize = essd_ecc_realize;
    dc->user_creatable = false; /* it is part of the machine */
    rc->phases.hold = essd_ecc_reset_hold;
    object_class_property_add_str(klass, "inject", NULL, essd_ecc_inject);
    object_class_property_add(klass, "words", "uint32", essd_ecc_get_words,
                              NULL, NULL, NULL);
}

static const TypeInfo essd_ecc_types[] = {
    {
        .name = TYPE_ESSD_ECC,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdEccState),
        .instance_init = essd_ecc_init,
        .class_init = essd_ecc_class_init,
    },
};

DEFINE_TYPES(essd_ecc_types)
