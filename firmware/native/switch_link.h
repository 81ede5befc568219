/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An Ethernet switch (net/switch) between nodes of the native world: each of
 * its ports is a link.  Its cables may have a speed, a delay, jitter and loss.
 */
#ifndef ESSD_NATIVE_SWITCH_LINK_H
#define ESSD_NATIVE_SWITCH_LINK_H

#include "net/switch/switch.h"
#include "world/link.h"

enum { SWITCH_LINKS = 8 };

struct switch_links;

struct switch_link {
    struct switch_links *all;
    uint8_t number;
    bool is_plugged;
    bool was_full;
    struct link_port plug;
};

struct switch_links {
    struct switch_core *core;
    void *memory;
    uint8_t count;
    uint64_t due_ns; /* when the switch has to run */
    struct switch_link links[SWITCH_LINKS];
};

/**
 * Make a switch.  Its ports are connected when something is plugged in.
 *
 * @param count  of ports, at most SWITCH_LINKS
 * @param cable  both directions of every port; NULL: frames take no time
 */
void switch_links_init(struct switch_links *all, uint8_t count,
                       const struct shaper_config *cable);
void switch_links_end(struct switch_links *all);

/** A port of the switch as a link. */
struct link switch_link(struct switch_links *all, uint8_t port);

#endif
