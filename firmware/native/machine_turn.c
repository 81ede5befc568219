/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of a machine's hart that take time: see machine.h. */
#include "firmware/native/machine.h"

void machine_turn_release(struct machine *machine)
{
    for (unsigned int i = 0; i < MACHINE_CORES; i++) {
        machine->slots[i].is_deferred |= machine->slots[i].is_held;
        machine->slots[i].is_held = false;
    }
}

void machine_turn_begins(struct machine *machine)
{
    machine->is_turning = true;
}

void machine_turn_ends(struct machine *machine, uint64_t takes_ns)
{
    machine->is_turning = false;
    machine->turn_end_ns = machine->node.world->now_ns + takes_ns;
    if (takes_ns == 0) {
        machine_turn_release(machine);
    }
}

void machine_turn_check(struct machine *machine)
{
    if (!machine->is_turning && !machine_is_turning(machine)) {
        machine_turn_release(machine);
    }
}
