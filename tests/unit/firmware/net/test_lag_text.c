/* SPDX-License-Identifier: BSD-2-Clause */
/* Link aggregation as the console shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/net/lag_text.h"
#include "tests/test_fixture.h"

static struct log the_log;
static struct drive_lag lag;
static char shown[LOG_RING_BYTES + 1];

uint64_t hal_now_us(void)
{
    return 0;
}

/* The value of a counter tells which one was read. */
uint64_t lag_counter_read(const struct lag *of, enum lag_counter counter)
{
    assert_ptr_equal(of, &lag.lag);
    return 100 + (unsigned int)counter;
}

struct lacp_info lacp_actor(const struct lacp_agent *agent, uint8_t port)
{
    assert_ptr_equal(agent, &lag.lacp);
    return (struct lacp_info){.state = (uint8_t)(0x3c + port)};
}

static int new_lag(void **state)
{
    (void)state;
    memset(&lag, 0, sizeof(lag));
    return 0;
}

TEST_FIXTURE(new_lag, NULL)

static void show_lag(void)
{
    log_init(&the_log, (struct log_sink){0});
    lag_text(&the_log, &lag);
    shown[log_tail(&the_log, shown, LOG_RING_BYTES)] = '\0';
}

static void expect_line(const char *line)
{
    char whole[300];

    log_format(whole, sizeof(whole), "%s\r\n", line);
    if (strstr(shown, whole) == NULL) {
        fail_msg("there is no line \"%s\" in:\n%s", line, shown);
    }
}

static void test_aggregation_that_is_off_has_one_line(void **state)
{
    (void)state;
    show_lag();
    assert_string_equal(shown, "lag: off\r\n");
}

static void test_one_port_is_active_and_the_other_stands_by(void **state)
{
    (void)state;
    lag.mode = CONFIG_LAG_ACTIVE_STANDBY;
    lag.is_up = true;
    lag.links = lag.members = 3;
    lag.active = 1;
    lag.dropped[1] = 9;
    show_lag();
    expect_line("lag: active/standby, up");
    expect_line("port 0: standby");
    expect_line("port 1: active");
    expect_line("port 1: RoCE frames sent: 103; received frames dropped "
                "because the port is not in the aggregate: 101 RoCE, 9 other");
    expect_line("lag: the active port changed 105 times by itself; 104 frames "
                "were dropped because no port could send them");
    assert_null(strstr(shown, "LACP"));
}

static void test_a_port_that_is_not_used_says_why(void **state)
{
    (void)state;
    lag.mode = CONFIG_LAG_ACTIVE_STANDBY;
    lag.links = 2; /* port 1 has a link, and is no member */
    show_lag();
    expect_line("lag: active/standby, down");
    expect_line("port 0: link down");
    expect_line("port 1: not in the aggregate");
}

static void test_lacp_shows_the_partner_that_it_knows(void **state)
{
    struct lacp_port *port = &lag.lacp.ports[1];

    (void)state;
    lag.mode = CONFIG_LAG_LACP;
    lag.links = lag.members = 3;
    lag.lacp.ports[0].rx = LACP_RX_DEFAULTED;
    lag.lacp.ports[0].mux = LACP_MUX_DETACHED;
    port->rx = LACP_RX_CURRENT;
    port->mux = LACP_MUX_WORKING;
    port->partner = (struct lacp_info){
        .system_priority = 32768,
        .system = {{2, 0, 0, 0, 0xab, 0xc}},
        .key = 17,
        .port = 5,
        .state = 0x3d,
    };
    port->counters[LACP_PDUS_RX] = 1;
    port->counters[LACP_PDUS_TX] = 2;
    port->counters[LACP_ILLEGAL_RX] = 3;
    show_lag();
    expect_line("lag: LACP, down");
    expect_line("port 0: active"); /* with LACP, all members are */
    expect_line("port 0: LACP: receive state \"no partner\", mux state "
                "\"detached\", actor flags 3c");
    expect_line("port 1: LACP: receive state \"current\", mux state "
                "\"collecting, distributing\", actor flags 3d");
    expect_line("port 1: LACP partner: system 02:00:00:00:ab:0c, priority "
                "32768, key 17, port 5, flags 3d");
    expect_line("port 1: LACPDUs: 1 received, 2 sent, 3 illegal");
    assert_null(strstr(shown, "port 0: LACP partner"));
}

static void test_each_state_has_a_text(void **state)
{
    static const uint8_t rx[] = {LACP_RX_DISABLED, LACP_RX_EXPIRED,
                                 LACP_RX_DEFAULTED, LACP_RX_CURRENT};
    static const uint8_t mux[] = {LACP_MUX_DETACHED, LACP_MUX_WAITING,
                                  LACP_MUX_ATTACHED, LACP_MUX_COLLECTING,
                                  LACP_MUX_WORKING};
    struct lacp_port port = {0};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(rx); i++) {
        port.rx = rx[i];
        assert_non_null(lag_receive_text(&port));
        assert_true(lag_receive_text(&port)[0] != '\0');
    }
    for (unsigned int i = 0; i < ARRAY_LEN(mux); i++) {
        port.mux = mux[i];
        assert_non_null(lag_mux_text(&port));
        assert_true(lag_mux_text(&port)[0] != '\0');
    }
}
