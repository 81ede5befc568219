/* SPDX-License-Identifier: BSD-2-Clause */
/* The watchdog while the computer runs, delays and stops the emulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "hw-model/watchdog/hw_watchdog.h"
#include "tests/test_fixture.h"
#include "tests/unit/hw-model/test_env.h"

#define MS_NS     UINT64_C(1000000)
#define S_NS      UINT64_C(1000000000)
#define PERIOD_NS (4 * S_NS)

enum { TICK_NS = 1000, PERIOD_TICKS = 4000000, INTEN = 1, RESEN = 2 };

static struct {
    struct test_env env;
    struct hw_watchdog watchdog;
    unsigned int bites;
    bool is_starved;
} bed;

static bool could_run(void *ctx)
{
    (void)ctx;
    return !bed.is_starved;
}

static void note_bite(void *ctx)
{
    (void)ctx;
    bed.bites++;
}

static int new_bed(void **state)
{
    (void)state;
    memset(&bed, 0, sizeof(bed));
    hw_watchdog_init(&bed.watchdog, &(struct hw_watchdog_config){
                                        .env = test_env_init(&bed.env, NULL, 0),
                                        .tick_ns = TICK_NS,
                                        .could_run = could_run,
                                        .bite = note_bite,
                                    });
    bed.env.now_ns = 77 * S_NS;
    hw_watchdog_reset(&bed.watchdog);
    return 0;
}

static uint32_t get_reg(uint32_t offset)
{
    uint32_t value;

    assert_true(hw_watchdog_read(&bed.watchdog, offset, &value));
    return value;
}

static void set_reg(uint32_t offset, uint32_t value)
{
    assert_true(hw_watchdog_write(&bed.watchdog, offset, value));
}

static void start_watchdog(void)
{
    set_reg(A_WDOG_LOAD, PERIOD_TICKS);
    set_reg(A_WDOG_CONTROL, INTEN | RESEN);
}

/*
 * Let time pass.  The main loop comes late by `late_ns` each time.
 * @return how long the time really was
 */
static uint64_t pass_time(uint64_t time_ns, uint64_t late_ns)
{
    uint64_t start_ns = bed.env.now_ns;
    uint64_t end_ns = start_ns + time_ns;

    while (bed.env.deadline_ns <= end_ns && bed.bites == 0) {
        bed.env.now_ns = MAX(bed.env.now_ns, bed.env.deadline_ns) + late_ns;
        hw_watchdog_timer(&bed.watchdog);
    }
    bed.env.now_ns = MAX(bed.env.now_ns, end_ns);
    return bed.env.now_ns - start_ns;
}

/* The emulator is stopped; then the main loop serves the timer once. */
static void stop_emulator(uint64_t time_ns)
{
    bed.env.now_ns += time_ns;
    if (bed.env.deadline_ns <= bed.env.now_ns) {
        hw_watchdog_timer(&bed.watchdog);
    }
}

static void test_hart_that_hangs_is_caught_in_time(void **state)
{
    (void)state;
    start_watchdog();
    pass_time(PERIOD_NS - 1, 0);
    assert_false(bed.env.irq);
    pass_time(1, 0);
    assert_true(bed.env.irq);
    assert_int_equal(get_reg(A_WDOG_RIS), 1);
    pass_time(PERIOD_NS - 1, 0);
    assert_int_equal(bed.bites, 0);
    pass_time(1, 0);
    assert_int_equal(bed.bites, 1);
}

/* Lateness of an ordinary busy computer does not put the bite off. */
static void test_small_delays_count_in_full(void **state)
{
    (void)state;
    start_watchdog();
    pass_time(PERIOD_NS, 60 * MS_NS);
    assert_true(bed.env.irq);
}

static void test_serving_it_starts_the_time_again(void **state)
{
    (void)state;
    start_watchdog();
    for (unsigned int i = 0; i < 10; i++) {
        pass_time(PERIOD_NS - MS_NS, 0);
        set_reg(A_WDOG_INTCLR, 1);
    }
    assert_false(bed.env.irq);
    assert_int_equal(get_reg(A_WDOG_VALUE), PERIOD_TICKS);
}

static void test_pause_of_the_emulator_counts_as_100_ms(void **state)
{
    const uint64_t pauses_ns[] = {300 * MS_NS, 3 * S_NS, 30 * S_NS,
                                  3600 * S_NS};

    (void)state;
    start_watchdog();
    for (unsigned int i = 0; i < ARRAY_LEN(pauses_ns); i++) {
        uint32_t before = get_reg(A_WDOG_VALUE);

        stop_emulator(pauses_ns[i]);
        assert_true(before - get_reg(A_WDOG_VALUE) <= 200000);
        assert_false(bed.env.irq);
    }
}

/* Firmware that runs for 1 ms after each pause and never serves it is caught.
 */
