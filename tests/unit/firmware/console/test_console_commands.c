/* SPDX-License-Identifier: BSD-2-Clause */
/* What the console's commands print and change.  The test plays the parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/console/console.h"
#include "firmware/console/console_ana.h"
#include "firmware/console/console_commands.h"
#include "firmware/console/console_config.h"
#include "firmware/console/console_hosts.h"
#include "firmware/echo/echo.h"
#include "firmware/hal/time.h"
#include "firmware/net/drive_net.h"
#include "firmware/net/lag_text.h"
#include "firmware/requests/parts.h"
#include "firmware/requests/pools_text.h"
#include "firmware/services/services.h"
#include "firmware/settings/settings.h"
#include "firmware/telemetry/telemetry.h"
#include "firmware/text/neighbour_text.h"
#include "hw-model/regs/port_names.h"
#include "tests/test_fixture.h"

static struct {
    struct log log;
    struct console console;
    struct request_parts parts;
    struct settings settings;
    struct drive_net net;
    struct telemetry telemetry;
    struct services services;
    struct echo echo;
    struct host_table hosts;
    char shown[LOG_RING_BYTES + 1];
    unsigned int sets, stops, provocations, passed;
    bool echo_is_refused;
    uint8_t port, gbps;
    enum config_fec fec;
    enum settings_result result;
    enum crash_cause cause;
} world;

uint64_t hal_now_us(void)
{
    return 0;
}

/* ---- The parts. */

enum settings_result settings_set_fec(struct settings *settings, uint8_t port,
                                      enum config_fec fec, bool save)
{
    assert_ptr_equal(settings, &world.settings);
    assert_true(save);
    world.sets++;
    world.port = port;
    world.fec = fec;
    return world.result;
}

enum settings_result settings_set_speed(struct settings *settings, uint8_t gbps,
                                        bool save)
{
    assert_ptr_equal(settings, &world.settings);
    assert_true(save);
    world.sets++;
    world.gbps = gbps;
    return world.result;
}

const char *settings_fec_name(enum config_fec fec)
{
    static const char *const names[] = {"none", "fc", "rs"};

    return names[fec];
}

bool settings_fec_parse(const char *name, enum config_fec *fec)
{
    *fec = CONFIG_FEC_RS;
    return strcmp(name, "rs") == 0;
}

void drive_net_link(const struct drive_net *net, uint8_t port,
                    struct port_link *link)
{
    assert_ptr_equal(net, &world.net);
    *link = (struct port_link){
        .is_up = port == 0, .reason = port == 0 ? 0 : PORT_REASON_NO_PARTNER};
}

uint64_t drive_net_counter(const struct drive_net *net, uint8_t port,
                           enum port_counter counter)
{
    assert_ptr_equal(net, &world.net);
    return port == 1 && (unsigned int)counter < 2 ? 7u + (unsigned int)counter
                                                  : 0;
}

bool echo_switch(struct echo *echo, bool is_on)
{
    assert_ptr_equal(echo, &world.echo);
    if (world.echo_is_refused) {
        return false;
    }
    echo->is_on = is_on;
    return true;
}

unsigned int echo_conns_used(const struct echo *echo)
{
    assert_ptr_equal(echo, &world.echo);
    return 2;
}

bool crash_cause_parse(const char *name, enum crash_cause *cause)
{
    *cause = CRASH_TRAP;
    return strcmp(name, "trap") == 0;
}

void crash_print(struct log *log, const struct crash_store *store, uint8_t *buf)
{
    (void)buf;
    assert_ptr_equal(store, &world.telemetry.crashes);
    log_text(log, "crashes");
}

void neighbour_text_say(struct log *log, const struct lldp_agent *agent,
                        uint8_t port, uint64_t now_us)
{
    assert_ptr_equal(agent, &world.services.lldp);
    assert_int_equal(now_us, 4711);
    log_text(log, "neighbours of %u", port);
}

/* ---- Commands that have files and tests of their own. */

static void pass_on(struct log *log, const char *name, unsigned int count)
{
    world.passed++;
    log_text(log, "%s of %u words", name, count);
}

void console_config(struct log *log, struct settings *settings, char **words,
                    unsigned int count)
{
    (void)words;
    assert_ptr_equal(settings, &world.settings);
    pass_on(log, "config", count);
}

void console_hosts(struct log *log, struct host_table *table, char **words,
                   unsigned int count)
{
    (void)words;
    assert_ptr_equal(table, &world.hosts);
    pass_on(log, "host", count);
}

void console_ana(struct log *log, struct nvmf_target *target, char **words,
                 unsigned int count, uint64_t now_us)
{
    (void)target;
    (void)words;
    assert_int_equal(now_us, 77);
    pass_on(log, "ana", count);
}

