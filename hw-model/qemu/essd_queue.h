/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state of a command queue: struct dev_queue of hw-model/core. */
#ifndef ESSD_QUEUE_H
#define ESSD_QUEUE_H

#include "migration/vmstate.h"

extern const VMStateDescription essd_queue_vmstate;

#endif
