/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine's fault rules, for the wrappers of the devices they apply to. */
#ifndef HW_ESSD_FAULTS_H
#define HW_ESSD_FAULTS_H

#include "qom/object.h"
#include "qemu/notify.h"

#include "hw-model/fault/fault_rule.h"

#define TYPE_ESSD_FAULTS "essd-faults"
OBJECT_DECLARE_SIMPLE_TYPE(EssdFaultsState, ESSD_FAULTS)

/* The machine's rules, or NULL if the machine has no such object. */
struct fault_table *essd_faults_table(void);

/* Call `notifier` after each change of the rules. */
void essd_faults_add_notifier(Notifier *notifier);

/* Cut the power.  Without capacitors, this ends the process: nothing is written
 * any more.  With capacitors, the firmware learns that the power fails. */
void essd_faults_power_cut(void *ctx, uint32_t id);

#endif
