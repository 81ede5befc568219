/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-nand: the NAND controller of the drive; the core is hw-model/nand.
 * See essd_nand.c for the QEMU interface.
 */
#ifndef ESSD_HW_QEMU_NAND_H
#define ESSD_HW_QEMU_NAND_H

#include "qom/object.h"

#define TYPE_ESSD_NAND "essd-nand"
OBJECT_DECLARE_SIMPLE_TYPE(EssdNandState, ESSD_NAND)

#endif
