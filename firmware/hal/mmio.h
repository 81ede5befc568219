/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to registers, in one access each.  These are plain functions, so that
 * native programs and unit tests can link their own.
 */
#ifndef ESSD_HAL_MMIO_H
#define ESSD_HAL_MMIO_H

#include <stdint.h>

/*
 * Each is one aligned access of that size at bus address `addr`, in program
 * order.
 */
uint8_t mmio_read8(uintptr_t addr);
uint32_t mmio_read32(uintptr_t addr);
uint64_t mmio_read64(uintptr_t addr);
void mmio_write8(uintptr_t addr, uint8_t value);
void mmio_write32(uintptr_t addr, uint32_t value);
void mmio_write64(uintptr_t addr, uint64_t value);

#endif
