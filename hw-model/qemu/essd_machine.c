/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd: the drive as a machine.
 * Reference: docs/hardware/soc.md
 *
 * QEMU interface (-M essd,...):
 *  + "straps": level of the 8 strap pins, bit 0 is pin 0; default 0
 *  + "boot-key": public key that is fused into sysctl; default: none
 *  + "plp": the board has capacitors for power-loss protection; default off
 *  + "flash": node name of the SPI flash; or -drive if=mtd,format=raw,file=F
 *  + "media": node name of the storage that the media engine uses
 *  + "nand": node name of the file of the NAND controller's array; default: no
 *    array
 *  + "port0-netdev", "port1-netdev": id of a -netdev, one per port
 *  + "mgmt", "trace": id of a -chardev each, the channels for tools
 *  + "bmc": id of a -chardev: a program on the I2C bus of the BMC
 *  + I2C buses i2c.0 to i2c.2, on which -device puts devices; their paths
 *    are /i2c0 to /i2c2
 *  + "hart", "hart-image": see essd_native_hart.h
 *  + -serial: the UART console; -m: DRAM, 64 MiB to 2 GiB; -smp: 1 to 4 harts
 *
 * There is no -kernel and no -bios: the drive starts what is in its flash.
 */
#include "qemu/osdep.h"

#include "exec/address-spaces.h"
#include "hw/boards.h"
#include "hw/char/serial-mm.h"
#include "hw/core/split-irq.h"
#include "hw/i2c/i2c.h"
#include "hw/intc/riscv_aclint.h"
#include "hw/intc/sifive_plic.h"
#include "hw/misc/unimp.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/riscv/riscv_hart.h"
#include "hw/sensor/tmp105.h"
#include "hw/ssi/pl022.h"
#include "hw/ssi/ssi.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qobject/qlist.h"
#include "qapi/visitor.h"
#include "qemu/error-report.h"
#include "qemu/units.h"
#include "system/block-backend.h"
#include "system/blockdev.h"
#include "system/qtest.h"
#include "system/system.h"
#include "target/riscv/cpu.h"

#include "essd_ecc.h"
#include "essd_faults.h"
#include "essd_i2c.h"
#include "essd_native_hart.h"
#include "essd_rom.h"
#include "essd_spi_dma.h"
#include "essd_sysctl.h"
#include "essd_watchdog.h"
#include "hw-model/regs/soc.h"

#define TYPE_ESSD_MACHINE MACHINE_TYPE_NAME("essd")
OBJECT_DECLARE_SIMPLE_TYPE(EssdMachineState, ESSD_MACHINE)

struct EssdMachineState {
    MachineState parent_obj;

    RISCVHartArrayState harts;
    MemoryRegion rom;
    MemoryRegion sram;
    DeviceState *mtimer;
    DeviceState *plic;
    DeviceState *port[SOC_PORTS];
    DeviceState *rnic;
    DeviceState *toe;
    DeviceState *mgmt_block;

    /* Hart 0's Smrnmi registers, which QEMU does not save. */
    uint64_t nmi_pending, mnscratch, mnepc, mncause, mnstatus;

    uint8_t straps;
    bool plp;
    char *boot_key;
    char *flash;
    char *media;
    char *nand;
    char *port_netdev[SOC_PORTS];
    char *mgmt;
    char *trace;
    char *bmc;
};

static qemu_irq plic_irq(EssdMachineState *s, int source)
{
    return qdev_get_gpio_in(s->plic, source);
}

/* Realise a device that the machine owns and map it at `base`. */
static void place_device(DeviceState *dev, hwaddr base)
{
    sysbus_realize_and_unref(SYS_BUS_DEVICE(dev), &error_fatal);
    sysbus_mmio_map(SYS_BUS_DEVICE(dev), 0, base);
}

static void place_block(EssdMachineState *s, DeviceState *dev, hwaddr base,
                        int irq)
{
    place_device(dev, base);
    sysbus_connect_irq(SYS_BUS_DEVICE(dev), 0, plic_irq(s, irq));
}

static DeviceState *new_child(EssdMachineState *s, const char *name,
                              const char *type)
{
    DeviceState *dev = qdev_new(type);

    object_property_add_child(OBJECT(s), name, OBJECT(dev));
    return dev;
}

