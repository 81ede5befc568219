/* SPDX-License-Identifier: BSD-2-Clause */
/* The switch and its ports as JSON. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

void answer_add(struct answer *answer, const char *format, ...)
{
    size_t room = ANSWER_MAX - answer->len;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(answer->text + answer->len, room, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room) {
        answer->overflowed = true;
    } else {
        answer->len += (size_t)n;
    }
}

/* Bytes beyond ASCII are escaped one by one: paths need not be UTF-8. */
void answer_add_string(struct answer *answer, const char *text)
{
    answer_add(answer, "\"");
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;

        if (c == '"' || c == '\\') {
            answer_add(answer, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            answer_add(answer, "\\u%04x", c);
        } else {
            answer_add(answer, "%c", c);
        }
    }
    answer_add(answer, "\"");
}

static const char *bool_text(bool value)
{
    return value ? "true" : "false";
}

/* ---- VLANs */

static void add_vlan_range(struct answer *answer, unsigned first, unsigned last,
                           bool *is_first)
{
    answer_add(answer, last > first ? "%s%u-%u" : "%s%u", *is_first ? "" : "+",
               first, last);
    *is_first = false;
}

static void add_trunk(struct answer *answer, const struct switch_vlan *vlan)
{
    unsigned begin = 0;
    bool is_first = true;

    answer_add(answer, ", \"trunk\": \"");
    for (unsigned vid = 1; vid <= VLAN_MAX + 1; vid++) {
        bool allowed = vid <= VLAN_MAX && vlan_is_allowed(vlan, (uint16_t)vid);

        if (allowed && begin == 0) {
            begin = vid;
        } else if (!allowed && begin != 0) {
            add_vlan_range(answer, begin, vid - 1, &is_first);
            begin = 0;
        }
    }
    answer_add(answer, "\"");
}

static void add_vlan(struct answer *answer, const struct switch_vlan *vlan)
{
    switch (vlan->mode) {
    case SWITCH_VLAN_ACCESS:
        answer_add(answer, ", \"vlan\": %u, \"native\": null", vlan->vid);
        break;
    case SWITCH_VLAN_TRUNK:
        answer_add(answer, ", \"vlan\": \"trunk\"");
        add_trunk(answer, vlan);
        if (vlan->vid == VLAN_NONE) {
            answer_add(answer, ", \"native\": null");
        } else {
            answer_add(answer, ", \"native\": %u", vlan->vid);
        }
        break;
    default:
        answer_add(answer, ", \"vlan\": \"any\", \"native\": null");
        break;
    }
}

/* ---- Ports */

static void add_cable(struct answer *answer, const char *name,
                      const struct shaper_config *cable)
{
    answer_add(answer,
               ", \"%s\": {\"speed\": %" PRIu64 ", \"delay_ns\": %" PRIu64
               ", \"jitter_ns\": %" PRIu64 ", \"loss\": %u.%09u}",
               name, cable->speed_bps, cable->delay_ns, cable->jitter_ns,
               cable->loss_ppb / SHAPER_CERTAIN,
               cable->loss_ppb % SHAPER_CERTAIN);
}

static void add_capture(struct answer *answer, const struct port *port)
{
    if (port->options.capture.file[0] == '\0') {
        answer_add(answer, ", \"capture\": null");
        return;
    }
    answer_add(answer, ", \"capture\": {\"file\": ");
    answer_add_string(answer, port->options.capture.file);
    answer_add(answer, ", \"records\": %" PRIu64 ", \"lost\": %" PRIu64 "}",
               port->capture.records, port->capture.lost);
}

void show_connection(struct program *program, uint8_t number)
{
    const struct port *port = &program->ports[number];
    struct switch_port_status status;

    switch_port_status(program->core, number, &status);
    answer_add(&program->answer, "\"port\": %u, \"name\": ", number);
    answer_add_string(&program->answer, port->options.name);
    answer_add(&program->answer, ", \"connected\": %s, \"link\": \"%s\"",
               bool_text(status.connected),
               switch_port(program->core, number)->link_up ? "up" : "down");
}

