/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/port/port_phy.h"

#include "lib/regfields.h"
#include "hw-model/regs/port.h"

enum { SPEED_25G_MBPS = 25000 };

uint8_t phy_an_bits(uint32_t speed_mbps, uint8_t fec)
{
    uint8_t bits = PORT_AN_10G_FEC_ABILITY;

    if (fec == PORT_FEC_RS) {
        bits |= PORT_AN_25G_RS_REQUEST;
    } else if (fec == PORT_FEC_FC) {
        bits |= speed_mbps == SPEED_25G_MBPS ? PORT_AN_25G_BASER_REQUEST
                                             : PORT_AN_10G_FEC_REQUEST;
    }
    return bits;
}

uint8_t phy_an_resolve(uint32_t speed_mbps, uint8_t a, uint8_t b)
{
    uint8_t wanted = a | b; /* a request from one end is enough */

    if (speed_mbps != SPEED_25G_MBPS) {
        return (a & b & PORT_AN_10G_FEC_ABILITY) &&
                       (wanted & PORT_AN_10G_FEC_REQUEST)
                   ? PORT_FEC_FC
                   : PORT_FEC_NONE;
    }
    if (wanted & PORT_AN_25G_RS_REQUEST) {
        return PORT_FEC_RS;
    }
    return wanted & PORT_AN_25G_BASER_REQUEST ? PORT_FEC_FC : PORT_FEC_NONE;
}

static uint8_t reason_of(const struct phy_own *own,
                         const struct phy_partner *partner)
{
    if (!own->is_enabled) {
        return PORT_REASON_DISABLED;
    }
    if (!own->has_cable) {
        return PORT_REASON_CABLE;
    }
    if (!partner->is_present) {
        return PORT_REASON_NO_PARTNER;
    }
    if (partner->speed_mbps != own->speed_mbps) {
        return PORT_REASON_SPEED;
    }
    if (partner->fec != PHY_PARTNER_AUTO && partner->fec != own->fec) {
        return PORT_REASON_FEC;
    }
    return partner->has_fault ? PORT_REASON_REMOTE_FAULT : PORT_REASON_NONE;
}

struct phy_link phy_judge(const struct phy_own *own,
                          const struct phy_partner *partner)
{
    struct phy_link link = {
        .reason = reason_of(own, partner),
        .fec = own->fec,
        .has_signal = own->has_cable && partner->is_present,
        .own_an = phy_an_bits(own->speed_mbps, own->fec),
    };

    link.is_negotiating = link.has_signal && partner->fec == PHY_PARTNER_AUTO;
    if (link.is_negotiating) {
        link.partner_an = phy_an_bits(partner->speed_mbps, PORT_FEC_NONE);
        link.fec =
            phy_an_resolve(own->speed_mbps, link.own_an, link.partner_an);
    }
    /* Without lock, no remote fault can be received either. */
    link.has_remote_fault = link.reason == PORT_REASON_REMOTE_FAULT;
    link.has_local_fault = own->is_enabled && link.reason != PORT_REASON_NONE &&
                           !link.has_remote_fault;
    return link;
}
