/* SPDX-License-Identifier: GPL-2.0-or-later */
/* essd-watchdog: what the machine uses of it. */
#ifndef ESSD_HW_QEMU_WATCHDOG_H
#define ESSD_HW_QEMU_WATCHDOG_H

#include "hw/sysbus.h"
#include "qom/object.h"

#define TYPE_ESSD_WATCHDOG "essd-watchdog"
OBJECT_DECLARE_SIMPLE_TYPE(EssdWatchdogState, ESSD_WATCHDOG)

#endif