static void test_hang_between_pauses_is_caught(void **state)
{
    (void)state;
    start_watchdog();
    for (unsigned int i = 0; i < 40 && !bed.env.irq; i++) {
        stop_emulator(3 * S_NS);
        pass_time(MS_NS, 0);
    }
    assert_true(bed.env.irq);
}

static void test_pause_between_the_two_expiries_does_not_bite(void **state)
{
    (void)state;
    start_watchdog();
    pass_time(PERIOD_NS, 0);
    assert_true(bed.env.irq);
    stop_emulator(30 * S_NS);
    assert_int_equal(bed.bites, 0);
    set_reg(A_WDOG_INTCLR, 1);
    assert_false(bed.env.irq);
}

static void test_hart_that_cannot_run_is_never_bitten(void **state)
{
    (void)state;
    start_watchdog();
    pass_time(PERIOD_NS - MS_NS, 0);
    bed.is_starved = true;
    pass_time(60 * S_NS, 0);
    assert_false(bed.env.irq);
    bed.is_starved = false;
    pass_time(S_NS, 0);
    assert_true(bed.env.irq);
}

static void test_value_counts_down_and_stops_with_the_counter(void **state)
{
    (void)state;
    start_watchdog();
    bed.env.now_ns += 30 * MS_NS;
    assert_int_equal(get_reg(A_WDOG_VALUE), PERIOD_TICKS - 30000);
    set_reg(A_WDOG_CONTROL, 0);
    assert_int_equal(get_reg(A_WDOG_VALUE), PERIOD_TICKS);
    assert_true(bed.env.deadline_ns == DEV_NO_DEADLINE);
    bed.env.now_ns += S_NS;
    assert_int_equal(get_reg(A_WDOG_VALUE), PERIOD_TICKS);
}

static void test_expiry_at_once_resets_the_machine_soon(void **state)
{
    (void)state;
    start_watchdog();
    pass_time(PERIOD_NS, 0);
    set_reg(A_WDOG_LOAD, 1);
    pass_time(MS_NS, 10000);
    assert_int_equal(bed.bites, 1);
}

static void test_without_resen_it_only_interrupts(void **state)
{
    (void)state;
    set_reg(A_WDOG_LOAD, PERIOD_TICKS);
    set_reg(A_WDOG_CONTROL, INTEN);
    pass_time(10 * PERIOD_NS, 0);
    assert_true(bed.env.irq);
    assert_int_equal(get_reg(A_WDOG_MIS), 1);
    assert_int_equal(bed.bites, 0);
}

static void test_locked_registers_refuse_writes(void **state)
{
    (void)state;
    start_watchdog();
    set_reg(A_WDOG_LOCK, 0);
    assert_int_equal(get_reg(A_WDOG_LOCK), 1);
    assert_false(hw_watchdog_write(&bed.watchdog, A_WDOG_CONTROL, 0));
    assert_int_equal(get_reg(A_WDOG_CONTROL), INTEN | RESEN);
    set_reg(A_WDOG_LOCK, WDOG_UNLOCK_VALUE);
    set_reg(A_WDOG_CONTROL, 0);
}

static void test_other_offsets_and_directions_are_refused(void **state)
{
    uint32_t value = 7;

    (void)state;
    assert_false(hw_watchdog_read(&bed.watchdog, A_WDOG_INTCLR, &value));
    assert_int_equal(value, 0);
    assert_false(hw_watchdog_read(&bed.watchdog, 0x018, &value));
    assert_false(hw_watchdog_read(&bed.watchdog, 0x1000, &value));
    assert_false(hw_watchdog_write(&bed.watchdog, A_WDOG_VALUE, 1));
    assert_int_equal(get_reg(A_WDOG_PID4), 0x04);
    assert_int_equal(get_reg(A_WDOG_CID3), 0xb1);
}

static void test_reset_stops_it(void **state)
{
    (void)state;
    start_watchdog();
    pass_time(PERIOD_NS, 0);
    hw_watchdog_reset(&bed.watchdog);
    assert_false(bed.env.irq);
    assert_true(bed.env.deadline_ns == DEV_NO_DEADLINE);
    assert_int_equal(get_reg(A_WDOG_LOAD), 0xffffffff);
}

static void test_loaded_state_drives_timer_and_interrupt(void **state)
{
    struct hw_watchdog_state saved;

    (void)state;
    start_watchdog();
    pass_time(PERIOD_NS, 0);
    saved = bed.watchdog.state;
    hw_watchdog_reset(&bed.watchdog);
    bed.watchdog.state = saved;
    hw_watchdog_loaded(&bed.watchdog);
    assert_true(bed.env.irq);
    pass_time(PERIOD_NS, 0);
    assert_int_equal(bed.bites, 1);
}

TEST_FIXTURE(new_bed, NULL)
