/* SPDX-License-Identifier: BSD-2-Clause */
/* A switch in a test: devices are byte streams, time is a variable. */
#ifndef ESSD_TESTS_UNIT_NET_SWITCH_SWITCH_TEST_H
#define ESSD_TESTS_UNIT_NET_SWITCH_SWITCH_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "lib/bytes.h"
#include "net/switch/switch.h"

enum { BED_PORTS = 4, BED_MTU = 1500 };

struct bed {
    void *memory;
    struct switch_core *core;
    uint64_t now_ns;
    uint64_t deadline_ns; /* of the last run */
    unsigned captured[BED_PORTS];
};

/* Fixtures: all ports are connected; queues are the smallest ones. */
int bed_setup(void **state);
int bed_teardown(void **state);

/** The address of a station. */
struct mac_addr bed_mac(uint8_t number);

/** An untagged frame between two stations; the rest holds `fill`. */
void bed_frame(uint8_t *frame, size_t len, uint8_t dst, uint8_t src,
               uint8_t fill);

/** Send bytes from a device, as far as there is room. @return how many */
size_t bed_send_bytes(struct bed *bed, uint8_t port, const uint8_t *bytes,
                      size_t len);

/** Send one frame, which has to fit, and run the switch. */
void bed_send(struct bed *bed, uint8_t port, const uint8_t *frame, size_t len);

/** Run the switch at its time. */
void bed_run(struct bed *bed);

/** Take one frame for a device. @return its length; 0: there is none */
size_t bed_take(struct bed *bed, uint8_t port, uint8_t *frame, size_t room);

/** Take and count the frames for a device. */
unsigned bed_take_all(struct bed *bed, uint8_t port);

uint64_t bed_counter(struct bed *bed, uint8_t port, enum switch_counter which);

/** Change a port: bed_config() is its present configuration. */
struct switch_port_config bed_config(struct bed *bed, uint8_t port);

#endif
