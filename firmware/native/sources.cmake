# SPDX-License-Identifier: BSD-2-Clause
set(NATIVE_SOURCES
    blocks.c
    cable.c
    hal_native.c
    i2c_wires.c
    machine.c
    medium.c
    memory.c
    nand_space.c
    nand_storage.c
    native.c
    native_operations.c
    native_services.c
    native_tcp.c
    socket_link.c
    world.c
)
