/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is on the drive's I2C buses: temperature sensors, the ports' modules,
 * and the BMC.
 * Reference: docs/hardware/i2c.md
 */
#ifndef ESSD_APP_PERIPHERALS_H
#define ESSD_APP_PERIPHERALS_H

#include "firmware/bmc/bmc.h"
#include "firmware/drivers/i2c.h"
#include "firmware/loop/loop.h"
#include "firmware/peripherals/modules.h"
#include "firmware/peripherals/sensors.h"
#include "hw-model/regs/soc.h"

struct drive;
struct drive_config;

struct peripherals {
    struct i2c bus[SOC_I2CS];
    struct sensors sensors;
    struct module module[SOC_PORTS];
    struct bmc bmc;
};

/** Start the controllers; one that does not exist is logged once. */
void peripherals_start(struct drive *drive, const struct drive_config *config);

/** Whether the drive will answer a BMC; known after peripherals_start(). */
bool peripherals_has_bmc(const struct drive *drive,
                         const struct drive_config *config);

/** Begin to answer the BMC, after the target has started. */
void peripherals_start_bmc(struct drive *drive,
                           const struct drive_config *config);

/** The component of the main loop. `ctx` is the struct drive. */
enum loop_work peripherals_step(void *ctx, struct loop_step *step);
bool peripherals_take_irq(void *ctx, uint32_t irqs);

#endif
