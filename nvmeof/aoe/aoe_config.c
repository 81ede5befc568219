/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Query Config Information: how hosts find devices, and the config string of
 * each.
 *
 * A query to all devices is answered by each of them.  If there are several,
 * the answers are sent in the turns that follow, so that a query costs no more
 * than others.  Queries that find no room are dropped: hosts ask again.
 * Spec: AoEr11 section 3.2.
 */
#include "nvmeof/aoe/aoe_state.h"

#include <string.h>

enum { FIRMWARE_VERSION = 1 };

/* ---- Answers. */

/* @return false when there is no room now */
static bool send_config(struct aoe *aoe, const struct aoe_station *to,
                        const struct aoe_header *request, uint8_t minor,
                        uint8_t command)
{
    const struct aoe_device *device = &aoe->devices[minor];
    struct aoe_header header = aoe_answer_header(aoe, request, AOE_ERROR_NONE);
    const struct aoe_query query = {
        .buffers = AOE_PEER_SLOTS,
        .firmware = FIRMWARE_VERSION,
        .sectors = aoe_sectors_max(aoe, to->port),
        .command = command,
        .length = device->string_len,
    };
    uint8_t *frame = aoe->config.ports.begin(aoe->config.ports.ctx, to);

    if (frame == NULL) {
        return false;
    }
    header.minor = minor;
    aoe_header_emit(frame, &header);
    aoe_query_emit(frame + AOE_HEADER_LEN, &query);
    memcpy(frame + AOE_HEADER_LEN + AOE_CONFIG_LEN, device->string,
           device->string_len);
    aoe_commit(aoe, to,
               AOE_HEADER_LEN + AOE_CONFIG_LEN + (size_t)device->string_len);
    return true;
}

static bool is_string(const struct aoe_device *device, const uint8_t *string,
                      uint16_t len)
{
    return device->string_len == len &&
           memcmp(device->string, string, len) == 0;
}

/* Whether a query that only reads is answered by this device. */
static bool is_answered_by(const struct aoe_device *device, uint8_t command,
                           const uint8_t *string, uint16_t len)
{
    switch (command) {
    case AOE_CONFIG_READ:
        return true;
    case AOE_CONFIG_TEST:
        return is_string(device, string, len);
    case AOE_CONFIG_PREFIX:
        return device->string_len >= len &&
               memcmp(device->string, string, len) == 0;
    default:
        return false;
    }
}

static bool only_reads(uint8_t command)
{
    return command == AOE_CONFIG_READ || command == AOE_CONFIG_TEST ||
           command == AOE_CONFIG_PREFIX;
}

/* ---- Queries to all devices. */

static bool is_exported(const struct aoe *aoe, unsigned int minor)
{
    return aoe_is_exported(aoe, minor + 1) == AOE_EXPORTED;
}

/* @return the first device from `minor` on; AOE_DEVICES: there is none */
static unsigned int next_device(const struct aoe *aoe, unsigned int minor)
{
    while (minor < AOE_DEVICES && !is_exported(aoe, minor)) {
        minor++;
    }
    return minor;
}

/* Whether there is room for one more query of this port. */
static bool has_room(const struct aoe *aoe, uint8_t port)
{
    unsigned int of_port = 0;

    for (unsigned int i = 0; i < aoe->query_count; i++) {
        of_port += aoe->queries[i].from.port == port ? 1 : 0;
    }
    return of_port < AOE_PORT_QUERIES && aoe->query_count < AOE_QUERIES;
}

static bool is_asking(const struct aoe *aoe, const struct aoe_station *from)
{
    for (unsigned int i = 0; i < aoe->query_count; i++) {
        const struct aoe_station *other = &aoe->queries[i].from;

        if (other->port == from->port &&
            memcmp(other->mac, from->mac, AOE_MAC_LEN) == 0) {
            return true;
        }
    }
    return false;
}

/* Answer for the devices from broadcast->next on.
 * @return false: some have not answered, and can later */
static bool answer_for_devices(struct aoe *aoe, struct aoe_broadcast *broadcast,
                               unsigned int *left)
{
    unsigned int minor = next_device(aoe, broadcast->next);

    while (minor < AOE_DEVICES) {
        bool is_meant =
            aoe_is_admitted(aoe, (uint8_t)minor, broadcast->from.mac) &&
            is_answered_by(&aoe->devices[minor], broadcast->command,
                           broadcast->string, broadcast->string_len);

        broadcast->next = (uint8_t)minor;
        if (is_meant) {
            if (*left == 0 ||
                !send_config(aoe, &broadcast->from, &broadcast->header,
                             (uint8_t)minor, broadcast->command)) {
                return !aoe->config.ports.has_link(aoe->config.ports.ctx,
                                                   broadcast->from.port);
            }
            (*left)--;
        }
        minor = next_device(aoe, minor + 1);
    }
    return true;
}

