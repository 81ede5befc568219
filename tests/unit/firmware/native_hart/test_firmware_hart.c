/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware's side of a native hart, on operations that the test provides.
 * Registers are words of a table; the UART is always ready.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "firmware/arch/arch.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/relax.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "firmware/native_hart/hart.h"
#include "hw-model/regs/soc.h"
#include "tests/test_fixture.h"

enum {
    REGISTERS = 64,
    NOWHERE = 0x4000,
    UART_STATUS = 5,
    UART_READY = 0x60,
    MCAUSE_LOAD = 5,
    MCAUSE_STORE = 7,
    TICKS_PER_US = SOC_TIMEBASE_HZ / 1000000,
    SOFTWARE_TIMER_EXTERNAL = 1 << 3 | 1 << 7 | 1 << 11,
};
#define MTIMECMP (SOC_CLINT_BASE + 0x4000)

/* What the linker script defines for the image. */
__asm__(".data\n"
        ".globl __zeroed_start, __zeroed_end\n"
        "__zeroed_start: .fill 16, 1, 0xa5\n"
        "__zeroed_end: .byte 0xa5\n"
        ".globl __guard_bottom, __stack_bottom, __stack_top, __free_memory\n"
        "__guard_bottom: .zero 16\n"
        "__stack_bottom: .zero 16\n"
        "__stack_top: .zero 16\n"
        "__free_memory: .zero 16\n"
        ".globl __build_id_note\n"
        "__build_id_note: .fill 16, 1, 1\n"
        ".fill 20, 1, 2\n");
extern uint8_t __zeroed_start[], __zeroed_end[], __guard_bottom[];
extern const struct native_hart_image native_hart_image;

static struct {
    uint64_t addr[REGISTERS], value[REGISTERS];
    unsigned int sizes[REGISTERS];
    unsigned int count;
    uint64_t ticks, enabled;
    unsigned int waits, relaxes;
    char console[512];
    size_t printed;
    bool is_wait_the_end;
    jmp_buf end;
    uint64_t started_hart;
} bed;

static unsigned int register_at(uint64_t addr)
{
    unsigned int n = 0;

    while (n < bed.count && bed.addr[n] != addr) {
        n++;
    }
    assert_true(n < REGISTERS);
    if (n == bed.count) {
        bed.addr[bed.count++] = addr;
    }
    return n;
}

static bool fake_read(void *ctx, uint64_t addr, unsigned int size,
                      uint64_t *value)
{
    assert_ptr_equal(ctx, &bed);
    *value = UINT64_C(0xbad0bad0bad0bad0);
    if (addr == NOWHERE) {
        return false;
    }
    bed.sizes[register_at(addr)] = size;
    *value = addr == SOC_UART_BASE + UART_STATUS ? UART_READY
                                                 : bed.value[register_at(addr)];
    return true;
}

static bool fake_write(void *ctx, uint64_t addr, unsigned int size,
                       uint64_t value)
{
    assert_ptr_equal(ctx, &bed);
    if (addr == NOWHERE) {
        return false;
    }
    if (addr == SOC_UART_BASE && bed.printed < sizeof(bed.console) - 1) {
        bed.console[bed.printed++] = (char)value;
    }
    bed.sizes[register_at(addr)] = size;
    bed.value[register_at(addr)] = value;
    return true;
}

static uint64_t fake_ticks(void *ctx)
{
    assert_ptr_equal(ctx, &bed);
    return bed.ticks;
}

static void fake_relax(void *ctx)
{
    assert_ptr_equal(ctx, &bed);
    bed.relaxes++;
    bed.ticks += TICKS_PER_US;
}

static void fake_set_enabled(void *ctx, uint64_t mie)
{
    assert_ptr_equal(ctx, &bed);
    bed.enabled = mie;
}

static void fake_wait(void *ctx)
{
    assert_ptr_equal(ctx, &bed);
    bed.waits++;
    if (bed.is_wait_the_end) {
        longjmp(bed.end, 1);
    }
}

static const struct native_hart_ops ops = {
    .ctx = &bed,
    .read = fake_read,
    .write = fake_write,
    .ticks = fake_ticks,
    .relax = fake_relax,
    .set_enabled = fake_set_enabled,
    .wait = fake_wait,
    .copy = memcpy,
    .move = memmove,
    .fill = memset,
    .compare = memcmp,
};

void arch_main(uint64_t hart)
{
    bed.started_hart = hart;
}

static int new_bed(void **state)
{
    (void)state;
    memset(&bed, 0, sizeof(bed));
    native_ops = &ops;
    return 0;
}

TEST_FIXTURE(new_bed, NULL)

/* What the firmware has recorded before it reset the drive. */
static void take_panic(struct sysctl_panic *panic)
{
    struct sysctl sysctl = {.base = SOC_SYSCTL_BASE};

    assert_true(sysctl_take_panic(&sysctl, panic));
    assert_int_equal(bed.enabled, 0);
    assert_int_equal(bed.waits, 1);
}

static void test_image_says_what_the_machine_checks(void **state)
{
    (void)state;
    assert_int_equal(native_hart_image.magic, NATIVE_HART_MAGIC);
    assert_int_equal(native_hart_image.version, NATIVE_HART_VERSION);
    assert_int_equal(native_hart_image.ops_bytes, sizeof(ops));
    assert_int_equal(native_hart_image.guard_bottom, (uintptr_t)__guard_bottom);
    assert_int_equal(native_hart_image.stack_bottom, arch_stack_bottom());
    assert_int_equal(native_hart_image.stack_top, arch_stack_top());
    assert_ptr_equal(arch_free_memory(), arch_stack_top() + 16);
    assert_int_equal(arch_build_id()[0], 2);
}

