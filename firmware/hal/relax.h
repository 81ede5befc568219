/* SPDX-License-Identifier: BSD-2-Clause */
/* One turn of a loop that waits, microseconds at most, for a device. */
#ifndef ESSD_HAL_RELAX_H
#define ESSD_HAL_RELAX_H

/* Native programs link their own, which lets the device cores run. */
void hal_relax(void);

#endif
