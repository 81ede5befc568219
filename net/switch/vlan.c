/* SPDX-License-Identifier: BSD-2-Clause */
/* VLAN membership and tags: see vlan.h. */
#include "net/switch/vlan.h"

/* A priority tag (VID 0) carries a priority and says nothing of the VLAN. */
static bool vlan_is_tagged(const struct eth *eth)
{
    return eth->tagged && eth->vlan != VLAN_NONE;
}

uint16_t vlan_of_frame(const struct switch_vlan *port, const struct eth *eth)
{
    if (vlan_is_tagged(eth) && eth->vlan > VLAN_MAX) {
        return VLAN_NONE;
    }
    switch (port->mode) {
    case SWITCH_VLAN_ACCESS:
        return !vlan_is_tagged(eth) || eth->vlan == port->vid ? port->vid
                                                              : VLAN_NONE;
    case SWITCH_VLAN_TRUNK:
        if (!vlan_is_tagged(eth)) {
            return port->vid;
        }
        return vlan_has_member(port, eth->vlan) ? eth->vlan : VLAN_NONE;
    default:
        return vlan_is_tagged(eth) ? eth->vlan : VLAN_DEFAULT;
    }
}

bool vlan_has_member(const struct switch_vlan *port, uint16_t vid)
{
    switch (port->mode) {
    case SWITCH_VLAN_ACCESS:
        return vid == port->vid;
    case SWITCH_VLAN_TRUNK:
        return vid == port->vid || vlan_is_allowed(port, vid);
    default:
        return true;
    }
}

static bool vlan_leaves_tagged(const struct switch_vlan *port, uint16_t vid)
{
    switch (port->mode) {
    case SWITCH_VLAN_ACCESS:
        return false;
    case SWITCH_VLAN_TRUNK:
        return vid != port->vid;
    default:
        return vid != VLAN_DEFAULT;
    }
}

bool vlan_rewrites(const struct switch_vlan *from, const struct switch_vlan *to,
                   uint16_t vid, const struct eth *eth, struct eth *leaving)
{
    bool tagged = vlan_leaves_tagged(to, vid);

    if ((from->mode == SWITCH_VLAN_TRANSPARENT &&
         to->mode == SWITCH_VLAN_TRANSPARENT) ||
        (tagged == eth->tagged && (!tagged || eth->vlan == vid))) {
        return false;
    }
    *leaving = *eth;
    leaving->tagged = tagged;
    leaving->vlan = tagged ? vid : VLAN_NONE;
    return true;
}
