/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barriers: they order accesses to registers and to memory that devices share.
 */
#ifndef ESSD_HAL_BARRIER_H
#define ESSD_HAL_BARRIER_H

/*
 * A device sees everything written before this call before anything written
 * after it.  Use: fill the descriptor, hal_dma_wmb(), publish it, ring the
 * doorbell.
 */
void hal_dma_wmb(void);

/*
 * Everything read before this call is read before anything read after it.  Use:
 * see the phase bit, hal_dma_rmb(), read the entry.
 */
void hal_dma_rmb(void);

/*
 * Does both, and also completes stores before later loads.  Use: publish the
 * `asleep` word, hal_dma_mb(), look at the ring once more.
 */
void hal_dma_mb(void);

#endif
