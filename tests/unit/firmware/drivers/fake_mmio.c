/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_mmio.h"
#include "firmware/hal/mmio.h"

#include <string.h>

static struct access list[64];
static size_t list_len;
static size_t list_at;

void fake_mmio_expect(const struct access *accesses, size_t count)
{
    fake_mmio_done();
    assert_true(count <= ARRAY_LEN(list));
    memcpy(list, accesses, count * sizeof(*accesses));
    list_len = count;
    list_at = 0;
}

void fake_mmio_done(void)
{
    assert_int_equal(list_at, list_len);
}

static uint32_t take_access(char kind, uintptr_t addr)
{
    assert_true(list_at < list_len);
    assert_int_equal(kind, list[list_at].kind);
    assert_int_equal(addr, list[list_at].addr);
    return list[list_at++].value;
}

uint8_t mmio_read8(uintptr_t addr)
{
    return (uint8_t)take_access('R', addr);
}

uint32_t mmio_read32(uintptr_t addr)
{
    return take_access('r', addr);
}

void mmio_write8(uintptr_t addr, uint8_t value)
{
    assert_int_equal(take_access('W', addr), value);
}

void mmio_write32(uintptr_t addr, uint32_t value)
{
    assert_int_equal(take_access('w', addr), value);
}