static int nmi_pre_save(void *opaque)
{
    EssdMachineState *s = opaque;
    const CPURISCVState *env = &s->harts.harts[0].env;

    s->nmi_pending = env->rnmip;
    s->mnscratch = env->mnscratch;
    s->mnepc = env->mnepc;
    s->mncause = env->mncause;
    s->mnstatus = env->mnstatus;
    return 0;
}

static int nmi_post_load(void *opaque, int version_id)
{
    EssdMachineState *s = opaque;
    CPURISCVState *env = &s->harts.harts[0].env;

    env->rnmip = s->nmi_pending;
    env->mnscratch = s->mnscratch;
    env->mnepc = s->mnepc;
    env->mncause = s->mncause;
    env->mnstatus = s->mnstatus;
    return 0;
}

static const VMStateDescription vmstate_nmi = {
    .name = "essd-nmi",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = nmi_pre_save,
    .post_load = nmi_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT64(nmi_pending, EssdMachineState),
        VMSTATE_UINT64(mnscratch, EssdMachineState),
        VMSTATE_UINT64(mnepc, EssdMachineState),
        VMSTATE_UINT64(mncause, EssdMachineState),
        VMSTATE_UINT64(mnstatus, EssdMachineState), VMSTATE_END_OF_LIST()}};

static void set_vectors(EssdMachineState *s, const char *property, int address)
{
    QList *vectors = qlist_new();

    for (unsigned int i = 0; i < MACHINE(s)->smp.cpus; i++) {
        qlist_append_int(vectors, address);
    }
    qdev_prop_set_array(DEVICE(&s->harts), property, vectors);
}

static void create_harts(EssdMachineState *s)
{
    MachineState *machine = MACHINE(s);

    object_initialize_child(OBJECT(s), "harts", &s->harts,
                            TYPE_RISCV_HART_ARRAY);
    qdev_prop_set_string(DEVICE(&s->harts), "cpu-type", machine->cpu_type);
    qdev_prop_set_uint32(DEVICE(&s->harts), "num-harts", machine->smp.cpus);
    qdev_prop_set_uint64(DEVICE(&s->harts), "resetvec", SOC_ROM_BASE);
    if (!qtest_enabled()) { /* Then the harts execute no instructions. */
        set_vectors(s, "rnmi-interrupt-vector", SOC_NMI_VECTOR);
        set_vectors(s, "rnmi-exception-vector", SOC_NMI_EXCEPTION);
    }
    sysbus_realize(SYS_BUS_DEVICE(&s->harts), &error_fatal);
    vmstate_register(NULL, 0, &vmstate_nmi, s);

    riscv_aclint_swi_create(SOC_CLINT_BASE, 0, machine->smp.cpus, false);
    s->mtimer = riscv_aclint_mtimer_create(
        SOC_CLINT_BASE + RISCV_ACLINT_SWI_SIZE,
        RISCV_ACLINT_DEFAULT_MTIMER_SIZE, 0, machine->smp.cpus,
        RISCV_ACLINT_DEFAULT_MTIMECMP, RISCV_ACLINT_DEFAULT_MTIME,
        SOC_TIMEBASE_HZ, true);
}

static void create_plic(EssdMachineState *s)
{
    unsigned int harts = MACHINE(s)->smp.cpus;
    g_autoptr(GString) modes = g_string_new("M");

    for (unsigned int i = 1; i < harts; i++) {
        g_string_append(modes, ",M");
    }
    s->plic = sifive_plic_create(
        SOC_PLIC_BASE, g_strdup(modes->str), harts, 0, SOC_IRQS,
        SOC_PLIC_PRIORITIES, SOC_PLIC_PRIORITY, SOC_PLIC_PENDING,
        SOC_PLIC_ENABLE, SOC_PLIC_ENABLE_STRIDE, SOC_PLIC_CONTEXT,
        SOC_PLIC_CONTEXT_STRIDE, SOC_PLIC_SIZE);
}

