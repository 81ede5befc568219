/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of the port's core share.  No other file includes
 * this.
 */
#ifndef ESSD_HW_PORT_INTERNAL_H
#define ESSD_HW_PORT_INTERNAL_H

#include "lib/regfields.h"
#include "hw-model/core/shared_word.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/port.h"
#include "lib/bytes.h"

enum { PORT_FRAME_MIN = 60, PORT_FCS_LEN = 4 };

static inline void *port_dma(const struct hw_port *port, uint64_t addr,
                             uint64_t len)
{
    return port->config.env.dma(port->config.env.ctx, addr, len);
}

/* The same for memory of which the port overwrites all bytes. */
static inline void *port_dma_write(const struct hw_port *port, uint64_t addr,
                                   uint64_t len)
{
    return port->config.env.dma_write(port->config.env.ctx, addr, len);
}

static inline bool port_is_dram(const struct hw_port *port, uint64_t addr,
                                uint64_t len)
{
    return port->config.env.is_dram(port->config.env.ctx, addr, len);
}

/* The page while the rings are on and it has no error that cannot be corrected,
 * or NULL. */
static inline uint8_t *port_page(const struct hw_port *port)
{
    return port->rings_on ? port_dma(port, port->page_addr, PORT_PAGE_LEN)
                          : NULL;
}

static inline void port_count(struct hw_port *port, enum port_counter counter,
                              uint64_t n)
{
    port->counters[counter] += n;
}

/* Set bits of the interrupt status and update the interrupt line. */
void port_irq_raise(struct hw_port *port, uint32_t bits);

/*
 * A ring index moved: raise the interrupt if firmware armed it for one of
 * `armed`.
 */
void port_ring_moved(struct hw_port *port, uint8_t *page, uint32_t armed);

/*
 * Process a MAC Control frame.  Like any frame, it was checked and counted
 * before.
 */
void port_pause_receive(struct hw_port *port, const uint8_t *data, size_t len);

/* End the pauses of all priorities except those in `still`. */
void port_pause_end(struct hw_port *port, uint8_t still);

/*
 * After loading, end the pauses that are over, and limit the others to the
 * longest possible pause.
 */
void port_pause_loaded(struct hw_port *port);

/* ---- hw_port_mdio.c */

/* The state of the link may have changed: latch the link bits that are 0. */
void port_mdio_note_link(struct hw_port *port, const struct phy_link *link);
void port_mdio_reset(struct hw_port *port);

/* ---- hw_port_timeout.c */

/*
 * Note that the link is blocked, because it has taken fewer frames than
 * offered.
 */
void port_link_refused(struct hw_port *port);

/*
 * Whether frames of that priority are dropped because they have waited too
 * long.
 */
bool port_is_lost(const struct hw_port *port, uint8_t priority);

/* Set the timer to the first end of a pause or time-out. */
void port_timer_update(struct hw_port *port);

/* ---- hw_port_tx.c */

/* Send waiting frames of the raw ring and the RNIC, as far as the link takes
 * them. */
void port_tx_serve(struct hw_port *port);

#endif