void show_port(struct program *program, uint8_t number)
{
    const struct port *port = &program->ports[number];
    const struct switch_port_config *config =
        switch_port(program->core, number);
    struct answer *answer = &program->answer;
    struct switch_port_status status;

    switch_port_status(program->core, number, &status);
    answer_add(answer, "{");
    show_connection(program, number);
    answer_add(answer, ", \"kind\": \"%s\", \"address\": ",
               port_kind_name[port->options.kind]);
    answer_add_string(answer, port->options.address);
    answer_add(answer, ", \"connections\": %" PRIu64, port->connections);
    add_vlan(answer, &config->vlan);
    add_cable(answer, "in", &config->cable[SWITCH_IN]);
    add_cable(answer, "out", &config->cable[SWITCH_OUT]);
    answer_add(
        answer,
        ", \"seed\": %" PRIu64 ", \"full\": \"%s\", \"stall_ns\": %" PRIu64
        ", \"queue\": %u, \"queued_bytes\": %u, \"queued_frames\": %u"
        ", \"paused\": %s",
        config->seed, config->full == SWITCH_FULL_DROP ? "drop" : "pause",
        config->stall_ns, port->options.queue_bytes, status.queued_bytes,
        status.queued_frames, bool_text(status.paused));
    add_capture(answer, port);
    for (int i = 0; i < SWITCH_COUNTERS; i++) {
        answer_add(answer, "%s\"%s\": %" PRIu64,
                   i == 0 ? ", \"counters\": {" : ", ", switch_counter_name[i],
                   status.counters[i]);
    }
    answer_add(answer, "}}");
}

/* ---- The switch */

static unsigned count_macs(const struct program *program)
{
    const struct fdb *fdb = switch_fdb(program->core);
    uint32_t now_s = switch_fdb_seconds(program->now_ns);
    unsigned count = 0;

    for (unsigned i = 0; i < FDB_ENTRIES; i++) {
        count += fdb_is_live(fdb, &fdb->entries[i], now_s);
    }
    return count;
}

void show_switch(struct program *program)
{
    struct switch_settings settings = switch_settings(program->core);
    struct answer *answer = &program->answer;

    answer_add(answer,
               "{\"version\": 1, \"ageing_s\": %u, \"link_local\": \"%s\", "
               "\"macs\": %u, \"ports\": [",
               settings.ageing_s,
               settings.forwards_link_local ? "forward" : "drop",
               count_macs(program));
    for (uint8_t i = 0; i < program->port_count; i++) {
        answer_add(answer, i == 0 ? "" : ", ");
        show_port(program, i);
    }
    answer_add(answer, "]}");
}

void show_macs(struct program *program)
{
    const struct fdb *fdb = switch_fdb(program->core);
    uint32_t now_s = switch_fdb_seconds(program->now_ns);
    struct answer *answer = &program->answer;
    bool is_first = true;

    answer_add(answer, "{\"macs\": [");
    for (unsigned i = 0; i < FDB_ENTRIES; i++) {
        const struct fdb_entry *entry = &fdb->entries[i];
        struct mac_addr mac = fdb_entry_mac(entry);
        const uint8_t *b = mac.bytes;

        if (fdb_is_live(fdb, entry, now_s)) {
            answer_add(answer,
                       "%s{\"mac\": \"%02x:%02x:%02x:%02x:%02x:%02x\", "
                       "\"vlan\": %u, \"port\": %u, \"age_s\": %u}",
                       is_first ? "" : ", ", b[0], b[1], b[2], b[3], b[4], b[5],
                       fdb_entry_vlan(entry), entry->port,
                       now_s - entry->seen_s);
            is_first = false;
        }
    }
    answer_add(answer, "]}");
}

void show_connections(struct program *program)
{
    answer_add(&program->answer, "{\"ports\": [");
    for (uint8_t i = 0; i < program->port_count; i++) {
        answer_add(&program->answer, i == 0 ? "{" : ", {");
        show_connection(program, i);
        answer_add(&program->answer, "}");
    }
    answer_add(&program->answer, "]}");
}

void show_words(struct program *program)
{
    const char *name;

    for (unsigned i = 0; (name = words_name(i)) != NULL; i++) {
        answer_add(&program->answer, "%s\"%s\"", i == 0 ? "[" : ", ", name);
    }
    answer_add(&program->answer, "]");
}
