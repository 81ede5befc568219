/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/console/console_commands.h"

#include <string.h>

#include "firmware/console/console.h"
#include "firmware/console/console_ana.h"
#include "firmware/console/console_config.h"
#include "firmware/console/console_hosts.h"
#include "firmware/echo/echo.h"
#include "firmware/net/drive_net.h"
#include "firmware/net/lag_text.h"
#include "firmware/requests/parts.h"
#include "firmware/requests/pools_text.h"
#include "firmware/services/services.h"
#include "firmware/settings/settings.h"
#include "firmware/telemetry/telemetry.h"
#include "firmware/text/ip_text.h"
#include "firmware/text/neighbour_text.h"
#include "hw-model/regs/port_names.h"

#define say(console, ...) log_text((console)->log, __VA_ARGS__)

/* "0" or "1". */
static bool parse_port(struct console *console, const char *word, uint8_t *port)
{
    if (word[0] < '0' || word[0] >= '0' + NET_PORTS || word[1] != '\0') {
        say(console, "error: there is no port %s; the ports are 0 and 1", word);
        return false;
    }
    *port = (uint8_t)(word[0] - '0');
    return true;
}

static void say_result(struct console *console, enum settings_result result)
{
    static const char *const text[] = {
        [SETTINGS_OK] = "ok",
        [SETTINGS_INVALID] = "error: the ports do not support this setting",
        [SETTINGS_NOT_SAVED] = "error: writing to flash failed",
        [SETTINGS_TOO_OFTEN] =
            "error: too many writes to flash: try again in an hour",
    };

    say(console, "%s", text[result]);
}

/* ---- Commands */

static void run_port(struct console *console, char **words, unsigned int count)
{
    const struct request_parts *parts = console->parts;
    uint8_t only = NET_PORTS;

    if (count == 2 && !parse_port(console, words[1], &only)) {
        return;
    }
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        const struct config_port *port = &parts->settings->in_force.port[i];
        struct port_link link;

        if (only != NET_PORTS && only != i) {
            continue;
        }
        drive_net_link(parts->net, i, &link);
        say(console, "port %u: %s%s%s, %u Gb/s, FEC %s (saved: %s)", i,
            link.is_up ? "up" : "down", link.is_up ? "" : ": ",
            port_reason_name[link.reason], port->speed_gbps,
            settings_fec_name(port->fec),
            settings_fec_name(parts->settings->saved.port[i].fec));
    }
}

static void run_fec(struct console *console, char **words, unsigned int count)
{
    enum config_fec fec;
    uint8_t port;

    if (!parse_port(console, words[1], &port)) {
        return;
    }
    if (count == 2) {
        say(console, "%s",
            settings_fec_name(
                console->parts->settings->in_force.port[port].fec));
        return;
    }
    if (!settings_fec_parse(words[2], &fec)) {
        say(console, "error: there is no FEC %s; choose none, fc or rs",
            words[2]);
        return;
    }
    say_result(console,
               settings_set_fec(console->parts->settings, port, fec, true));
}

static void run_speed(struct console *console, char **words, unsigned int count)
{
    bool is_10g = strcmp(words[1], "10") == 0;

    (void)count;
    if (!is_10g && strcmp(words[1], "25") != 0) {
        say(console, "error: there is no speed %s; choose 10 or 25", words[1]);
        return;
    }
    say_result(console, settings_set_speed(console->parts->settings,
                                           is_10g ? 10 : 25, true));
}

static void run_counters(struct console *console, char **words,
                         unsigned int count)
{
    uint8_t port;

    (void)count;
    if (!parse_port(console, words[1], &port)) {
        return;
    }
    for (unsigned int i = 0; i < PORT_COUNTERS; i++) {
        uint64_t value =
            drive_net_counter(console->parts->net, port, (enum port_counter)i);

        if (value != 0) {
            say(console, "%-28s %lu", port_counter_name[i],
                (unsigned long)value);
        }
    }
}

static void run_config(struct console *console, char **words,
                       unsigned int count)
{
    console_config(console->log, console->parts->settings, words, count);
}

static void run_host(struct console *console, char **words, unsigned int count)
{
    console_hosts(console->log, console->parts->hosts, words, count);
}

static void run_ana(struct console *console, char **words, unsigned int count)
{
    console_ana(console->log, console->parts->target, words, count,
                *console->parts->now_us);
}

static void run_addresses(struct console *console, char **words,
                          unsigned int count)
{
    static const char *const text[ADDRESS_STATES] = {
        [ADDRESS_UNUSED] = "",
        [ADDRESS_DOWN] = "the link is down",
        [ADDRESS_TENTATIVE] = "being checked for duplicates",
        [ADDRESS_OPTIMISTIC] = "in use, being checked for duplicates",
        [ADDRESS_ANNOUNCING] = "in use",
        [ADDRESS_READY] = "in use",
        [ADDRESS_DUPLICATE] = "another station has it",
    };
    const struct net_stack *stack = &console->parts->net->stack;

    (void)words;
    (void)count;
    for (uint8_t i = 0; i < NET_ADDRESSES; i++) {
        const struct net_address_config *own = net_stack_address(stack, i);

        if (stack->addresses[i].state != ADDRESS_UNUSED) {
            say(console, "port %u: %s/%u: %s", own->port,
                ip_text(&own->ip).text, own->prefix_bits,
                text[stack->addresses[i].state]);
        }
    }
}

