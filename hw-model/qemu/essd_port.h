/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-port: one Ethernet port of the drive; the core is hw-model/port.
 * See essd_port.c for the QEMU interface.
 */
#ifndef ESSD_HW_QEMU_PORT_H
#define ESSD_HW_QEMU_PORT_H

#include "hw-model/core/mdio.h"
#include "qom/object.h"

#define TYPE_ESSD_PORT "essd-port"
OBJECT_DECLARE_SIMPLE_TYPE(EssdPortState, ESSD_PORT)

/* The port's PHY on an MDIO bus. */
struct mdio_bus essd_port_mdio(EssdPortState *s);

#endif