static void test_start_clears_the_variables_and_runs_the_program(void **state)
{
    static const uint8_t zeroes[16];

    (void)state;
    native_ops = NULL;
    bed.started_hart = 7;
    native_hart_image.start(&ops);
    assert_memory_equal(__zeroed_start, zeroes, 16);
    assert_int_equal(*__zeroed_end, 0xa5);
    assert_ptr_equal(native_ops, &ops);
    assert_int_equal(bed.started_hart, 0);
}

static void test_registers_are_accessed_in_their_size(void **state)
{
    (void)state;
    mmio_write8(0x100, 0x11);
    mmio_write32(0x104, 0x22222222);
    mmio_write64(0x108, UINT64_C(0x3333333344444444));
    assert_int_equal(bed.sizes[register_at(0x100)], 1);
    assert_int_equal(bed.sizes[register_at(0x104)], 4);
    assert_int_equal(bed.sizes[register_at(0x108)], 8);
    assert_int_equal(mmio_read8(0x100), 0x11);
    assert_int_equal(mmio_read32(0x104), 0x22222222);
    assert_int_equal(mmio_read64(0x108), UINT64_C(0x3333333344444444));
}

static void access_nowhere(bool is_write)
{
    if (is_write) {
        mmio_write32(NOWHERE, 1);
    } else {
        (void)mmio_read32(NOWHERE);
    }
    fail_msg("the firmware goes on");
}

static void expect_fault(bool is_write, uint64_t mcause)
{
    struct sysctl_panic panic;

    new_bed(NULL);
    bed.is_wait_the_end = true;
    if (setjmp(bed.end) == 0) {
        access_nowhere(is_write);
    }
    take_panic(&panic);
    assert_true(panic.is_trap);
    assert_int_equal(panic.mcause, mcause);
    assert_int_equal(panic.mtval, NOWHERE);
    assert_non_null(strstr(bed.console, "value 0x4000"));
}

static void test_access_where_nothing_is_resets_the_drive(void **state)
{
    (void)state;
    expect_fault(false, MCAUSE_LOAD);
    expect_fault(true, MCAUSE_STORE);
}

static void test_trap_is_reported_with_all_that_is_known(void **state)
{
    struct sysctl_panic panic;

    (void)state;
    bed.is_wait_the_end = true;
    if (setjmp(bed.end) == 0) {
        native_hart_image.trap(2, 0x80001234, 0x5678);
    }
    take_panic(&panic);
    assert_true(panic.is_trap);
    assert_int_equal(panic.mcause, 2);
    assert_int_equal(panic.mepc, 0x80001234);
    assert_int_equal(panic.mtval, 0x5678);
    assert_string_equal(bed.console,
                        "\r\npanic: trap 2 at 0x80001234, value 0x5678\r\n");
}

static void test_failed_assertion_keeps_the_end_of_its_file_name(void **state)
{
    static const char file[] =
        "firmware/a/folder/that/is/rather/deep/in/the/tree/of/sources/file.c";
    struct sysctl_panic panic;
    size_t keep = sizeof(panic.file) - 1;

    (void)state;
    bed.is_wait_the_end = true;
    if (setjmp(bed.end) == 0) {
        assert_failed("x > 1", file, 42);
    }
    take_panic(&panic);
    assert_false(panic.is_trap);
    assert_int_equal(panic.line, 42);
    assert_true(strlen(file) > keep);
    assert_string_equal(panic.file, file + strlen(file) - keep);
    assert_non_null(strstr(bed.console, "file.c:42: assertion failed: x > 1"));
}

static void test_time_is_that_of_the_machine_timer(void **state)
{
    (void)state;
    bed.ticks = 12345678;
    assert_int_equal(hal_now_us(), 1234567);
    assert_int_equal(hal_now_ns(), 1234567800);
}

static void test_delay_ends_when_the_time_has_passed(void **state)
{
    (void)state;
    bed.ticks = UINT64_MAX - 2; /* the counter wraps meanwhile */
    hal_delay_us(5);
    assert_int_equal(bed.relaxes, 5);
}

static void test_wait_sets_the_timer_only_when_it_must_come_earlier(
    void **state)
{
    struct hal_wait wait;

    (void)state;
    hal_wait_init(&wait);
    assert_int_equal(bed.enabled, SOFTWARE_TIMER_EXTERNAL);
    bed.ticks = 100 * TICKS_PER_US;
    hal_wait_until(&wait, 200);
    assert_int_equal(bed.waits, 1);
    assert_int_equal(bed.value[register_at(MTIMECMP)], 200 * TICKS_PER_US);
    /* A later deadline does not move it, an earlier one does. */
    hal_wait_until(&wait, 300);
    assert_int_equal(bed.value[register_at(MTIMECMP)], 200 * TICKS_PER_US);
    hal_wait_until(&wait, 150);
    assert_int_equal(bed.value[register_at(MTIMECMP)], 150 * TICKS_PER_US);
    /* It has expired, and is set anew. */
    bed.ticks = 150 * TICKS_PER_US;
    hal_wait_until(&wait, 300);
    assert_int_equal(bed.value[register_at(MTIMECMP)], 300 * TICKS_PER_US);
    assert_int_equal(bed.waits, 4);
    bed.ticks = 300 * TICKS_PER_US;
    hal_wait_until(&wait, UINT64_MAX);
    assert_int_equal(bed.value[register_at(MTIMECMP)], UINT64_MAX);
}
