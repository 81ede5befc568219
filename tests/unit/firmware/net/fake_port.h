/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two physical ports without hardware: the functions of drivers/port.h that
 * firmware/net calls.  They record their arguments.  The register address
 * identifies the port.
 */
#ifndef TESTS_FIRMWARE_NET_FAKE_PORT_H
#define TESTS_FIRMWARE_NET_FAKE_PORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/net/node_ports.h"

enum { FAKE_REGS = 0x1000, FAKE_RING = 8, FAKE_FRAME = 128 };

struct fake_frame {
    uint8_t data[FAKE_FRAME];
    uint32_t len;
    uint8_t priority;
};

struct fake_port {
    bool vlan[4096]; /* whether the port is a member of each VLAN */
    uint8_t groups[NET_MULTICAST][6];
    uint8_t mac[6];
    struct port_link link;
    bool refuses_link;
    bool refuses_start;
    uint32_t speed_mbps;
    enum port_fec fec;

    struct fake_frame sent[FAKE_RING], received[FAKE_RING];
    unsigned int sent_count, received_count, popped;
    bool is_full; /* there is no room to send */
};

extern struct fake_port fake_ports[NET_PORTS];

/** Reset both ports to their state after power-on. */
void fake_ports_reset(void);

/** Receive a frame of `len` bytes for `dst`. */
void fake_port_receive(unsigned int port, const uint8_t *dst, uint32_t len);

#endif