void console_i2c(struct console_i2c *console, struct log *log,
                 struct i2c *buses, char **words, unsigned int count)
{
    (void)buses;
    (void)words;
    assert_ptr_equal(console, &world.console.i2c);
    pass_on(log, "i2c", count);
}

void console_phy(struct console_phy *console, struct log *log,
                 struct i2c *buses, char **words, unsigned int count)
{
    (void)buses;
    (void)words;
    assert_ptr_equal(console, &world.console.phy);
    pass_on(log, "phy", count);
}

void lag_text(struct log *log, const struct drive_lag *lag)
{
    assert_ptr_equal(lag, &world.net.lag);
    pass_on(log, "lag", 1);
}

void pools_text(const struct request_parts *parts)
{
    assert_ptr_equal(parts, &world.parts);
    pass_on(&world.log, "pools", 1);
}

/* ---- Beds. */

static void stop_drive(void *ctx)
{
    assert_ptr_equal(ctx, &world);
    world.stops++;
}

static void provoke_crash(enum crash_cause cause)
{
    world.provocations++;
    world.cause = cause;
}

static int new_world(void **state)
{
    static const uint64_t now_us = 77;

    (void)state;
    memset(&world, 0, sizeof(world));
    world.services.now_us = 4711;
    world.parts = (struct request_parts){
        .log = &world.log,
        .settings = &world.settings,
        .hosts = &world.hosts,
        .net = &world.net,
        .services = &world.services,
        .telemetry = &world.telemetry,
        .echo = &world.echo,
        .now_us = &now_us,
        .stop = stop_drive,
        .ctx = &world,
    };
    world.console = (struct console){.log = &world.log, .parts = &world.parts};
    return 0;
}

TEST_FIXTURE(new_world, NULL)

/* Run the command of a line.  world.shown is what it prints. */
static void run_command(const char *text)
{
    char line[100], *words[8] = {0};
    unsigned int count = 0;
    bool is_known = false;

    log_init(&world.log, (struct log_sink){0});
    log_format(line, sizeof(line), "%s", text);
    for (char *at = line; at != NULL; at = strchr(at, ' ')) {
        while (*at == ' ') {
            *at++ = '\0';
        }
        words[count++] = at;
    }
    for (size_t i = 0; i < CONSOLE_COMMANDS; i++) {
        if (strcmp(console_commands[i].name, words[0]) == 0) {
            is_known = true;
            assert_in_range(count, console_commands[i].words_min,
                            console_commands[i].words_max);
            console_commands[i].run(&world.console, words, count);
        }
    }
    assert_true(is_known);
    world.shown[log_tail(&world.log, world.shown, LOG_RING_BYTES)] = '\0';
}

static void expect_answer(const char *line, const char *answer)
{
    run_command(line);
    assert_string_equal(world.shown, answer);
}

static void test_help_names_each_command(void **state)
{
    char first[80];

    (void)state;
    run_command("help");
    log_format(first, sizeof(first), "%-11s%-19sprint this list\r\n", "help",
               "");
    assert_memory_equal(world.shown, first, strlen(first));
    for (size_t i = 0; i < CONSOLE_COMMANDS; i++) {
        log_format(first, sizeof(first), "%-11s%-19s", console_commands[i].name,
                   console_commands[i].arguments);
        assert_non_null(strstr(world.shown, first));
    }
}

static void test_ports_are_printed_with_why_their_link_is_down(void **state)
{
    char line[120];

    (void)state;
    for (unsigned int i = 0; i < NET_PORTS; i++) {
        world.settings.in_force.port[i].speed_gbps = 25;
        world.settings.in_force.port[i].fec = CONFIG_FEC_RS;
    }
    expect_answer("port 0", "port 0: up, 25 Gb/s, FEC rs (saved: none)\r\n");
    log_format(line, sizeof(line),
               "port 1: down: %s, 25 Gb/s, FEC rs (saved: none)\r\n",
               port_reason_name[PORT_REASON_NO_PARTNER]);
    expect_answer("port 1", line);
    run_command("port");
    assert_non_null(strstr(world.shown, "port 0: up"));
    assert_non_null(strstr(world.shown, "\r\nport 1: down"));
}

static void test_commands_with_files_of_their_own_get_their_words(void **state)
{
    (void)state;
    expect_answer("config get mtu", "config of 3 words\r\n");
    expect_answer("host", "host of 1 words\r\n");
    expect_answer("ana 1 0 optimized", "ana of 4 words\r\n");
    expect_answer("i2c scan 1", "i2c of 3 words\r\n");
    expect_answer("phy 0", "phy of 2 words\r\n");
    expect_answer("lag", "lag of 1 words\r\n");
    expect_answer("pools", "pools of 1 words\r\n");
    assert_int_equal(world.passed, 7);
}

