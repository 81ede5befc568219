/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order between memory that devices also read or write, and registers.
 */
#ifndef ESSD_HAL_BARRIER_H
#define ESSD_HAL_BARRIER_H

/* Everything written before is seen by a device before anything written after:
 * fill the descriptor, hal_dma_wmb(), publish it, doorbell. */
void hal_dma_wmb(void);

/* Nothing after is read before what was read before: see the phase bit,
 * hal_dma_rmb(), read the entry. */
void hal_dma_rmb(void);

/* Both, and stores before loads: publish the `asleep` word, hal_dma_mb(),
 * look at the ring once more. */
void hal_dma_mb(void);

#endif
