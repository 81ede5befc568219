/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/settings/config_text.h"

#include <string.h>

#include "firmware/settings/config_value.h"
#include "firmware/hal/log.h"

/* ---- The list */

#define ON_OFF  "on or off"
#define IPV4    "an IPv4 address, or none"
#define IPV6    "an IPv6 address, or none"
#define PORT(f) offsetof(struct config, port[0].f)
#define OF(f)   offsetof(struct config, f)
#define EXTRA   sizeof(struct config_address)
#define STRIDE  sizeof(struct config_port)

enum { LATER, LIVE }; /* with the next start, or at once */

static const struct config_row rows[] = {
    {"name", &config_word, OF(services.name),
     "1 to 32 printable characters without spaces, or none", 0, 0, 0, 0, LATER},
    {"port.#.ipv4", &config_port_ipv4, OF(port[0]),
     "an IPv4 address and its prefix length, such as 10.0.0.10/24, or none",
     STRIDE, 0, 0, 0, LIVE},
    {"port.#.ipv4-gateway", &config_ipv4, PORT(ipv4_gateway), IPV4, STRIDE, 0,
     0, 0, LIVE},
    {"port.#.ipv6", &config_port_ipv6, OF(port[0]),
     "an IPv6 address and its prefix length, such as fd00::10/64, or none",
     STRIDE, 0, 0, 0, LIVE},
    {"port.#.ipv6-gateway", &config_ipv6, PORT(ipv6_gateway), IPV6, STRIDE, 0,
     0, 0, LIVE},
    {"port.#.dhcp", &config_switch, OF(services.has_dhcp[0]), ON_OFF,
     sizeof(bool), 0, 0, 0, LATER},
    {"port.#.slaac", &config_switch, PORT(has_slaac), ON_OFF, STRIDE, 0, 0, 0,
     LATER},
    {"port.#.probe", &config_switch, PORT(is_probed), ON_OFF, STRIDE, 0, 0, 0,
     LIVE},
    {"port.#.vlan", &config_short, PORT(vlan), "a number from 0 to 4094",
     STRIDE, 0, 4094, 0, LIVE},
    {"port.#.priority", &config_byte, PORT(priority), "a number from 0 to 7",
     STRIDE, 0, 7, 0, LATER},
    {"port.#.mtu", &config_short, PORT(mtu_bytes), "a number from 1280 to 9000",
     STRIDE, 1280, 9000, 0, LATER},
    {"port.#.speed", &config_speed, PORT(speed_gbps), "10 or 25", STRIDE, 10,
     25, 0, LIVE},
    {"port.#.fec", &config_fec, PORT(fec), "none, fc or rs", STRIDE, 0, 0, 0,
     LIVE},
    {"port.#.lldp", &config_lldp, OF(services.lldp[0]),
     "both, send, receive or off", sizeof(enum config_lldp), 0, 0, 0, LIVE},
    {"address.#.ip", &config_extra, OF(network.extra[0]),
     "an address and its prefix length, such as 10.0.0.11/24, or none", EXTRA,
     0, 0, 0, LIVE},
    {"address.#.port", &config_byte, OF(network.extra[0].port), "0 or 1", EXTRA,
     0, 1, 0, LIVE},
    {"address.#.vlan", &config_short, OF(network.extra[0].vlan),
     "a number from 0 to 4094", EXTRA, 0, 4094, 0, LIVE},
    {"dhcp.fast", &config_switch, OF(network.dhcp_is_fast), ON_OFF, 0, 0, 0, 0,
     LATER},
    {"lldp.interval", &config_short, OF(services.lldp_interval_s),
     "a number from 1 to 3600", 0, 1, 3600, 30, LIVE},
    {"lldp.hold", &config_byte, OF(services.lldp_hold),
     "a number from 1 to 100", 0, 1, 100, 4, LIVE},
    {"sntp.server", &config_server, OF(services.sntp_server),
     "an IPv4 or IPv6 address, or none", 0, 0, 0, 0, LIVE},
    {"sntp.poll", &config_short, OF(services.sntp_poll_s),
     "a number from 1 to 65535", 0, 1, 65535, 1024, LIVE},
    {"lag.mode", &config_lag, OF(network.lag), "off, active-standby or lacp", 0,
     0, 0, 0, LATER},
    {"lag.lacp-fast", &config_switch, OF(network.lacp_is_fast), ON_OFF, 0, 0, 0,
     0, LATER},
    {"lag.primary", &config_byte, OF(network.lag_primary), "0 or 1", 0, 0, 1, 0,
     LATER},
    {"lag.revert", &config_switch, OF(network.lag_has_revert), ON_OFF, 0, 0, 0,
     0, LATER},
    {"roce.v1", &config_switch, OF(network.has_roce_v1), ON_OFF, 0, 0, 0, 0,
     LIVE},
    {"roce.cnp", &config_switch, OF(network.has_cnp), ON_OFF, 0, 0, 0, 0,
     LATER},
    {"roce.dcqcn", &config_switch, OF(network.has_dcqcn), ON_OFF, 0, 0, 0, 0,
     LATER},
    {"pfc", &config_mask, OF(network.pfc_priorities),
     "priorities such as 0,3,4, or all, or none", 0, 0, 0, 0, LIVE},
    {"echo", &config_switch, OF(network.has_echo), ON_OFF, 0, 0, 0, 0, LIVE},
};

