/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/settings/config_value.h"

#include <string.h>

#include "firmware/text/ip_text.h"
#include "firmware/hal/log.h"

/* The text "none" stands for an absent value. */
static const char none[] = "none";

#define VALUE(line, ...)                                                       \
    ((void)log_format((line)->value, sizeof((line)->value), __VA_ARGS__))

/* ---- Numbers and words */

static bool number_parse(const char *text, uint32_t min, uint32_t max,
                         uint32_t *number)
{
    uint32_t value = 0;
    size_t len = strlen(text);

    if (len == 0 || len > 5 || (len > 1 && text[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        value = value * 10 + (uint32_t)(text[i] - '0');
    }
    *number = value;
    return value >= min && value <= max;
}

static bool byte_parse(const struct config_row *row, void *field,
                       const char *text)
{
    uint32_t value;

    if (!number_parse(text, row->min, row->max, &value)) {
        return false;
    }
    *(uint8_t *)field = (uint8_t)value;
    return true;
}

static void byte_format(const struct config_row *row, const void *field,
                        struct config_line *line)
{
    uint8_t value = *(const uint8_t *)field;

    VALUE(line, "%u", value != 0 ? value : row->zero);
}

static bool short_parse(const struct config_row *row, void *field,
                        const char *text)
{
    uint32_t value;

    if (!number_parse(text, row->min, row->max, &value)) {
        return false;
    }
    *(uint16_t *)field = (uint16_t)value;
    return true;
}

static void short_format(const struct config_row *row, const void *field,
                         struct config_line *line)
{
    uint16_t value = *(const uint16_t *)field;

    VALUE(line, "%u", value != 0 ? value : row->zero);
}

/*
 * Parse a speed.  The general number parser cannot do this, because only 10 and
 * 25 are valid in the range.
 */
static bool speed_parse(const struct config_row *row, void *field,
                        const char *text)
{
    return (strcmp(text, "10") == 0 || strcmp(text, "25") == 0) &&
           byte_parse(row, field, text);
}

static bool switch_parse(const struct config_row *row, void *field,
                         const char *text)
{
    bool is_on = strcmp(text, "on") == 0;

    (void)row;
    if (!is_on && strcmp(text, "off") != 0) {
        return false;
    }
    *(bool *)field = is_on;
    return true;
}

static void switch_format(const struct config_row *row, const void *field,
                          struct config_line *line)
{
    (void)row;
    VALUE(line, "%s", *(const bool *)field ? "on" : "off");
}

/* The values of an enum are read and written as an int. */
_Static_assert(sizeof(enum config_fec) == sizeof(int) &&
                   sizeof(enum config_lldp) == sizeof(int) &&
                   sizeof(enum config_lag) == sizeof(int) &&
                   sizeof(enum config_profile) == sizeof(int) &&
                   sizeof(enum config_listed) == sizeof(int) &&
                   sizeof(enum config_tls) == sizeof(int),
               "");
#include "firmware/settings/config_names.inc"

static bool name_find(const char *const *names, void *field, const char *text)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) {
            memcpy(field, &i, sizeof(i));
            return true;
        }
    }
    return false;
}

static const char *name_of(const char *const *names, const void *field)
{
    int i;

    memcpy(&i, field, sizeof(i));
    return names[i];
}

