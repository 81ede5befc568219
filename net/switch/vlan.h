/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which VLAN a frame belongs to, which ports are members of it, and whether
 * the frame leaves with a tag.  Spec: IEEE 802.1Q clauses 6.9 and 8.8.2.
 *
 * Left out: service tags (802.1ad): a frame that starts with one counts as
 * untagged.
 */
#ifndef ESSD_NET_SWITCH_VLAN_H
#define ESSD_NET_SWITCH_VLAN_H

#include "lib/util.h"
#include "net/wire/eth.h"

enum {
    VLAN_NONE = 0,
    VLAN_DEFAULT = 1, /* of untagged frames on a transparent port */
    VLAN_MAX = 4094,
    VLAN_BITMAP = 512, /* bytes: one bit for each VID */
};

enum switch_vlan_mode {
    /*
     * Member of all VLANs.  Between two such ports a frame does not change at
     * all; to other ports, an untagged or priority-tagged frame is of VLAN 1.
     */
    SWITCH_VLAN_TRANSPARENT,
    SWITCH_VLAN_ACCESS, /* member of `vid` only, whose frames have no tag */
    /* Member of the VLANs in `allowed`, whose frames have tags, and of the
     * native VLAN `vid`, whose frames have none. */
    SWITCH_VLAN_TRUNK,
};

struct switch_vlan {
    enum switch_vlan_mode mode;
    uint16_t vid; /* 1..VLAN_MAX; of a trunk without native VLAN: VLAN_NONE */
    uint8_t allowed[VLAN_BITMAP]; /* of a trunk; bit VID % 8 of byte VID / 8 */
};

static inline bool vlan_is_allowed(const struct switch_vlan *port, uint16_t vid)
{
    return port->allowed[vid / 8] & BIT(vid % 8);
}

static inline bool vlan_is_same(const struct switch_vlan *a,
                                const struct switch_vlan *b)
{
    return a->mode == b->mode && a->vid == b->vid &&
           memcmp(a->allowed, b->allowed, sizeof(a->allowed)) == 0;
}

/** @return the VLAN of a frame that a port received; VLAN_NONE: refused */
MUST_USE uint16_t vlan_of_frame(const struct switch_vlan *port,
                                const struct eth *eth);

/** Whether frames of a VLAN leave through a port. */
MUST_USE bool vlan_has_member(const struct switch_vlan *port, uint16_t vid);

/**
 * The Ethernet header of a frame of VLAN `vid` when it leaves through a port.
 *
 * @return false when it leaves with the header that it came with
 */
MUST_USE bool vlan_rewrites(const struct switch_vlan *from,
                            const struct switch_vlan *to, uint16_t vid,
                            const struct eth *eth, struct eth *leaving);

#endif