static void create_memory(EssdMachineState *s)
{
    MemoryRegion *sysmem = get_system_memory();

    QEMU_BUILD_BUG_ON(sizeof(essd_rom) > SOC_ROM_SIZE);
    memory_region_init_rom(&s->rom, NULL, "essd.rom", SOC_ROM_SIZE,
                           &error_fatal);
    memcpy(memory_region_get_ram_ptr(&s->rom), essd_rom, sizeof(essd_rom));
    memory_region_add_subregion(sysmem, SOC_ROM_BASE, &s->rom);

    memory_region_init_ram(&s->sram, NULL, "essd.sram", SOC_SRAM_SIZE,
                           &error_fatal);
    memory_region_add_subregion(sysmem, SOC_SRAM_BASE, &s->sram);
    memory_region_add_subregion(sysmem, SOC_DRAM_BASE, MACHINE(s)->ram);
}

/*
 * The watchdog's interrupt goes to the PLIC, to sysctl as a reset cause, and to
 * hart 0 as a non-maskable one.
 */
static void create_watchdog(EssdMachineState *s, DeviceState *sysctl)
{
    DeviceState *split = new_child(s, "watchdog-split", TYPE_SPLIT_IRQ);
    DeviceState *dev = new_child(s, "watchdog", TYPE_ESSD_WATCHDOG);

    object_property_set_link(OBJECT(dev), "hart", OBJECT(&s->harts.harts[0]),
                             &error_fatal);
    object_property_set_link(OBJECT(dev), "mtimer", OBJECT(s->mtimer),
                             &error_fatal);
    place_device(dev, SOC_WATCHDOG_BASE);

    qdev_prop_set_uint32(split, "num-lines", 3);
    qdev_realize_and_unref(split, NULL, &error_fatal);
    qdev_connect_gpio_out(split, 0, plic_irq(s, SOC_IRQ_WATCHDOG));
    qdev_connect_gpio_out(split, 1,
                          qdev_get_gpio_in_named(sysctl, "watchdog", 0));
    qdev_connect_gpio_out(split, 2,
                          qdev_get_gpio_in_named(DEVICE(&s->harts.harts[0]),
                                                 "riscv.cpu.rnmi",
                                                 SOC_NMI_WATCHDOG));
    sysbus_connect_irq(SYS_BUS_DEVICE(dev), 0, qdev_get_gpio_in(split, 0));
}

static void create_sysctl(EssdMachineState *s)
{
    DeviceState *sysctl = new_child(s, "sysctl", TYPE_ESSD_SYSCTL);
    DeviceState *straps = new_child(s, "straps-gpio", "pl061");

    qdev_prop_set_uint32(sysctl, "dram-mib", MACHINE(s)->ram_size / MiB);
    qdev_prop_set_uint32(sysctl, "harts", MACHINE(s)->smp.cpus);
    qdev_prop_set_uint8(sysctl, "straps", s->straps);
    if (s->boot_key != NULL) {
        qdev_prop_set_string(sysctl, "boot-key", s->boot_key);
    }
    qdev_prop_set_bit(sysctl, "plp", s->plp);
    place_block(s, sysctl, SOC_SYSCTL_BASE, SOC_IRQ_POWER);

    place_device(straps, SOC_STRAPS_BASE);
    sysbus_connect_irq(SYS_BUS_DEVICE(straps), 0, plic_irq(s, SOC_IRQ_STRAPS));
    for (int i = 0; i < ESSD_STRAPS; i++) {
        qdev_connect_gpio_out_named(sysctl, "strap", i,
                                    qdev_get_gpio_in(straps, i));
    }
    create_watchdog(s, sysctl);
}

static void check_flash_size(BlockBackend *blk, const char *name)
{
    int64_t size = blk_getlength(blk);

    if (size != SOC_FLASH_SIZE) {
        error_report("essd: SPI flash %s has %" PRId64 " bytes, not %d", name,
                     size, SOC_FLASH_SIZE);
        exit(EXIT_FAILURE);
    }
}

static void connect_flash_drive(EssdMachineState *s, DeviceState *flash)
{
    DriveInfo *info = drive_get(IF_MTD, 0, 0);

    if (s->flash && info) {
        error_report("essd: use flash= or -drive if=mtd, not both");
        exit(EXIT_FAILURE);
    }
    if (s->flash) {
        object_property_set_str(OBJECT(flash), "drive", s->flash, &error_fatal);
    } else if (info) {
        check_flash_size(blk_by_legacy_dinfo(info), "of -drive if=mtd");
        qdev_prop_set_drive(flash, "drive", blk_by_legacy_dinfo(info));
    } else {
        error_report("essd: no SPI flash to boot from: add "
                     "-drive if=mtd,format=raw,file=FILE");
        exit(EXIT_FAILURE);
    }
}