static void run_neighbours(struct console *console, char **words,
                           unsigned int count)
{
    const struct services *services = console->parts->services;
    uint8_t only = NET_PORTS;

    if (count == 2 && !parse_port(console, words[1], &only)) {
        return;
    }
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (only == NET_PORTS || only == i) {
            neighbour_text_say(console->log, &services->lldp, i,
                               services->now_us);
        }
    }
}

static void say_echo(struct console *console)
{
    const struct echo *echo = console->parts->echo;
    const struct {
        const char *name;
        uint64_t value;
    } lines[] = {
        {"connections", echo->counters.connections},
        {"refused", echo->counters.refused},
        {"messages", echo->counters.messages},
        {"pings", echo->counters.pings},
        {"ping-bytes", echo->counters.ping_bytes},
        {"bad", echo->counters.bad},
        {"failed", echo->counters.failed},
        {"timeouts", echo->counters.timeouts},
    };

    say(console, "echo: %s, port %u, %u of %u connections",
        echo->is_on ? "on" : "off", ECHO_SERVICE_PORT, echo_conns_used(echo),
        ECHO_CONNS);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        say(console, "echo: %-12s %lu", lines[i].name,
            (unsigned long)lines[i].value);
    }
}

static void run_echo(struct console *console, char **words, unsigned int count)
{
    bool is_on = count == 2 && strcmp(words[1], "on") == 0;

    if (count == 1) {
        say_echo(console);
        return;
    }
    if (!is_on && strcmp(words[1], "off") != 0) {
        say(console, "error: echo takes on or off, not %s", words[1]);
        return;
    }
    if (!echo_switch(console->parts->echo, is_on)) {
        say(console, "error: the connection manager has no listener left");
        return;
    }
    say(console, "ok");
}

static void run_shutdown(struct console *console, char **words,
                         unsigned int count)
{
    (void)words;
    (void)count;
    console->parts->stop(console->parts->ctx);
    say(console, "ok: the drive can be switched off now");
}

static void run_lag(struct console *console, char **words, unsigned int count)
{
    (void)words;
    (void)count;
    lag_text(console->log, &console->parts->net->lag);
}

static void run_pools(struct console *console, char **words, unsigned int count)
{
    (void)words;
    (void)count;
    pools_text(console->parts);
}

static void run_crash(struct console *console, char **words, unsigned int count)
{
    struct telemetry *telemetry = console->parts->telemetry;
    enum crash_cause cause;

    if (count == 2 && telemetry->crashes.provoke != NULL) {
        if (!crash_cause_parse(words[1], &cause)) {
            say(console, "error: choose assertion, trap or watchdog, not %s",
                words[1]);
            return;
        }
        telemetry->crashes.provoke(cause);
    }
    if (telemetry->crash_scratch != NULL) {
        crash_print(console->log, &telemetry->crashes,
                    telemetry->crash_scratch);
    }
}

static void run_i2c(struct console *console, char **words, unsigned int count)
{
    console_i2c(&console->i2c, console->log, console->parts->buses, words,
                count);
}

static void run_phy(struct console *console, char **words, unsigned int count)
{
    console_phy(&console->phy, console->log, console->parts->buses, words,
                count);
}

static void run_help(struct console *console, char **words, unsigned int count);

const struct console_command console_commands[CONSOLE_COMMANDS] = {
    {"help", "", "print this list", 1, 1, run_help},
    {"port", "[PORT]", "print link, speed, FEC, and why a link is down", 1, 2,
     run_port},
    {"fec", "PORT [none|fc|rs]", "print, or set and save, a port's FEC", 2, 3,
     run_fec},
    {"speed", "10|25", "set and save the speed of both ports", 2, 2, run_speed},
    {"counters", "PORT", "print the port's counters that are not 0", 2, 2,
     run_counters},
    {"addresses", "", "print the drive's own addresses and their states", 1, 1,
     run_addresses},
    {"neighbours", "[PORT]", "print the LLDP neighbours of the ports", 1, 2,
     run_neighbours},
    {"lag", "", "print link aggregation: members and LACP partner", 1, 1,
     run_lag},
    {"pools", "", "print how much of each pool is in use", 1, 1, run_pools},
    {"crash", "[CAUSE]", "print why the firmware crashed, or crash it", 1, 2,
     run_crash},
    {"echo", "[on|off]", "print or switch the diagnostic echo service", 1, 2,
     run_echo},
    {"config", "[get|set|...]",
     "print or change settings: docs/configuration.md", 1, 4, run_config},
    {"ana", "[GROUP PORT STATE]",
     "print or set how namespaces are reached: docs/nvme.md", 1, 5, run_ana},
    {"i2c", "scan|read|write...",
     "talk to a device on an I2C bus: docs/console.md", 3, 6, run_i2c},
    {"phy", "[PORT [REGISTER]]", "print what the ports' PHYs say on MDIO", 1, 3,
     run_phy},
    {"host", "[add|remove|...]",
     "print or change who may connect: docs/console.md", 1, 5, run_host},
    {"shutdown", "", "prepare for power-off: tell the network, save", 1, 1,
     run_shutdown},
};

static void run_help(struct console *console, char **words, unsigned int count)
{
    (void)words;
    (void)count;
    for (size_t i = 0; i < CONSOLE_COMMANDS; i++) {
        say(console, "%-11s%-19s%s", console_commands[i].name,
            console_commands[i].arguments, console_commands[i].help);
    }
}
