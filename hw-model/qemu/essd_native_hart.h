/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A native hart: hart 0's thread runs firmware that was built for this
 * computer, where TCG would run. Reference: docs/hardware/native-hart.md
 *
 * Properties of the machine:
 *  + "hart": "riscv", the default, or "native"
 *  + "hart-image": with hart=native, the file with the firmware
 *
 * The drive then does not start what is in its flash, has no boot ROM, and
 * cannot be saved.  It has one hart, and DRAM without errors for this hart.
 */
#ifndef HW_ESSD_NATIVE_HART_H
#define HW_ESSD_NATIVE_HART_H

#include "hw/boards.h"
#include "target/riscv/cpu.h"

void essd_native_hart_add_properties(ObjectClass *machine);

/*
 * With hart=native, check the command line, and replace the machine's RAM by
 * DRAM that has the same addresses in this process and on the bus.  To be
 * called before anything uses the RAM.
 */
void essd_native_hart_create_dram(MachineState *machine);

/* With hart=native, let the firmware run in place of what `hart` executes. */
void essd_native_hart_create(RISCVCPU *hart);

#endif
