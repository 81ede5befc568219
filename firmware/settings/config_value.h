/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of configuration values, and how config_text.c parses and formats
 * them.
 */
#ifndef ESSD_SETTINGS_CONFIG_VALUE_H
#define ESSD_SETTINGS_CONFIG_VALUE_H

#include "firmware/settings/config_text.h"

struct config_row;

struct config_kind {
    /* @return false when `text` is invalid; `field` is unchanged then */
    bool (*parse)(const struct config_row *row, void *field, const char *text);
    void (*format)(const struct config_row *row, const void *field,
                   struct config_line *line);
};

/* A key, or several keys that differ only in a number. */
struct config_row {
    const char *name; /* '#' stands for the number of the port or address */
    const struct config_kind *kind;
    size_t at; /* offset of the field in struct config */
    const char *allowed;
    size_t stride;     /* distance from one number's field to the next one's */
    uint16_t min, max; /* of config_byte, _short and _speed */
    /* The value that 0 in the field stands for, for these kinds. */
    uint16_t zero;
    bool is_live; /* a change takes effect at once, without a restart */
};

extern const struct config_kind config_byte, /* uint8_t */
    config_short,                            /* uint16_t */
    config_speed,                            /* uint8_t, 10 or 25 */
    config_switch,                           /* bool */
    config_fec,                              /* enum config_fec */
    config_lldp,                             /* enum config_lldp */
    config_lag,                              /* enum config_lag */
    config_profile,                          /* enum config_profile */
    config_listed,                           /* enum config_listed */
    config_tls,                              /* enum config_tls */
    config_port_ipv4, /* in struct config_port, with the prefix length */
    config_port_ipv6, /* in struct config_port, with the prefix length */
    config_extra,     /* in struct config_address, with the prefix length */
    config_ipv4,      /* 4 bytes */
    config_ipv6,      /* 16 bytes */
    config_server,    /* 16 bytes, IPv4 or IPv6 */
    config_word,      /* a name */
    config_mask,      /* uint8_t, one bit per priority */
    config_nsids;     /* CONFIG_NSIDS bits, in words of 32 */

/** The name of a FEC, as console and log print it. */
const char *config_fec_name(enum config_fec fec);

/** @return false when `text` names no FEC; `fec` is unchanged then */
MUST_USE bool config_fec_parse(const char *text, enum config_fec *fec);

#endif
