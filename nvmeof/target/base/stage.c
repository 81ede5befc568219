/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What counts at each stage of a connection.
 *
 * A peer shows more of itself with each stage.  Nothing is given to it, and
 * nothing is taken from another host for it, before it has shown what that
 * needs:
 *
 *  stage        shown by the peer      exists             counts as
 *  -----------  ---------------------  -----------------  ------------------
 *  requested    nothing: its address   queue pair,        a place in the
 *               may be forged          CONNECTING         queue budget
 *  established  it receives at its     the same           the same
 *               address
 *  claimed,     a name that has a      controller,        a slot and a CNTLID
 *  admin queue  secret                 UNPROVEN           its reserve
 *  claimed,     names of a host,       queue pair,        the same as
 *  I/O queue    which are not secret   AUTHENTICATING     established
 *  discovery    it receives at its     discovery          a slot and a CNTLID;
 *               address                controller         its reserve; hears of
 *                                                         its log
 *  proven       the secret, or that    controller with    everything below
 *               none is needed         namespaces, QIDs
 *
 *  stage        time limit                            limit of number
 *  -----------  ------------------------------------  -----------------------
 *  requested    the connection manager's              rdma_half_open.c
 *  established  30 s for Connect                      share of the address
 *  claimed      120 s a message, 300 s in all, and    the same, and 64
 *               none that the host has chosen         sessions
 *  discovery    KATO, or 120 s                        share of the address
 *  proven       KATO                                  the data sheet's
 *
 * The share of an address is in share.c.  Authentication asks nobody for a
 * proof whose entry in the host list has no secret, or who has no entry: such a
 * host is proven when its Connect is accepted.  So on a drive without secrets,
 * whoever may connect is proven.
 *
 * The reserve is NVMF_UNPROVEN_BUFS buffers, which nobody else gets: buffer.c.
 *
 * Hosts have shares of more than queue pairs: of the error log, of persistent
 * events, of the writes that the flash endures.  In them, a host counts as its
 * name only after it has proven with a secret that the name is its own.  Before
 * that, and without a secret, it counts as its address, also when its name is
 * on the list: anybody may say that name.  ctrl_host_number() is the number of
 * what it counts as.
 *
 * An unproven I/O queue has no QID.  Several of them may claim the same one;
 * the first that proves its identity gets it, and the others end.  Its commands
 * do not restart the controller's keep-alive timer, and use no buffers of it.
 *
 * docs/nvme.md says what users notice of it.
 */
#include "nvmeof/target/base/base.h"

enum {
    AFTER = CTRL_MAY_WRITE | CTRL_IS_MANAGED,
    NVM = CTRL_IS_MEMBER | AFTER,
    DISCOVERY = CTRL_HAS_SLOT | CTRL_TAKES_QUEUES | CTRL_HEARS,
};

/* What is true of a controller in each state. */
static const uint8_t facts[CTRL_STATES] = {
    [CTRL_FREE] = 0,
    [CTRL_UNPROVEN] = CTRL_HAS_SLOT,
    [CTRL_DISABLED] = CTRL_HAS_SLOT | CTRL_TAKES_QUEUES | NVM,
    [CTRL_READY] = CTRL_HAS_SLOT | CTRL_TAKES_QUEUES | NVM | CTRL_HEARS |
                   CTRL_HEARS_NVM | CTRL_IS_IN_USE,
    [CTRL_RESETTING] = CTRL_HAS_SLOT | CTRL_TAKES_QUEUES | NVM | CTRL_IS_IN_USE,
    [CTRL_FAILED] = CTRL_HAS_SLOT | CTRL_TAKES_QUEUES | NVM,
    [CTRL_PARTING] = CTRL_HAS_SLOT | AFTER,
    [CTRL_ENDING] = CTRL_HAS_SLOT | AFTER,
};

bool ctrl_is(const struct nvmf_ctrl *ctrl, enum ctrl_fact fact)
{
    return (facts[ctrl->state] & fact) &&
           (!ctrl->is_discovery || (DISCOVERY & (unsigned int)fact));
}
