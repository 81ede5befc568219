/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of changes of a module: each is one line of the log and one event. */
#ifndef ESSD_PERIPHERALS_MODULE_REPORT_H
#define ESSD_PERIPHERALS_MODULE_REPORT_H

#include "firmware/peripherals/modules.h"

/** Report what has changed since the last report, as far as the pace allows. */
void module_report_changes(struct module *module);

#endif
