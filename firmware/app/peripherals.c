/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/peripherals.h"

#include "firmware/app/drive.h"
#include "firmware/bmc/bmc_identity.h"
#include "firmware/peripherals/module_record.h"
#include "firmware/settings/settings.h"

enum {
    SPEED_KHZ = 100, /* all devices on the buses support it */
    BMC_BUS = 1,     /* unless a strap pin puts the BMC on the other port */
};

#define MANUFACTURER "Ethernet SSD emulation"

static const uint32_t bus_irq[SOC_I2CS] = {
    BIT(SOC_IRQ_I2C0),
    BIT(SOC_IRQ_I2C1),
    BIT(SOC_IRQ_I2C2),
};

/* Record an event of a module as a vendor-specific event in the persistent
 * event log. */
static void record_module_event(void *ctx, const struct module_event *event)
{
    struct drive *drive = ctx;
    uint8_t data[MODULE_RECORD_LEN];
    const struct nvmf_vendor_event record = {
        .code = (uint16_t)event->kind,
        .name = module_event_name(event->kind),
        .text = event->text,
        .data = data,
        .data_len = sizeof(data),
    };

    module_record_emit(event, data);
    nvmf_target_record_vendor(drive->target, &record);
}

_Static_assert((int)MODULE_EVENT_TEXT_MAX <= (int)NVMF_EVENT_TEXT_MAX,
               "the log has space for an event's text");

void peripherals_start(struct drive *drive, const struct drive_config *config)
{
    struct peripherals *peripherals = &drive->peripherals;
    const struct sensors_config sensors = {
        .bus = &peripherals->bus[2],
        .log = config->log,
        .sensor =
            {
                {SOC_SENSOR_CONTROLLER, "the controller's temperature sensor"},
                {SOC_SENSOR_MEDIA, "the media's temperature sensor"},
            },
    };

    for (unsigned int i = 0; i < SOC_I2CS; i++) {
        if (!i2c_init(&peripherals->bus[i], config->i2c_regs[i], SPEED_KHZ)) {
            log_line(config->log,
                     "i2c: there is no controller %u, so the drive does "
                     "without what is on its bus",
                     i);
        }
    }
    sensors_init(&peripherals->sensors, &sensors);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        module_init(&peripherals->module[i], &(struct module_config){
                                                 .port = i,
                                                 .bus = &peripherals->bus[i],
                                                 .log = config->log,
                                                 .raise = record_module_event,
                                                 .ctx = drive,
                                             });
    }
}

/* Pass the temperatures on to SMART. */
static void update_health(struct drive *drive)
{
    const struct sensors *sensors = &drive->peripherals.sensors;
    struct nvmf_health health = *nvmf_target_health(drive->target);

    health.temperature_k = sensors_composite_kelvin(sensors);
    for (unsigned int i = 0; i < NVMF_TEMPERATURE_SENSORS; i++) {
        health.sensor_k[i] = sensors_kelvin(sensors, i);
    }
    nvmf_target_set_health(drive->target, &health);
    drive_update_reliability(drive);
}

_Static_assert((int)NVMF_TEMPERATURE_SENSORS == (int)SENSORS,
               "SMART reports every sensor");

/* ---- The BMC. */

static void bmc_health(void *ctx, struct mi_health *health)
{
    const struct drive *drive = ctx;
    const struct nvmf_health *smart = nvmf_target_health(drive->target);

    *health = (struct mi_health){
        .critical_warning = nvmf_target_critical_warning(drive->target),
        .temperature_k = smart->temperature_k,
        .has_sensor_failed = sensors_have_failed(&drive->peripherals.sensors),
        .used_percent = smart->percentage_used,
        .spare_percent = smart->available_spare_percent,
        .is_functional = !nand_medium_has_failed(&drive->nand),
    };
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        health->link_up[i] = drive->net.ports.port[i].is_up;
    }
}

