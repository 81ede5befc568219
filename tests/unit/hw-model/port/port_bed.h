/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware's part in the tests of the port's core: register accesses, and
 * rings in DRAM.
 */
#ifndef ESSD_TEST_PORT_BED_H
#define ESSD_TEST_PORT_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/regfields.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/port.h"
#include "lib/bytes.h"
#include "tests/unit/hw-model/test_env.h"

/* Offsets in DRAM. */
enum {
    DRAM_BYTES = 1 << 20,
    PAGE = 0x0,
    RX_RING = 0x1000,
    TX_RING = 0x2000,
    RX_BUF = 0x10000,
    TX_BUF = 0x40000,
    RX_LOG2 = 2,
};

static inline uint32_t port_bed_read(struct hw_port *port, uint32_t offset)
{
    uint32_t value;

    assert_true(hw_port_read(port, offset, &value));
    return value;
}

/* Run deferred work until there is none, as a bottom half would. */
static inline void port_bed_settle(struct hw_port *port, struct test_env *env)
{
    while (env->deferred) {
        env->deferred = false;
        hw_port_run(port);
    }
}

static inline void port_bed_write(struct hw_port *port, struct test_env *env,
                                  uint32_t offset, uint32_t value)
{
    assert_true(hw_port_write(port, offset, value));
    port_bed_settle(port, env);
}

/* Enable both rings, with receive buffers of `buf` bytes. */
static inline void port_bed_rings(struct hw_port *port, struct test_env *env,
                                  uint32_t tx_log2, uint32_t buf)
{
    for (uint32_t i = 0; i < 1 << RX_LOG2; i++) {
        uint8_t *slot = env->dram + RX_RING + i * PORT_RXD_LEN;

        put_le64(slot + PORT_RXD_ADDR, TEST_DRAM_BASE + RX_BUF + i * buf);
        put_le32(slot + PORT_RXD_SIZE, buf);
    }
    port_bed_write(port, env, A_PORT_PAGE_LO, (uint32_t)TEST_DRAM_BASE + PAGE);
    port_bed_write(port, env, A_PORT_RX_LO, (uint32_t)TEST_DRAM_BASE + RX_RING);
    port_bed_write(port, env, A_PORT_TX_LO, (uint32_t)TEST_DRAM_BASE + TX_RING);
    port_bed_write(port, env, A_PORT_RING_SIZES, RX_LOG2 | tx_log2 << 8);
    port_bed_write(port, env, A_PORT_RING_ENABLE, 1);
    assert_int_equal(port_bed_read(port, A_PORT_RING_ENABLE), 1);
}

#endif
