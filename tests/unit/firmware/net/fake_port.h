/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two physical ports without hardware: the functions of drivers/port.h that
 * firmware/net calls, and what they were told.  A port is known by its regs.
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
    bool vlan[4096]; /* is a member */
    uint8_t groups[NET_MULTICAST][6];
    uint8_t mac[6];
    struct port_link link;
    bool refuses_link;
    bool refuses_start;
    uint32_t speed_mbps;
    enum port_fec fec;

    struct fake_frame sent[FAKE_RING], received[FAKE_RING];
    unsigned int sent_count, received_count, popped;
    bool is_full; /* no room to send */
};

extern struct fake_port fake_ports[NET_PORTS];

/** Both ports as they are after power-on. */
void fake_ports_reset(void);

/** A frame of `len` bytes from `dst` comes in. */
void fake_port_receive(unsigned int port, const uint8_t *dst, uint32_t len);

#endif