static void test_neighbours_are_those_of_one_port_or_of_both(void **state)
{
    (void)state;
    expect_answer("neighbours 1", "neighbours of 1\r\n");
    expect_answer("neighbours", "neighbours of 0\r\nneighbours of 1\r\n");
}

static void test_the_echo_service_is_switched_and_counted(void **state)
{
    (void)state;
    expect_answer("echo on", "ok\r\n");
    assert_true(world.echo.is_on);
    world.echo.counters.pings = 12;
    run_command("echo");
    assert_non_null(strstr(world.shown, "echo: on, port "));
    assert_non_null(strstr(world.shown, ", 2 of "));
    assert_non_null(strstr(world.shown, "\r\necho: pings        12\r\n"));
    expect_answer("echo maybe", "error: echo takes on or off, not maybe\r\n");
    world.echo_is_refused = true;
    expect_answer("echo off", "error: the connection manager has no listener "
                              "left\r\n");
    assert_true(world.echo.is_on);
}

static void test_fec_is_printed_and_set_for_one_port(void **state)
{
    (void)state;
    world.settings.in_force.port[1].fec = CONFIG_FEC_FC;
    expect_answer("fec 1", "fc\r\n");
    assert_int_equal(world.sets, 0);
    expect_answer("fec 1 rs", "ok\r\n");
    assert_int_equal(world.sets, 1);
    assert_int_equal(world.port, 1);
    assert_int_equal(world.fec, CONFIG_FEC_RS);
    expect_answer("fec 1 base",
                  "error: there is no FEC base; choose none, fc or rs\r\n");
    expect_answer("fec 2 rs",
                  "error: there is no port 2; the ports are 0 and 1\r\n");
    expect_answer("fec 11",
                  "error: there is no port 11; the ports are 0 and 1\r\n");
    assert_int_equal(world.sets, 1);
}

static void test_what_settings_refuse_is_said(void **state)
{
    (void)state;
    world.result = SETTINGS_INVALID;
    expect_answer("speed 10",
                  "error: the ports do not support this setting\r\n");
    world.result = SETTINGS_NOT_SAVED;
    expect_answer("speed 10", "error: writing to flash failed\r\n");
    world.result = SETTINGS_TOO_OFTEN;
    expect_answer("speed 10", "error: too many writes to flash: try again in "
                              "an hour\r\n");
    expect_answer("speed 40",
                  "error: there is no speed 40; choose 10 or 25\r\n");
    assert_int_equal(world.sets, 3);
}

static void test_counters_that_are_0_are_not_printed(void **state)
{
    char answer[200];

    (void)state;
    expect_answer("counters 0", "");
    log_format(answer, sizeof(answer), "%-28s 7\r\n%-28s 8\r\n",
               port_counter_name[0], port_counter_name[1]);
    expect_answer("counters 1", answer);
}

static void test_addresses_are_printed_with_their_states(void **state)
{
    struct net_stack *stack = &world.net.stack;

    (void)state;
    expect_answer("addresses", "");
    stack->addresses[0].state = ADDRESS_READY;
    stack->addresses[0].config = (struct net_address_config){
        .ip = ip_addr_from_v4(0x0a000001), .prefix_bits = 24};
    stack->addresses[2].state = ADDRESS_DUPLICATE;
    stack->addresses[2].config = (struct net_address_config){
        .ip = ip_addr_from_v4(0x0a000101), .port = 1, .prefix_bits = 16};
    expect_answer("addresses",
                  "port 0: 10.0.0.1/24: in use\r\n"
                  "port 1: 10.0.1.1/16: another station has it\r\n");
}

static void test_shutdown_stops_the_drive(void **state)
{
    (void)state;
    expect_answer("shutdown", "ok: the drive can be switched off now\r\n");
    assert_int_equal(world.stops, 1);
}

static void test_a_crash_is_provoked_by_its_name_where_that_is_possible(
    void **state)
{
    (void)state;
    expect_answer("crash trap", "");
    assert_int_equal(world.provocations, 0);
    world.telemetry.crashes.provoke = provoke_crash;
    expect_answer("crash memory", "error: choose assertion, trap or watchdog, "
                                  "not memory\r\n");
    expect_answer("crash", "");
    assert_int_equal(world.provocations, 0);
    expect_answer("crash trap", "");
    assert_int_equal(world.provocations, 1);
    assert_int_equal(world.cause, CRASH_TRAP);
}
