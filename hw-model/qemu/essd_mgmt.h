/* SPDX-License-Identifier: GPL-2.0-or-later */
/* essd-mgmt: what the machine and the other blocks use of it. */
#ifndef ESSD_HW_QEMU_MGMT_H
#define ESSD_HW_QEMU_MGMT_H

#include "qom/object.h"

#include "lib/trace.h"

#define TYPE_ESSD_MGMT "essd-mgmt"
OBJECT_DECLARE_SIMPLE_TYPE(EssdMgmtState, ESSD_MGMT)

/* The trace for a block's events; valid as long as the device exists. */
const struct trace *essd_mgmt_trace(EssdMgmtState *s);

#endif
