/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words KEY=VALUE that describe a port, on the command line (--port) and in
 * the control request `set`.  docs/switch.md lists them.
 */
#ifndef ESSD_TOOLS_SWITCH_WORDS_H
#define ESSD_TOOLS_SWITCH_WORDS_H

#include "net/switch/switch.h"

enum {
    PORT_NAME_LEN = 64, /* with the terminating zero, as all of these */
    ADDRESS_LEN = 256,
    FILE_LEN = 4096,
    COMPLAINT_LEN = 512,
};

enum port_kind {
    PORT_NO_KIND,
    PORT_LISTEN,
    PORT_DIAL,
    PORT_TCP_LISTEN,
    PORT_TCP,
    PORT_FD,
    PORT_TAP,
    PORT_IFACE,
    PORT_KINDS,
};

/** "listen" and so on, as in the words. */
extern const char *const port_kind_name[PORT_KINDS];

struct capture_options {
    char file[FILE_LEN];  /* "": no capture */
    uint64_t limit_bytes; /* a longer file is rotated; 0: never */
    uint32_t files;       /* kept beside the one that is written */
};

struct port_options {
    enum port_kind kind;
    char address[ADDRESS_LEN]; /* path, ADDR:PORT, name or number */
    char name[PORT_NAME_LEN];
    uint32_t queue_bytes;
    struct switch_port_config config;
    struct capture_options capture;
    uint16_t native;   /* VLAN_NONE: none */
    bool native_given; /* The words of this request contain `native`. */
    bool seed_given;   /* The words of this request contain `seed`. */
};

struct complaint {
    char text[COMPLAINT_LEN];
};

/** Write a complaint. @return false */
__attribute__((format(printf, 2, 3))) bool complain(struct complaint *complaint,
                                                    const char *format, ...);

/** Fill in the options of a port for which no word was given. */
void words_default(struct port_options *options, uint8_t number);

/**
 * Apply one word to the options.
 *
 * @param may_place  whether words may say what the port is (only at the start)
 * @return false when the word is invalid; some options may then have changed
 */
MUST_USE bool words_apply(struct port_options *options, const char *word,
                          bool may_place, struct complaint *complaint);

/** After the last word: check that the words fit together. */
MUST_USE bool words_finish(struct port_options *options,
                           struct complaint *complaint);

/** A whole number of at most `max`, without sign and suffix. */
MUST_USE bool words_number(const char *text, uint64_t max, uint64_t *value);

/** Names of the words, from 0; NULL: no more. */
const char *words_name(unsigned number);

#endif