/* "port.#." keys are listed port by port, "address.#." keys likewise. */
enum { COUNT_GROUPS = 2 };

static const struct group {
    const char *prefix;
    uint8_t count;
    const char *too_many;
} groups[COUNT_GROUPS] = {
    {"port.#.", CONFIG_PORTS, "the ports are 0 and 1"},
    {"address.#.", CONFIG_EXTRA_ADDRESSES,
     "a drive has eight addresses: two of each port, and address.0 to "
     "address.3"},
};

/* Rows of a group have a stride. @return NULL: it stands alone */
static const struct group *group_of(const struct config_row *row)
{
    if (row->stride == 0) {
        return NULL;
    }
    return &groups[row->name[0] == groups[0].prefix[0] ? 0 : 1];
}

/* ---- Numbers of keys: row by row, the rows of a group number by number. */

struct place {
    const struct config_row *row;
    uint8_t number;
};

static unsigned int rows_of(const struct group *group, size_t first)
{
    unsigned int count = 0;

    while (first + count < ARRAY_LEN(rows) &&
           group_of(&rows[first + count]) == group) {
        count++;
    }
    return count;
}

/* Go through all keys in order. @return false when that was the last one */
static bool place_of(unsigned int index, struct place *place)
{
    for (size_t first = 0; first < ARRAY_LEN(rows);) {
        const struct group *group = group_of(&rows[first]);
        unsigned int width = rows_of(group, first);
        unsigned int all = width * (group != NULL ? group->count : 1);

        if (index < all) {
            place->row = &rows[first + index % width];
            place->number = (uint8_t)(index / width);
            return true;
        }
        index -= all;
        first += width;
    }
    return false;
}

static void key_format(const struct place *place, struct config_line *line)
{
    const char *mark = strchr(place->row->name, '#');
    size_t len;

    log_format(line->key, sizeof(line->key), "%s", place->row->name);
    if (mark != NULL) {
        len = (size_t)(mark - place->row->name);
        line->key[len] = (char)('0' + place->number);
    }
}

unsigned int config_text_count(void)
{
    struct place place;
    unsigned int count = 0;

    while (place_of(count, &place)) {
        count++;
    }
    return count;
}

static void get(const struct config *config, const struct place *place,
                struct config_line *line)
{
    key_format(place, line);
    place->row->kind->format(place->row,
                             (const uint8_t *)config + place->row->at +
                                 place->number * place->row->stride,
                             line);
}

void config_text_get(const struct config *config, unsigned int index,
                     struct config_line *line)
{
    struct place place;

    ASSERT(place_of(index, &place));
    get(config, &place, line);
}

/* A key with a number that is too high, or none at all. */
static void explain_key(const char *key, struct config_error *error)
{
    for (size_t i = 0; i < COUNT_GROUPS; i++) {
        size_t len = strlen(groups[i].prefix) - 2; /* with the first dot */

        if (strncmp(key, groups[i].prefix, len) == 0 && key[len] >= '0' &&
            key[len] <= '9') {
            bool is_known = key[len] < '0' + groups[i].count &&
                            (key[len + 1] == '.' || key[len + 1] == '\0');

            if (!is_known) {
                log_format(error->text, sizeof(error->text), "%.40s: %s", key,
                           groups[i].too_many);
                return;
            }
        }
    }
    log_format(error->text, sizeof(error->text), "there is no key %.40s", key);
}

/* `key` is the row's name, but for a digit in the place of '#'. */
static bool is_key_of(const struct config_row *row, const char *key,
                      uint8_t *number)
{
    const struct group *group = group_of(row);
    size_t mark = group != NULL ? strlen(group->prefix) - 2 : 0;

    *number = 0;
    if (group == NULL) {
        return strcmp(row->name, key) == 0;
    }
    if (strncmp(row->name, key, mark) != 0 || key[mark] < '0' ||
        key[mark] >= '0' + group->count) {
        return false;
    }
    *number = (uint8_t)(key[mark] - '0');
    return strcmp(row->name + mark + 1, key + mark + 1) == 0;
}

static bool find(const char *key, struct place *place,
                 struct config_error *error)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (is_key_of(&rows[i], key, &place->number)) {
            place->row = &rows[i];
            return true;
        }
    }
    explain_key(key, error);
    return false;
}

bool config_text_find(const struct config *config, const char *key,
                      struct config_line *line, struct config_error *error)
{
    struct place place;

    if (!find(key, &place, error)) {
        return false;
    }
    get(config, &place, line);
    return true;
}

bool config_text_is_live(const char *key)
{
    struct config_error error;
    struct place place;

    return find(key, &place, &error) && place.row->is_live;
}

bool config_text_set(struct config *config, const char *key, const char *value,
                     struct config_error *error)
{
    struct place place;
    const struct config_row *row;

    if (!find(key, &place, error)) {
        return false;
    }
    row = place.row;
    if (!row->kind->parse(
            row, (uint8_t *)config + row->at + place.number * row->stride,
            value)) {
        log_format(error->text, sizeof(error->text), "%s: %.60s is not %s", key,
                   value, row->allowed);
        return false;
    }
    return true;
}
