/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/console/console_i2c.h"

#include <string.h>

#include "firmware/text/number_text.h"
#include "hw-model/regs/soc.h"

enum {
    /* Addresses outside have meanings of their own in the I2C specification. */
    SCAN_FIRST = 0x08,
    SCAN_LAST = 0x77,
    ADDRESS_MAX = 0x7f,
    SHORT_OFFSET_DIGITS = 2, /* more digits are an offset of two bytes */
    LINE_BYTES = 4 * CONSOLE_I2C_ROW,
};

#define say(console, ...) log_text((console)->log, __VA_ARGS__)

static void submit_request(struct console_i2c *console,
                           void (*done)(void *ctx, struct i2c_request *request,
                                        enum i2c_outcome outcome))
{
    console->is_busy = true;
    console->request.done = done;
    console->request.ctx = console;
    i2c_submit(console->bus, &console->request);
}

/* Say why a transfer has not ended as it should. @return whether it has */
static bool say_outcome(const struct console_i2c *console,
                        enum i2c_outcome outcome)
{
    switch (outcome) {
    case I2C_OK:
        return true;
    case I2C_NO_TARGET:
        say(console, "error: no device answers at address %02x of bus %u",
            console->request.addr, console->bus_number);
        return false;
    default:
        say(console, "error: the device at address %02x refuses a byte",
            console->request.addr);
        return false;
    }
}

/* Print bytes in hexadecimal after a heading. */
static void say_bytes(const struct console_i2c *console, const char *heading,
                      const uint8_t *bytes, size_t len)
{
    char line[LINE_BYTES] = "";
    size_t at = 0;

    for (size_t i = 0; i < len; i++) {
        at += log_format(line + at, sizeof(line) - at, " %02x", bytes[i]);
    }
    say(console, "%s:%s", heading, line);
}

/* ---- Scan. */

static void say_found(struct console_i2c *console)
{
    char heading[] = "bus 0";

    heading[4] = (char)('0' + console->bus_number);
    say_bytes(console, heading, console->found, console->found_count);
    console->found_count = 0;
}

/* Go on with the next address. */
static void end_scan_address(void *ctx, struct i2c_request *request,
                             enum i2c_outcome outcome)
{
    struct console_i2c *console = ctx;

    console->is_busy = false;
    if (outcome == I2C_OK) {
        console->has_found = true;
        console->found[console->found_count++] = request->addr;
    }
    if (console->found_count == CONSOLE_I2C_ROW) {
        say_found(console);
    }
    if (request->addr < SCAN_LAST) {
        request->addr++;
        submit_request(console, end_scan_address);
    } else if (console->found_count != 0) {
        say_found(console);
    } else if (!console->has_found) {
        say(console, "bus %u: no device answers", console->bus_number);
    }
}

static void start_scan(struct console_i2c *console)
{
    console->found_count = 0;
    console->has_found = false;
    console->request = (struct i2c_request){.addr = SCAN_FIRST};
    submit_request(console, end_scan_address);
}

/* ---- Read and write. */

static void end_read(void *ctx, struct i2c_request *request,
                     enum i2c_outcome outcome)
{
    struct console_i2c *console = ctx;

    console->is_busy = false;
    if (!say_outcome(console, outcome)) {
        return;
    }
    for (size_t at = 0; at < request->read_len; at += CONSOLE_I2C_ROW) {
        char heading[8];

        (void)log_format(heading, sizeof(heading), "%04x",
                         (unsigned int)((console->first_offset + at) & 0xffff));
        say_bytes(console, heading, request->bytes + at,
                  MIN(request->read_len - at, (size_t)CONSOLE_I2C_ROW));
    }
}

static void end_write(void *ctx, struct i2c_request *request,
                      enum i2c_outcome outcome)
{
    struct console_i2c *console = ctx;

    (void)request;
    console->is_busy = false;
    if (say_outcome(console, outcome)) {
        say(console, "ok");
    }
}

static bool parse_word(const char *word, uint32_t base, uint32_t max,
                       uint32_t *value)
{
    return number_text_parse(word, strlen(word), base, max, value);
}

static bool parse_address(struct console_i2c *console, const char *word)
{
    uint32_t address;

    if (!parse_word(word, 16, ADDRESS_MAX, &address)) {
        say(console, "error: %s is no address: write 00 to 7f, in hexadecimal",
            word);
        return false;
    }
    console->request = (struct i2c_request){.addr = (uint8_t)address};
    return true;
}

/* An offset that the device gets before the read; "-": none. */
static bool parse_offset(struct console_i2c *console, const char *word)
{
    struct i2c_request *request = &console->request;
    size_t digits = strlen(word);

    console->first_offset = 0;
    if (strcmp(word, "-") == 0) {
        return true;
    }
    if (digits > 4 || !parse_word(word, 16, 0xffff, &console->first_offset)) {
        say(console,
            "error: %s is no offset: write 1 or 2 digits for one byte, 3 or 4 "
            "for two, in hexadecimal, or - for none",
            word);
        return false;
    }
    if (digits > SHORT_OFFSET_DIGITS) {
        request->bytes[request->write_len++] =
            (uint8_t)(console->first_offset >> 8);
    }
    request->bytes[request->write_len++] = (uint8_t)console->first_offset;
    return true;
}

static void start_read(struct console_i2c *console, char **words)
{
    uint32_t len;

    if (!parse_address(console, words[3]) || !parse_offset(console, words[4])) {
        return;
    }
    if (!parse_word(words[5], 10, I2C_TRANSFER_MAX, &len) || len == 0) {
        say(console, "error: %s is no length: write 1 to %u, in decimal",
            words[5], I2C_TRANSFER_MAX);
        return;
    }
    console->request.read_len = (uint16_t)len;
    submit_request(console, end_read);
}

static void start_write(struct console_i2c *console, char **words)
{
    size_t digits = strlen(words[4]);

    if (!parse_address(console, words[3])) {
        return;
    }
    for (size_t at = 0; at < digits; at += 2) {
        uint32_t byte;

        if (digits % 2 != 0 || digits / 2 > I2C_TRANSFER_MAX ||
            !number_text_parse(words[4] + at, 2, 16, 0xff, &byte)) {
            say(console,
                "error: write bytes of two hexadecimal digits each, at most "
                "%u, without spaces",
                I2C_TRANSFER_MAX);
            return;
        }
        console->request.bytes[console->request.write_len++] = (uint8_t)byte;
    }
    submit_request(console, end_write);
}

void console_i2c(struct console_i2c *console, struct log *log,
                 struct i2c *buses, char **words, unsigned int count)
{
    uint32_t number;

    console->log = log;
    if (!parse_word(words[2], 10, SOC_I2CS - 1, &number)) {
        say(console, "error: there is no bus %s; the buses are 0 to %u",
            words[2], SOC_I2CS - 1);
        return;
    }
    console->bus_number = number;
    console->bus = &buses[number];
    if (strcmp(words[1], "scan") == 0 && count == 3) {
        start_scan(console);
    } else if (strcmp(words[1], "read") == 0 && count == 6) {
        start_read(console, words);
    } else if (strcmp(words[1], "write") == 0 && count == 5) {
        start_write(console, words);
    } else {
        say(console, "error: i2c scan BUS, i2c read BUS ADDRESS OFFSET LENGTH "
                     "or i2c write BUS ADDRESS BYTES");
    }
}