static void create_flash(EssdMachineState *s)
{
    DeviceState *spi = new_child(s, "spi", TYPE_PL022);
    DeviceState *dma = new_child(s, "spi-dma", TYPE_ESSD_SPI_DMA);
    DeviceState *gpio = new_child(s, "gpio", "pl061");
    DeviceState *flash = new_child(s, "spi-flash", SOC_FLASH_PART);

    place_device(spi, SOC_SPI_BASE);
    sysbus_connect_irq(SYS_BUS_DEVICE(spi), 0, plic_irq(s, SOC_IRQ_SPI));
    object_property_set_link(OBJECT(dma), "spi", OBJECT(spi), &error_fatal);
    place_device(dma, SOC_SPI_DMA_BASE);
    place_device(gpio, SOC_GPIO_BASE);
    sysbus_connect_irq(SYS_BUS_DEVICE(gpio), 0, plic_irq(s, SOC_IRQ_GPIO));

    connect_flash_drive(s, flash);
    ssi_realize_and_unref(flash, PL022(spi)->ssi, &error_fatal);
    qdev_connect_gpio_out(gpio, SOC_GPIO_FLASH_SELECT,
                          qdev_get_gpio_in_named(flash, SSI_GPIO_CS, 0));
}

/*
 * Create a block that another source file of this directory provides.  If it
 * does not exist, its addresses behave as unimplemented (-d unimp shows
 * accesses).
 */
static DeviceState *new_block(EssdMachineState *s, const char *name,
                              const char *type, hwaddr base, uint64_t size)
{
    if (!module_object_class_by_name(type)) {
        create_unimplemented_device(type, base, size);
        return NULL;
    }
    return new_child(s, name, type);
}

/* Before the devices that look for it. */
static void create_ecc(EssdMachineState *s)
{
    DeviceState *dev = new_child(s, "ecc", TYPE_ESSD_ECC);

    essd_ecc_set_memories(ESSD_ECC(dev), &s->sram, MACHINE(s)->ram);
    place_device(dev, SOC_ECC_BASE);
    sysbus_connect_irq(SYS_BUS_DEVICE(dev), 0, plic_irq(s, SOC_IRQ_ECC));
}

/* Before the devices that look for it. */
static void create_faults(EssdMachineState *s)
{
    Object *faults = object_new(TYPE_ESSD_FAULTS);

    object_property_add_child(OBJECT(s), "faults", faults);
    object_unref(faults);
}

static void set_link(DeviceState *dev, const char *name, DeviceState *to)
{
    object_property_set_link(OBJECT(dev), name, OBJECT(to), &error_fatal);
}

static void set_name(DeviceState *dev, const char *name, const char *id)
{
    if (id) {
        object_property_set_str(OBJECT(dev), name, id, &error_fatal);
    }
}

static void create_ports(EssdMachineState *s)
{
    static const hwaddr base[SOC_PORTS] = {SOC_PORT0_BASE, SOC_PORT1_BASE};
    static const int irq[SOC_PORTS] = {SOC_IRQ_PORT0, SOC_IRQ_PORT1};

    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        g_autofree char *name = g_strdup_printf("port%u", i);
        DeviceState *dev =
            new_block(s, name, "essd-port", base[i], SOC_PORT_SIZE);

        if (dev) {
            qdev_prop_set_uint8(dev, "port", i);
            set_name(dev, "netdev", s->port_netdev[i]);
            place_block(s, dev, base[i], irq[i]);
        }
        s->port[i] = dev;
    }
}

static void create_rnic(EssdMachineState *s)
{
    DeviceState *dev =
        new_block(s, "rnic", "essd-rnic", SOC_RNIC_BASE, SOC_RNIC_SIZE);

    if (!dev) {
        return;
    }
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        g_autofree char *name = g_strdup_printf("port%u", i);

        set_link(dev, name, s->port[i]);
    }
    set_link(dev, "mgmt", s->mgmt_block);
    place_block(s, dev, SOC_RNIC_BASE, SOC_IRQ_RNIC);
    s->rnic = dev;
}

