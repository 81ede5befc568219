/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Golden bytes of MAC Control frames, without the Ethernet header.  scapy
 * builds them from the values of its own test/contrib/mac_control.uts, and
 * Wireshark's macc dissector decodes them to the same values.
 */
#ifndef ESSD_TESTS_WIRE_GOLDEN_MAC_CONTROL_H
#define ESSD_TESTS_WIRE_GOLDEN_MAC_CONTROL_H

#include <stdint.h>

/* MACControlPause(pause_time=0x1234): 0.238592 s at 10 Mb/s */
static const uint8_t mac_control_pause[46] = {0x00, 0x01, 0x12, 0x34};

/* MACControlClassBasedFlowControl(c0_enabled=1, c0_pause_time=0x4321,
 * c5_enabled=1, c5_pause_time=0x1234) */
static const uint8_t mac_control_pfc[46] = {
    0x01, 0x01, 0x00, 0x21, 0x43, 0x21, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x12, 0x34, 0x00, 0x00, 0x00, 0x00,
};

#endif
