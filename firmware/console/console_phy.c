/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/console/console_phy.h"

#include <string.h>

#include "firmware/text/number_text.h"
#include "lib/regfields.h"
#include "hw-model/regs/phy.h"
#include "hw-model/regs/soc.h"

enum {
    REGISTER_22_MAX = 31,
    DEVICE_MAX = 31,
    REGISTER_45_MAX = 0xffff,
};

#define say(console, ...) log_text((console)->log, __VA_ARGS__)

/* What is read for a summary.  The link bit is read twice, because the first
 * read shows whether the link has been down since the read before. */
enum summary_value {
    VALUE_ID_1,
    VALUE_ID_2,
    VALUE_CONTROL,
    VALUE_SIGNAL,
    VALUE_LOCK,
    VALUE_LINK_BEFORE,
    VALUE_LINK,
};

static const struct {
    uint8_t device;
    uint16_t reg;
} summary[CONSOLE_PHY_READS] = {
    [VALUE_ID_1] = {MDIO_CLAUSE22, PHY_ID_REG_1},
    [VALUE_ID_2] = {MDIO_CLAUSE22, PHY_ID_REG_2},
    [VALUE_CONTROL] = {PHY_MMD_PMA, PHY_CONTROL_1},
    [VALUE_SIGNAL] = {PHY_MMD_PMA, PHY_PMA_SIGNAL},
    [VALUE_LOCK] = {PHY_MMD_PCS, PHY_PCS_STATUS_R},
    [VALUE_LINK_BEFORE] = {MDIO_CLAUSE22, PHY_STATUS_1},
    [VALUE_LINK] = {MDIO_CLAUSE22, PHY_STATUS_1},
};

static void submit_read(struct console_phy *console, uint8_t device,
                        uint16_t reg,
                        void (*done)(void *ctx, struct mdio_read *read,
                                     uint16_t value))
{
    struct mdio_read *read = &console->read;

    console->is_busy = true;
    read->phy = PHY_MDIO_ADDR;
    read->device = device;
    read->reg = reg;
    read->done = done;
    read->ctx = console;
    mdio_submit(&console->buses[console->port], read);
}

/* ---- Summary. */

static void say_summary(const struct console_phy *console)
{
    const uint16_t *value = console->value;
    uint32_t speed = FIELD_GET(value[VALUE_CONTROL], PHY_CONTROL_1, SPEED);
    bool is_up = FIELD_GET(value[VALUE_LINK], PHY_STATUS_1, LINK);
    bool was_down = !FIELD_GET(value[VALUE_LINK_BEFORE], PHY_STATUS_1, LINK);

    if (value[VALUE_ID_1] == MDIO_NO_ANSWER) {
        say(console, "port %u: no PHY answers", console->port);
        return;
    }
    say(console,
        "port %u: PHY %04x %04x, %s Gb/s%s, signal %s, lock %s, link %s%s",
        console->port, value[VALUE_ID_1], value[VALUE_ID_2],
        speed == PHY_SPEED_25G_PMA ? "25" : "10",
        FIELD_GET(value[VALUE_CONTROL], PHY_CONTROL_1, OFF) ? ", off" : "",
        FIELD_GET(value[VALUE_SIGNAL], PHY_PMA_SIGNAL, DETECTED) ? "yes" : "no",
        FIELD_GET(value[VALUE_LOCK], PHY_PCS_STATUS_R, LOCK) ? "yes" : "no",
        is_up ? "up" : "down", is_up && was_down ? " (has been down)" : "");
}

/* Go on with the next register, then with the next port. */
static void end_summary_read(void *ctx, struct mdio_read *read, uint16_t value)
{
    struct console_phy *console = ctx;

    (void)read;
    console->is_busy = false;
    console->value[console->reads++] = value;
    if (console->reads == CONSOLE_PHY_READS) {
        say_summary(console);
        if (console->port == console->last_port) {
            return;
        }
        console->port++;
        console->reads = 0;
    }
    submit_read(console, summary[console->reads].device,
                summary[console->reads].reg, end_summary_read);
}

static void start_summary(struct console_phy *console)
{
    console->reads = 0;
    submit_read(console, summary[0].device, summary[0].reg, end_summary_read);
}

/* ---- One register. */

static void end_register(void *ctx, struct mdio_read *read, uint16_t value)
{
    struct console_phy *console = ctx;

    (void)read;
    console->is_busy = false;
    say(console, "%04x", value);
}

/* "REGISTER" of clause 22, or "DEVICE.REGISTER" of clause 45; decimal. */
static bool parse_register(const char *word, uint8_t *device, uint16_t *reg)
{
    size_t point = 0;
    uint32_t number;

    while (word[point] != '\0' && word[point] != '.') {
        point++;
    }
    if (word[point] == '\0') {
        *device = MDIO_CLAUSE22;
        if (!number_text_parse(word, point, 10, REGISTER_22_MAX, &number)) {
            return false;
        }
    } else {
        if (!number_text_parse(word, point, 10, DEVICE_MAX, &number)) {
            return false;
        }
        *device = (uint8_t)number;
        word += point + 1;
        if (!number_text_parse(word, strlen(word), 10, REGISTER_45_MAX,
                               &number)) {
            return false;
        }
    }
    *reg = (uint16_t)number;
    return true;
}

void console_phy(struct console_phy *console, struct log *log,
                 struct i2c *buses, char **words, unsigned int count)
{
    uint32_t port = 0;
    uint8_t device;
    uint16_t reg;

    console->log = log;
    console->buses = buses;
    if (count > 1 && !number_text_parse(words[1], strlen(words[1]), 10,
                                        SOC_PORTS - 1, &port)) {
        say(console, "error: there is no port %s; the ports are 0 and 1",
            words[1]);
        return;
    }
    console->port = (uint8_t)port;
    console->last_port = count > 1 ? (uint8_t)port : SOC_PORTS - 1;
    if (count < 3) {
        start_summary(console);
    } else if (parse_register(words[2], &device, &reg)) {
        submit_read(console, device, reg, end_register);
    } else {
        say(console,
            "error: %s is no register: write 0 to 31 for one of clause 22, or "
            "DEVICE.REGISTER for one of clause 45, such as 1.0, in decimal",
            words[2]);
    }
}