bool aoe_config_step(struct aoe *aoe)
{
    unsigned int left = AOE_QUERY_ANSWERS;
    unsigned int count = aoe->query_count;
    uint16_t kept = 0;

    /* One whose port has no room does not hold up those of the other port. */
    for (unsigned int i = 0; i < count; i++) {
        struct aoe_broadcast *broadcast = &aoe->queries[i];

        if (answer_for_devices(aoe, broadcast, &left)) {
            continue;
        }
        if (kept != i) {
            memmove(&aoe->queries[kept], broadcast, sizeof(*broadcast));
        }
        kept++;
    }
    aoe->query_count = kept;
    return left != AOE_QUERY_ANSWERS || kept != count;
}

static void broadcast_receive(struct aoe *aoe, const struct aoe_station *from,
                              const struct aoe_header *header,
                              const struct aoe_query *query,
                              const uint8_t *string)
{
    struct aoe_broadcast *broadcast = &aoe->queries[aoe->query_count];

    if (is_asking(aoe, from)) {
        return; /* the answers to its last query are being sent */
    }
    if (!has_room(aoe, from->port)) {
        aoe_note(aoe, from->port, AOE_DROP_FULL);
        return;
    }
    broadcast->from = *from;
    broadcast->header = *header;
    broadcast->command = query->command;
    broadcast->next = 0;
    broadcast->string_len = query->length;
    memcpy(broadcast->string, string, query->length);
    aoe->query_count++;
}

/* ---- Queries. */

static void set_string(struct aoe *aoe, const struct aoe_station *from,
                       const struct aoe_header *header,
                       const struct aoe_query *query, const uint8_t *string)
{
    struct aoe_device *device = &aoe->devices[header->minor];

    if (query->command == AOE_CONFIG_SET && device->string_len != 0 &&
        !is_string(device, string, query->length)) {
        aoe_refuse(aoe, from, header, AOE_ERROR_STRING);
        return;
    }
    if (AOE_HEADER_LEN + AOE_CONFIG_LEN + query->length >
        MIN(aoe->config.mtu_bytes[0], aoe->config.mtu_bytes[1])) {
        aoe_refuse(aoe, from, header, AOE_ERROR_ARGUMENT);
        return;
    }
    device->string_len = query->length;
    memcpy(device->string, string, query->length);
    (void)send_config(aoe, from, header, header->minor, query->command);
}

/* A query to the device of one number in all shelves. */
static void ask_device(struct aoe *aoe, const struct aoe_station *from,
                       const struct aoe_header *header,
                       const struct aoe_query *query, const uint8_t *string)
{
    uint8_t minor = header->minor;

    if (aoe_is_exported(aoe, minor + 1u) != AOE_EXPORTED) {
        aoe_note(aoe, from->port, AOE_DROP_NOT_OURS);
    } else if (!aoe_is_admitted(aoe, minor, from->mac)) {
        aoe_note(aoe, from->port, AOE_DROP_MASKED);
    } else if (is_answered_by(&aoe->devices[minor], query->command, string,
                              query->length)) {
        (void)send_config(aoe, from, header, minor, query->command);
    }
}

void aoe_config_ask(struct aoe *aoe, const struct aoe_station *from,
                    const struct aoe_header *header, const uint8_t *args,
                    size_t len)
{
    const uint8_t *string = args + AOE_CONFIG_LEN;
    struct aoe_query query;

    if (header->command != AOE_CONFIG || header->version != AOE_VERSION ||
        !aoe_query_parse(&query, args, len) || !only_reads(query.command)) {
        aoe_note(aoe, from->port, AOE_DROP_BAD);
    } else if (header->minor == AOE_MINOR_ALL) {
        broadcast_receive(aoe, from, header, &query, string);
    } else {
        ask_device(aoe, from, header, &query, string);
    }
}

void aoe_config_receive(struct aoe *aoe, const struct aoe_station *from,
                        const struct aoe_header *header, const uint8_t *args,
                        size_t len)
{
    const uint8_t *string = args + AOE_CONFIG_LEN;
    struct aoe_query query;
    uint8_t minor = header->minor;

    if (!aoe_query_parse(&query, args, len)) {
        aoe_note(aoe, from->port, AOE_DROP_BAD);
    } else if (only_reads(query.command)) {
        if (is_answered_by(&aoe->devices[minor], query.command, string,
                           query.length)) {
            (void)send_config(aoe, from, header, minor, query.command);
        }
    } else if (query.command > AOE_CONFIG_FORCE) {
        aoe_refuse(aoe, from, header, AOE_ERROR_ARGUMENT);
    } else if (aoe_is_fenced(aoe, minor, from->mac)) {
        aoe_refuse(aoe, from, header, AOE_ERROR_RESERVED);
    } else {
        set_string(aoe, from, header, &query, string);
    }
}
