/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP in the native process: the offload engine, and who uses it. */
#include "firmware/native/native.h"

#include "firmware/native/memory.h"

void machine_create_toe(struct machine *machine, struct dev_env env)
{
    struct hw_toe_config config = {.env = env,
                                   .trace = hw_mgmt_trace(&machine->mgmt),
                                   .aead = &record_gcm,
                                   .rdma = rnic_stream_user(&machine->rnic)};
    struct rdma_streams streams;

    machine->toe = native_memory_get(sizeof(*machine->toe));
    machine->toe_memory = config.memory =
        native_memory_get(hw_toe_memory_bytes());
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        config.ports[i] = hw_lag_sink(&machine->lag, i);
    }
    hw_toe_init(machine->toe, &config);
    streams = hw_toe_streams(machine->toe);
    rnic_set_streams(&machine->rnic, &streams);
}
