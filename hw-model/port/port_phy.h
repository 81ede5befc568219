/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides from the settings of both ends whether a link comes up, and with
 * which speed, FEC and faults.  No function has side effects.
 * Spec: IEEE 802.3 clause 73.6.5 (FEC bits and their resolution), 81.3.4 (local
 * and remote fault).  Reference: docs/hardware/port.md, section 3.
 *
 * Not implemented: the duration of page exchange and training; next pages.
 */
#ifndef ESSD_HW_PORT_PHY_H
#define ESSD_HW_PORT_PHY_H

#include "lib/util.h"

/* A setting of the link partner besides enum port_fec: it negotiates FEC. */
enum { PHY_PARTNER_AUTO = 3 };

struct phy_partner {
    uint32_t speed_mbps; /* 10000 or 25000 */
    uint8_t fec;         /* enum port_fec or PHY_PARTNER_AUTO */
    uint8_t is_present;  /* the partner is powered and sends */
    uint8_t has_fault;   /* the partner receives no signal, and reports that */
};

struct phy_own {
    uint32_t speed_mbps;
    uint8_t fec; /* enum port_fec */
    bool is_enabled;
    bool has_cable;
};

struct phy_link {
    uint8_t reason; /* enum port_link_reason */
    uint8_t fec;    /* enum port_fec in use while the link is up */
    bool has_signal;
    bool has_local_fault;
    bool has_remote_fault;
    bool is_negotiating; /* the partner sent its clause 73 bits */
    uint8_t own_an;      /* enum port_an */
    uint8_t partner_an;
};

/** The clause 73 bits of an end that requests `fec` and supports both codes. */
uint8_t phy_an_bits(uint32_t speed_mbps, uint8_t fec);

/** The FEC mode that two ends with these bits agree on: enum port_fec. */
uint8_t phy_an_resolve(uint32_t speed_mbps, uint8_t a, uint8_t b);

/** Decide whether the link is up, and if not, the first reason that applies. */
struct phy_link phy_judge(const struct phy_own *own,
                          const struct phy_partner *partner);

#endif