#define NAMED(what)                                                            \
    static bool what##_parse(const struct config_row *row, void *field,        \
                             const char *text)                                 \
    {                                                                          \
        (void)row;                                                             \
        return name_find(what##_names, field, text);                           \
    }                                                                          \
    static void what##_format(const struct config_row *row, const void *field, \
                              struct config_line *line)                        \
    {                                                                          \
        (void)row;                                                             \
        VALUE(line, "%s", name_of(what##_names, field));                       \
    }

const char *config_fec_name(enum config_fec fec)
{
    return fec_names[fec];
}

bool config_fec_parse(const char *text, enum config_fec *fec)
{
    return name_find(fec_names, fec, text);
}

NAMED(fec)
NAMED(lldp)
NAMED(lag)
NAMED(profile)
NAMED(listed)
NAMED(tls)

/* ---- Addresses */

/* An address with its prefix length.  All zero means none. */
struct net {
    bool is_there;
    struct ip_addr ip;
    uint8_t prefix;
};

/* The address families that a key accepts. */
enum family { IPV4_ONLY, IPV6_ONLY, EITHER };

/* Parse "ADDR/LEN" or "none". */
static bool net_parse(struct net *net, enum family family, const char *text)
{
    const char *slash = strchr(text, '/');
    uint32_t bits;
    bool is_v4;

    *net = (struct net){0};
    if (strcmp(text, none) == 0) {
        return true;
    }
    if (slash == NULL ||
        !ip_text_parse(&net->ip, text, (size_t)(slash - text))) {
        return false;
    }
    is_v4 = ip_addr_is_v4(&net->ip);
    if (family == (is_v4 ? IPV6_ONLY : IPV4_ONLY) ||
        !number_parse(slash + 1, 1, is_v4 ? 32 : 128, &bits)) {
        return false;
    }
    net->is_there = true;
    net->prefix = (uint8_t)bits;
    return true;
}

static void net_format(const struct net *net, struct config_line *line)
{
    if (net->is_there) {
        VALUE(line, "%s/%u", ip_text(&net->ip).text, net->prefix);
    } else {
        VALUE(line, "%s", none);
    }
}

static bool port_ipv4_parse(const struct config_row *row, void *field,
                            const char *text)
{
    struct config_port *port = field;
    struct net net;

    (void)row;
    if (!net_parse(&net, IPV4_ONLY, text)) {
        return false;
    }
    port->has_ipv4 = net.is_there;
    port->ipv4_prefix = net.prefix;
    memcpy(port->ipv4, net.ip.bytes + 12, 4);
    return true;
}

static void port_ipv4_format(const struct config_row *row, const void *field,
                             struct config_line *line)
{
    const struct config_port *port = field;

    (void)row;
    net_format(&(struct net){port->has_ipv4,
                             ip_addr_from_v4(get_be32(port->ipv4)),
                             port->ipv4_prefix},
               line);
}

static bool port_ipv6_parse(const struct config_row *row, void *field,
                            const char *text)
{
    struct config_port *port = field;
    struct net net;

    (void)row;
    if (!net_parse(&net, IPV6_ONLY, text)) {
        return false;
    }
    port->has_ipv6 = net.is_there;
    port->ipv6_prefix = net.prefix;
    memcpy(port->ipv6, net.ip.bytes, 16);
    return true;
}

static void port_ipv6_format(const struct config_row *row, const void *field,
                             struct config_line *line)
{
    const struct config_port *port = field;

    (void)row;
    net_format(&(struct net){port->has_ipv6, ip_addr_from_bytes(port->ipv6),
                             port->ipv6_prefix},
               line);
}

static bool extra_parse(const struct config_row *row, void *field,
                        const char *text)
{
    struct config_address *address = field;
    struct net net;

    (void)row;
    if (!net_parse(&net, EITHER, text)) {
        return false;
    }
    address->is_used = net.is_there;
    address->prefix = net.prefix;
    memcpy(address->ip, net.ip.bytes, 16);
    return true;
}

static void extra_format(const struct config_row *row, const void *field,
                         struct config_line *line)
{
    const struct config_address *address = field;

    (void)row;
    net_format(&(struct net){address->is_used, ip_addr_from_bytes(address->ip),
                             address->prefix},
               line);
}

/* Parse four bytes; 0.0.0.0 means none. */
static bool ipv4_parse(const struct config_row *row, void *field,
                       const char *text)
{
    struct ip_addr ip = {0};

    (void)row;
    if (strcmp(text, none) != 0 &&
        (!ip_text_parse(&ip, text, strlen(text)) || !ip_addr_is_v4(&ip))) {
        return false;
    }
    memcpy(field, ip.bytes + 12, 4);
    return true;
}

static void ipv4_format(const struct config_row *row, const void *field,
                        struct config_line *line)
{
    struct ip_addr ip = ip_addr_from_v4(get_be32(field));

    (void)row;
    VALUE(line, "%s", ip_addr_is_unspecified(&ip) ? none : ip_text(&ip).text);
}

/* Parse sixteen bytes; all zero means none. */
static bool server_parse(const struct config_row *row, void *field,
                         const char *text)
{
    struct ip_addr ip = {0};

    (void)row;
    if (strcmp(text, none) != 0 && !ip_text_parse(&ip, text, strlen(text))) {
        return false;
    }
    memcpy(field, ip.bytes, 16);
    return true;
}

static bool ipv6_parse(const struct config_row *row, void *field,
                       const char *text)
{
    return (strcmp(text, none) == 0 || strchr(text, ':') != NULL) &&
           server_parse(row, field, text);
}

static void ip_format(const struct config_row *row, const void *field,
                      struct config_line *line)
{
    struct ip_addr ip = ip_addr_from_bytes(field);

    (void)row;
    VALUE(line, "%s", ip_addr_is_unspecified(&ip) ? none : ip_text(&ip).text);
}

/* ---- Names and priorities */

static bool text_parse(const struct config_row *row, void *field,
                       const char *text)
{
    size_t len = strlen(text);

    (void)row;
    if (len == 0 || len > CONFIG_NAME_LEN) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return false;
        }
    }
    memset(field, 0, CONFIG_NAME_LEN + 1);
    if (strcmp(text, none) != 0) {
        memcpy(field, text, len);
    }
    return true;
}

static void text_format(const struct config_row *row, const void *field,
                        struct config_line *line)
{
    const char *text = field;

    (void)row;
    VALUE(line, "%s", text[0] != '\0' ? text : none);
}

