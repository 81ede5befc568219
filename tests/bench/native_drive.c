/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-native as a program: the drive with a medium in memory.  One peer
 * (native_initiator, or a QEMU "stream" netdev) connects to a socket that is
 * its port 0.  Use it to profile firmware and device cores without an emulator.
 *
 *   native_drive PATH [MTU [MIB]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "firmware/native/native.h"
#include "firmware/native/socket_link.h"

int main(int argc, char **argv)
{
    struct native_world world;
    struct medium medium;
    struct socket_link link;
    struct native_drive_config config = {
        .node = {.number = 1, .ipv4 = {0x0a000001}},
        .medium = &medium,
        .cache_bytes = 64 * 1024 * 1024,
    };
    struct native_drive *drive;
    int fd;

    if (argc < 2) {
        fprintf(stderr, "usage: native_drive PATH [MTU [MIB]]\n");
        return 2;
    }
    config.node.mtu_bytes = (uint16_t)(argc > 2 ? atoi(argv[2]) : 1500);
    medium_init(&medium,
                (uint64_t)(argc > 3 ? atoi(argv[3]) : 512) * 1024 * 1024);
    native_world_init(&world);
    drive = native_drive_create(&world, &config);
    printf("listening on %s\n", argv[1]);
    fflush(stdout);
    fd = socket_link_accept(argv[1]);
    if (fd < 0) {
        perror("native_drive: socket");
        return 1;
    }
    socket_link_init(&link, &drive->machine, 0, fd);
    while (!link.is_broken) {
        socket_link_run_once(&world, &link, 1);
    }
    printf("%s", machine_console(&drive->machine));
    socket_link_end(&link);
    native_drive_destroy(drive);
    native_world_end(&world);
    medium_end(&medium);
    return 0;
}