_Static_assert((int)NVMF_MAX_HOSTS <= (int)MI_CONTROLLERS_MAX,
               "the list has space for all controllers");

static unsigned int bmc_controllers(void *ctx, struct mi_controller *list)
{
    const struct drive *drive = ctx;
    unsigned int count = 0;

    for (uint16_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        struct nvmf_ctrl_info info;

        if (nvmf_target_ctrl_info(drive->target, i, &info) && info.is_managed) {
            mi_insert_controller(list, count++,
                                 (struct mi_controller){
                                     .cntlid = info.cntlid,
                                     .status = (uint8_t)info.csts & MI_CSTS,
                                 });
        }
    }
    return count;
}

static unsigned int bmc_bus(const struct drive_config *config)
{
    return config->straps & STRAPS_BMC_ON_I2C0 ? 0 : BMC_BUS;
}

bool peripherals_has_bmc(const struct drive *drive,
                         const struct drive_config *config)
{
    return (config->straps & STRAPS_NO_BMC) == 0 &&
           drive->peripherals.bus[bmc_bus(config)].regs != 0;
}

void peripherals_start_bmc(struct drive *drive,
                           const struct drive_config *config)
{
    struct peripherals *peripherals = &drive->peripherals;
    unsigned int bus = bmc_bus(config);
    const struct nvmf_config *target = nvmf_target_config(drive->target);
    struct bmc_config bmc = {
        .bus = &peripherals->bus[bus],
        .source =
            {
                .ctx = drive,
                .health = bmc_health,
                .controllers = bmc_controllers,
            },
        .vpd =
            {
                .manufacturer = MANUFACTURER,
                .product = "Ethernet SSD",
                .part = config->identity->model,
                .version = config->version,
                .serial = config->identity->serial,
                .capacity_bytes = drive->medium.size_blocks * 512,
            },
        .vendor_id = target->vid,
    };

    if (config->straps & STRAPS_NO_BMC) {
        log_line(config->log, "bmc: off, because strap pin 3 is high");
        return;
    }
    if (!peripherals_has_bmc(drive, config)) {
        return;
    }
    bmc_identity_serial(bmc.serial, config->identity->serial);
    bmc_identity_uuid(bmc.uuid, config->identity->serial);
    bmc_init(&peripherals->bmc, &bmc);
    log_line(config->log,
             "bmc: NVMe-MI on I2C port %u: MCTP at %02x, Basic Management "
             "Command at %02x, VPD at %02x",
             bus, MI_MCTP_ADDR, MI_BASIC_ADDR, MI_VPD_ADDR);
}

/* @return whether a transfer has ended */
static bool step_buses(struct peripherals *peripherals, struct loop_step *step)
{
    bool has_ended = false;

    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        loop_call_at(step, module_step(&peripherals->module[i], step->now_us));
    }
    for (unsigned int i = 0; i < SOC_I2CS; i++) {
        has_ended |= i2c_poll(&peripherals->bus[i]);
    }
    return has_ended;
}

enum loop_work peripherals_step(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    struct peripherals *peripherals = &drive->peripherals;
    bool has_ended;

    loop_call_at(step, sensors_step(&peripherals->sensors, step->now_us));
    has_ended = step_buses(peripherals, step);
    has_ended |= bmc_step(&peripherals->bmc, step->now_us, &step->deadline_us);
    if (sensors_take_change(&peripherals->sensors)) {
        update_health(drive);
    }
    return has_ended ? LOOP_EVENT : LOOP_IDLE;
}

bool peripherals_take_irq(void *ctx, uint32_t irqs)
{
    const struct peripherals *peripherals = &((struct drive *)ctx)->peripherals;
    bool is_ours = false;

    for (unsigned int i = 0; i < SOC_I2CS; i++) {
        if (irqs & bus_irq[i]) {
            i2c_irq_take(&peripherals->bus[i]);
            is_ours = true;
        }
    }
    return is_ours;
}