static void create_toe(EssdMachineState *s)
{
    s->toe = new_block(s, "toe", "essd-toe", SOC_TOE_BASE, SOC_TOE_SIZE);
    if (s->toe) {
        set_link(s->toe, "mgmt", s->mgmt_block);
        set_link(s->toe, "rnic", s->rnic);
        place_block(s, s->toe, SOC_TOE_BASE, SOC_IRQ_TOE);
    }
}

static void create_lag(EssdMachineState *s)
{
    DeviceState *dev =
        new_block(s, "lag", "essd-lag", SOC_LAG_BASE, SOC_LAG_SIZE);

    if (dev) {
        set_link(dev, "rnic", s->rnic);
        set_link(dev, "toe", s->toe);
        place_device(dev, SOC_LAG_BASE);
    }
}

static void create_mgmt(EssdMachineState *s)
{
    DeviceState *dev =
        new_block(s, "mgmt-block", "essd-mgmt", SOC_MGMT_BASE, SOC_MGMT_SIZE);

    if (dev) {
        set_name(dev, "chardev", s->mgmt);
        set_name(dev, "trace", s->trace);
        place_block(s, dev, SOC_MGMT_BASE, SOC_IRQ_MGMT);
    }
    s->mgmt_block = dev;
}

static void create_media(EssdMachineState *s)
{
    DeviceState *dev = new_block(s, "media-engine", "essd-media",
                                 SOC_MEDIA_BASE, SOC_MEDIA_SIZE);

    if (!dev) {
        return;
    }
    set_name(dev, "drive", s->media);
    set_link(dev, "mgmt", s->mgmt_block);
    place_block(s, dev, SOC_MEDIA_BASE, SOC_IRQ_MEDIA);
}

static void create_nand(EssdMachineState *s)
{
    DeviceState *dev = new_block(s, "nand-controller", "essd-nand",
                                 SOC_NAND_BASE, SOC_NAND_SIZE);

    if (!dev) {
        return;
    }
    set_name(dev, "drive", s->nand);
    set_link(dev, "mgmt", s->mgmt_block);
    place_block(s, dev, SOC_NAND_BASE, SOC_IRQ_NAND);
}

/* The temperature of a drive at rest, in thousandths of a degree Celsius. */
enum { REST_TEMPERATURE = 40000 };

static void create_sensor(EssdMachineState *s, I2CBus *bus, const char *name,
                          uint8_t address)
{
    I2CSlave *sensor = i2c_slave_new(TYPE_TMP105, address);

    object_property_add_child(OBJECT(s), name, OBJECT(sensor));
    i2c_slave_realize_and_unref(sensor, bus, &error_fatal);
    object_property_set_int(OBJECT(sensor), "temperature", REST_TEMPERATURE,
                            &error_fatal);
}

static void create_module(EssdMachineState *s, I2CBus *bus, unsigned int port)
{
    g_autofree char *type = g_strdup_printf(TYPE_ESSD_MODULE "%u", port);
    I2CSlave *module = i2c_slave_new(type, 0);
    g_autofree char *name = g_strdup_printf("module%u", port);
    g_autofree char *serial = g_strdup_printf("ESSDSFP%u", port);

    object_property_add_child(OBJECT(s), name, OBJECT(module));
    object_property_set_str(OBJECT(module), "serial", serial, &error_fatal);
    i2c_slave_realize_and_unref(module, bus, &error_fatal);
}

static void create_bmc(EssdMachineState *s, I2CBus *bus)
{
    I2CSlave *bmc = i2c_slave_new(TYPE_ESSD_BMC, 0);

    object_property_add_child(OBJECT(s), "bmc-program", OBJECT(bmc));
    set_name(DEVICE(bmc), "chardev", s->bmc);
    i2c_slave_realize_and_unref(bmc, bus, &error_fatal);
}

