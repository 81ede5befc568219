/* SPDX-License-Identifier: BSD-2-Clause */
/* The function that a loop calls while it busy-waits for a device.  Such loops
 * wait for some microseconds at most. */
#ifndef ESSD_HAL_RELAX_H
#define ESSD_HAL_RELAX_H

/*
 * Called in each turn of such a loop.  Native programs link their own, in which
 * the device cores run.
 */
void hal_relax(void);

#endif