/* Parse "0,3,4" with rising numbers, "all" or "none". */
static bool mask_parse(const struct config_row *row, void *field,
                       const char *text)
{
    uint32_t mask = 0;

    (void)row;
    if (strcmp(text, "all") == 0) {
        mask = 0xff;
    } else if (strcmp(text, none) != 0) {
        for (const char *at = text;; at += 2) {
            if (at[0] < '0' || at[0] > '7' ||
                /* This number or a higher one was named before. */
                mask >> (at[0] - '0') != 0 || (at[1] != ',' && at[1] != '\0')) {
                return false;
            }
            mask |= BIT(at[0] - '0');
            if (at[1] == '\0') {
                break;
            }
        }
    }
    *(uint8_t *)field = (uint8_t)mask;
    return true;
}

static void mask_format(const struct config_row *row, const void *field,
                        struct config_line *line)
{
    uint8_t mask = *(const uint8_t *)field;
    char text[16];
    size_t len = 0;

    (void)row;
    for (unsigned int i = 0; i < 8; i++) {
        if (mask & BIT(i)) {
            text[len++] = (char)('0' + i);
            text[len++] = ',';
        }
    }
    text[len != 0 ? len - 1 : 0] = '\0';
    VALUE(line, "%s", mask == 0xff ? "all" : mask == 0 ? none : text);
}

/* ---- Lists of namespaces. */

/* Parse one number of a list.  @return what follows it; NULL: there is none */
static const char *nsid_parse(const char *text, unsigned int *nsid)
{
    *nsid = 0;
    if (text[0] < '1' || text[0] > '9') {
        return NULL;
    }
    for (; *text >= '0' && *text <= '9'; text++) {
        *nsid = *nsid * 10 + (unsigned int)(*text - '0');
        if (*nsid > CONFIG_NSIDS) {
            return NULL;
        }
    }
    return text;
}

/* Parse "1,3-5" with rising numbers. */
static bool nsid_list_parse(const char *text, uint32_t *exports)
{
    unsigned int before = 0;

    for (;;) {
        unsigned int first, last;

        text = nsid_parse(text, &first);
        last = first;
        if (text != NULL && *text == '-') {
            text = nsid_parse(text + 1, &last);
        }
        if (text == NULL || first <= before || last < first ||
            (*text != ',' && *text != '\0')) {
            return false;
        }
        for (unsigned int nsid = first; nsid <= last; nsid++) {
            exports[(nsid - 1) / 32] |= BIT((nsid - 1) % 32);
        }
        before = last;
        if (*text == '\0') {
            return config_nsid_runs(exports) <= CONFIG_NSID_RUNS;
        }
        text++;
    }
}

static bool nsids_parse(const struct config_row *row, void *field,
                        const char *text)
{
    uint32_t exports[CONFIG_NSIDS / 32] = {0};

    (void)row;
    if (strcmp(text, none) != 0 && !nsid_list_parse(text, exports)) {
        return false;
    }
    memcpy(field, exports, sizeof(exports));
    return true;
}

static void nsids_format(const struct config_row *row, const void *field,
                         struct config_line *line)
{
    const uint32_t *exports = field;
    size_t len = 0;

    (void)row;
    VALUE(line, "%s", none);
    for (unsigned int nsid = 1; nsid <= CONFIG_NSIDS; nsid++) {
        unsigned int first = nsid;

        if (!config_has_nsid(exports, nsid)) {
            continue;
        }
        while (nsid < CONFIG_NSIDS && config_has_nsid(exports, nsid + 1)) {
            nsid++;
        }
        len += log_format(line->value + len, sizeof(line->value) - len,
                          first == nsid ? "%s%u" : "%s%u-%u",
                          len == 0 ? "" : ",", first, nsid);
    }
}

/* ---- The kinds of values */

const struct config_kind config_byte = {byte_parse, byte_format};
const struct config_kind config_short = {short_parse, short_format};
const struct config_kind config_speed = {speed_parse, byte_format};
const struct config_kind config_switch = {switch_parse, switch_format};
const struct config_kind config_fec = {fec_parse, fec_format};
const struct config_kind config_lldp = {lldp_parse, lldp_format};
const struct config_kind config_lag = {lag_parse, lag_format};
const struct config_kind config_profile = {profile_parse, profile_format};
const struct config_kind config_listed = {listed_parse, listed_format};
const struct config_kind config_tls = {tls_parse, tls_format};
const struct config_kind config_port_ipv4 = {port_ipv4_parse, port_ipv4_format};
const struct config_kind config_port_ipv6 = {port_ipv6_parse, port_ipv6_format};
const struct config_kind config_extra = {extra_parse, extra_format};
const struct config_kind config_ipv4 = {ipv4_parse, ipv4_format};
const struct config_kind config_ipv6 = {ipv6_parse, ip_format};
const struct config_kind config_server = {server_parse, ip_format};
const struct config_kind config_word = {text_parse, text_format};
const struct config_kind config_mask = {mask_parse, mask_format};
const struct config_kind config_nsids = {nsids_parse, nsids_format};