static void create_i2c(EssdMachineState *s)
{
    static const hwaddr base[SOC_I2CS] = {SOC_I2C0_BASE, SOC_I2C1_BASE,
                                          SOC_I2C2_BASE};
    static const int irq[SOC_I2CS] = {SOC_IRQ_I2C0, SOC_IRQ_I2C1, SOC_IRQ_I2C2};
    I2CBus *bus[SOC_I2CS];

    for (unsigned int i = 0; i < SOC_I2CS; i++) {
        g_autofree char *name = g_strdup_printf("i2c%u", i);
        g_autofree char *bus_name = g_strdup_printf("i2c.%u", i);
        DeviceState *dev = new_child(s, name, TYPE_ESSD_I2C);

        /* With this, -device can name the bus /i2cN, which is the only such
         * path: a multiplexer also has buses with the names i2c.N. */
        dev->id = g_strdup(name);
        qdev_prop_set_string(dev, "bus", bus_name);
        qdev_prop_set_bit(dev, "mdio", i < SOC_PORTS);
        if (i < SOC_PORTS && s->port[i]) {
            set_link(dev, "port", s->port[i]);
        }
        place_block(s, dev, base[i], irq[i]);
        bus[i] = essd_i2c_bus(ESSD_I2C(dev));
    }
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        create_module(s, bus[i], i);
    }
    create_bmc(s, bus[s->straps & SOC_STRAP_BMC_ON_I2C0 ? 0 : 1]);
    create_sensor(s, bus[2], "sensor-controller", SOC_SENSOR_CONTROLLER);
    create_sensor(s, bus[2], "sensor-media", SOC_SENSOR_MEDIA);
}

static void check_command_line(const MachineState *machine)
{
    if (machine->kernel_filename || machine->firmware) {
        error_report(
            "essd: -kernel and -bios are not supported: the drive boots "
            "from its SPI flash");
        exit(EXIT_FAILURE);
    }
    if (machine->ram_size < 64 * MiB || machine->ram_size > 2 * GiB ||
        machine->ram_size % MiB != 0) {
        error_report("essd: -m has to be 64 MiB to 2 GiB, in whole MiB");
        exit(EXIT_FAILURE);
    }
}

static void essd_machine_init_board(MachineState *machine)
{
    EssdMachineState *s = ESSD_MACHINE(machine);

    check_command_line(machine);
    essd_native_hart_create_dram(machine);
    create_harts(s);
    essd_native_hart_create(&s->harts.harts[0]);
    create_plic(s);
    create_memory(s);
    create_sysctl(s);
    serial_mm_init(get_system_memory(), SOC_UART_BASE, 0,
                   plic_irq(s, SOC_IRQ_UART), SOC_UART_CLOCK_HZ / 16,
                   serial_hd(0), DEVICE_LITTLE_ENDIAN);
    create_flash(s);
    create_ecc(s);
    create_faults(s);
    create_mgmt(s);
    create_ports(s);
    create_rnic(s);
    create_toe(s);
    create_lag(s);
    create_media(s);
    create_nand(s);
    create_i2c(s);
}

static void get_straps(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    visit_type_uint8(v, name, &ESSD_MACHINE(obj)->straps, errp);
}

static void set_straps(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    visit_type_uint8(v, name, &ESSD_MACHINE(obj)->straps, errp);
}

static bool get_plp(Object *obj, Error **errp)
{
    return ESSD_MACHINE(obj)->plp;
}

static void set_plp(Object *obj, bool value, Error **errp)
{
    ESSD_MACHINE(obj)->plp = value;
}

static char *get_boot_key(Object *obj, Error **errp)
{
    return g_strdup(ESSD_MACHINE(obj)->boot_key);
}

static void set_boot_key(Object *obj, const char *value, Error **errp)
{
    if (strlen(value) != 2 * SYSCTL_KEY_BYTES ||
        strspn(value, "0123456789abcdefABCDEF") != 2 * SYSCTL_KEY_BYTES) {
        error_setg(errp, "boot-key: an Ed25519 public key has 64 hexadecimal "
                         "digits");
        return;
    }
    g_free(ESSD_MACHINE(obj)->boot_key);
    ESSD_MACHINE(obj)->boot_key = g_strdup(value);
}

#define STRING_PROPERTY(field, member)                                         \
    static char *get_##field(Object *obj, Error **errp)                        \
    {                                                                          \
        return g_strdup(ESSD_MACHINE(obj)->member);                            \
    }                                                                          \
    static void set_##field(Object *obj, const char *value, Error **errp)      \
    {                                                                          \
        g_free(ESSD_MACHINE(obj)->member);                                     \
        ESSD_MACHINE(obj)->member = g_strdup(value);                           \
    }

