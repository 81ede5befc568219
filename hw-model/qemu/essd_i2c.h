/* SPDX-License-Identifier: GPL-2.0-or-later */
/* essd-i2c: what the machine uses of it. */
#ifndef ESSD_HW_QEMU_I2C_H
#define ESSD_HW_QEMU_I2C_H

#include "hw/i2c/i2c.h"
#include "qom/object.h"

#define TYPE_ESSD_I2C        "essd-i2c"
#define TYPE_ESSD_I2C_TARGET "essd-i2c-target"
#define TYPE_ESSD_SFP        "essd-sfp"
#define TYPE_ESSD_MODULE     "essd-module" /* and the number of its port */
#define TYPE_ESSD_BMC        "essd-bmc"

OBJECT_DECLARE_SIMPLE_TYPE(EssdI2CState, ESSD_I2C)

/* The bus of a realised controller. */
I2CBus *essd_i2c_bus(EssdI2CState *s);

#endif
