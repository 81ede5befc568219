/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLDP neighbours as text: docs/console.md, "Neighbours".  A peer's text is cut
 * to NEIGHBOUR_TEXT_MAX characters; characters other than printable ASCII
 * become '?'.
 */
#ifndef ESSD_TEXT_NEIGHBOUR_TEXT_H
#define ESSD_TEXT_NEIGHBOUR_TEXT_H

#include "firmware/hal/log.h"
#include "net/stack/lldp.h"

enum { NEIGHBOUR_TEXT_MAX = 64 };

struct neighbour_text {
    char text[NEIGHBOUR_TEXT_MAX + 1];
};

struct neighbour_text neighbour_text(const struct lldp_text *text);

/**
 * Format an ID.  An ID of 6 bytes with subtype `mac_subtype` is a MAC address.
 */
struct neighbour_text neighbour_text_id(const struct lldp_id *id,
                                        uint8_t mac_subtype);

enum { NEIGHBOUR_CAPABILITIES = 11 };

/** The name of bit `i` of the capabilities, below NEIGHBOUR_CAPABILITIES. */
const char *neighbour_capability(unsigned int i);

/** Print the neighbours of one port on the console. */
void neighbour_text_say(struct log *log, const struct lldp_agent *agent,
                        uint8_t port, uint64_t now_us);

#endif
