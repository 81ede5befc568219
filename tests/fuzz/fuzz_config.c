/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration from untrusted sources: a body, as hosts write it, or lines
 * of "KEY VALUE", as the console accepts them. An accepted configuration must
 * stay the same when it is converted to the other form.
 */
#include "tests/fuzz/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/settings/config_check.h"

enum { LINE_MAX_ = 120, HOW_BODY = 0, HOW_LINES = 1 };

static void abort_unless(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static void count_complaint(void *ctx, const char *text)
{
    unsigned int *count = ctx;

    abort_unless(text[0] != '\0' && strlen(text) < CONFIG_ERROR_MAX);
    (*count)++;
}

/* Check the configuration, and convert it to bytes and to text and back. */
static void check_config(const struct config *config)
{
    uint8_t body[CONFIG_BODY_LEN], again[CONFIG_BODY_LEN];
    struct config from_bytes, from_text;
    struct config_error error;
    unsigned int told = 0;

    abort_unless(config_check(config, count_complaint, &told) == told);
    config_body_emit(config, body);
    config_default(&from_bytes);
    abort_unless(config_body_parse(&from_bytes, body, sizeof(body)));
    config_body_emit(&from_bytes, again);
    abort_unless(memcmp(body, again, sizeof(body)) == 0);
    if (told != 0) { /* Some faults, such as a length of 0, have no text. */
        return;
    }
    config_default(&from_text);
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line line, back;

        config_text_get(config, i, &line);
        abort_unless(config_text_set(&from_text, line.key, line.value, &error));
        config_text_get(&from_text, i, &back);
        abort_unless(strcmp(line.value, back.value) == 0);
    }
    abort_unless(config_check(&from_text, count_complaint, &told) == 0);
}

static void try_lines(const uint8_t *data, size_t len)
{
    struct config config;
    struct config_error error;

    config_default(&config);
    while (len != 0) {
        const uint8_t *end = memchr(data, '\n', len);
        size_t line_len = end != NULL ? (size_t)(end - data) : len;
        char line[LINE_MAX_ + 1];
        size_t used = MIN(line_len, (size_t)LINE_MAX_);
        char *space;

        memcpy(line, data, used);
        line[used] = '\0';
        space = strchr(line, ' ');
        if (space != NULL) {
            *space = '\0';
            if (!config_text_set(&config, line, space + 1, &error)) {
                abort_unless(strlen(error.text) < CONFIG_ERROR_MAX);
            }
        }
        data += line_len;
        len -= line_len;
        if (len != 0) { /* The end of the line. */
            data++;
            len--;
        }
    }
    check_config(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct config config;

    if (len == 0) {
        return 0;
    }
    if (data[0] == HOW_LINES) {
        try_lines(data + 1, len - 1);
        return 0;
    }
    config_default(&config);
    if (config_body_parse(&config, data + 1, len - 1)) {
        check_config(&config);
    }
    return 0;
}

static const char lines[] = "port.0.ipv4 10.0.0.10/24\n"
                            "port.0.ipv4-gateway 10.0.0.1\n"
                            "port.1.ipv6 fd00::1/64\n"
                            "address.3.ip fe80:1:2:3:4:5:6:7/128\n"
                            "address.3.vlan 4094\n"
                            "sntp.server fd00::9\n"
                            "lag.mode lacp\n"
                            "pfc 0,3,7\n"
                            "name rack7-slot3\n"
                            "address.4.ip 10.0.0.1/8\n"
                            "port.0.mtu 9000";

/* One seed for each line, so that the changes reach each of them. */
static size_t seed_line(size_t n, uint8_t *buf)
{
    const char *line = lines;
    const char *end;

    for (size_t i = 0; i < n; i++) {
        line = strchr(line, '\n');
        if (line == NULL) {
            return 0;
        }
        line++;
    }
    end = strchr(line, '\n');
    buf[0] = HOW_LINES;
    memcpy(buf + 1, line, strlen(line));
    return 1 + (end != NULL ? (size_t)(end - line) : strlen(line));
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    struct config config;

    abort_unless(room > CONFIG_BODY_LEN && room > sizeof(lines));
    if (n >= 2) {
        return seed_line(n - 2, buf);
    }
    if (n == 1) {
        buf[0] = HOW_LINES;
        memcpy(buf + 1, lines, sizeof(lines) - 1);
        return sizeof(lines);
    }
    config_default(&config);
    config.port[0].has_ipv4 = true;
    config.port[0].ipv4_prefix = 24;
    memcpy(config.port[0].ipv4, "\x0a\x00\x00\x0a", 4);
    config.network.extra[0].is_used = true;
    config.network.extra[0].prefix = 64;
    config.network.extra[0].ip[0] = 0xfd;
    buf[0] = HOW_BODY;
    config_body_emit(&config, buf + 1);
    return 1 + CONFIG_BODY_LEN;
}