STRING_PROPERTY(flash, flash)
STRING_PROPERTY(media, media)
STRING_PROPERTY(nand, nand)
STRING_PROPERTY(port0_netdev, port_netdev[0])
STRING_PROPERTY(port1_netdev, port_netdev[1])
STRING_PROPERTY(mgmt, mgmt)
STRING_PROPERTY(trace, trace)
STRING_PROPERTY(bmc, bmc)

static void essd_machine_finalize(Object *obj)
{
    EssdMachineState *s = ESSD_MACHINE(obj);

    g_free(s->boot_key);
    g_free(s->flash);
    g_free(s->media);
    g_free(s->nand);
    g_free(s->mgmt);
    g_free(s->trace);
    g_free(s->bmc);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        g_free(s->port_netdev[i]);
    }
}

static GlobalProperty hart_properties[] = {
    {
        .driver = TYPE_RISCV_CPU,
        .property = "smrnmi",
        .value = "on",
        /* With the accelerator "qtest", which executes no instructions,
           harts do not have this property. */
        .optional = true,
    },
};

static void essd_machine_class_init(ObjectClass *oc, void *data)
{
    MachineClass *mc = MACHINE_CLASS(oc);

    mc->desc = "Dual-port 25GbE NVMe-oF SSD";
    mc->init = essd_machine_init_board;
    mc->max_cpus = SOC_HARTS_MAX;
    mc->default_cpu_type = TYPE_RISCV_CPU_BASE64;
    mc->default_ram_id = "essd.dram";
    mc->default_ram_size = 512 * MiB;
    mc->block_default_type = IF_MTD;
    mc->no_cdrom = 1;
    mc->no_floppy = 1;
    mc->no_parallel = 1;
    compat_props_add(mc->compat_props, hart_properties,
                     ARRAY_SIZE(hart_properties));

    essd_native_hart_add_properties(oc);
    object_class_property_add(oc, "straps", "uint8", get_straps, set_straps,
                              NULL, NULL);
    object_class_property_set_description(oc, "straps",
                                          "levels of the 8 strap pins");
    object_class_property_add_bool(oc, "plp", get_plp, set_plp);
    object_class_property_set_description(
        oc, "plp",
        "the board has capacitors, with which firmware saves its "
        "write buffer when the power fails");
    object_class_property_add_str(oc, "boot-key", get_boot_key, set_boot_key);
    object_class_property_set_description(
        oc, "boot-key",
        "Ed25519 public key, with which images have to be "
        "signed, as 64 hexadecimal digits");
    object_class_property_add_str(oc, "flash", get_flash, set_flash);
    object_class_property_set_description(
        oc, "flash", "node name of the SPI flash (32 MiB)");
    object_class_property_add_str(oc, "media", get_media, set_media);
    object_class_property_set_description(oc, "media",
                                          "node name of the storage");
    object_class_property_add_str(oc, "nand", get_nand, set_nand);
    object_class_property_set_description(
        oc, "nand", "node name of the file of the NAND array");
    object_class_property_add_str(oc, "port0-netdev", get_port0_netdev,
                                  set_port0_netdev);
    object_class_property_set_description(
        oc, "port0-netdev", "id of the netdev that port 0 is connected to");
    object_class_property_add_str(oc, "port1-netdev", get_port1_netdev,
                                  set_port1_netdev);
    object_class_property_set_description(
        oc, "port1-netdev", "id of the netdev that port 1 is connected to");
    object_class_property_add_str(oc, "mgmt", get_mgmt, set_mgmt);
    object_class_property_set_description(
        oc, "mgmt", "id of the chardev for messages to and from tools");
    object_class_property_add_str(oc, "trace", get_trace, set_trace);
    object_class_property_set_description(
        oc, "trace", "id of the chardev for trace records");
    object_class_property_add_str(oc, "bmc", get_bmc, set_bmc);
    object_class_property_set_description(
        oc, "bmc", "id of the chardev of a program on the BMC's I2C bus");
}

static const TypeInfo essd_machine_types[] = {
    {
        .name = TYPE_ESSD_MACHINE,
        .parent = TYPE_MACHINE,
        .instance_size = sizeof(EssdMachineState),
        .instance_finalize = essd_machine_finalize,
        .class_init = essd_machine_class_init,
    },
};

DEFINE_TYPES(essd_machine_types)
