/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command identifiers in use.  An identifier is in use from the arrival of its
 * command until the target gives the response to the transport, because the
 * host may use it again when it has the response.
 * Spec: NVM Express Base 1.4 section 4.2; Command ID Conflict in figure 127,
 * which leaves to the controller how many commands it searches.
 *
 * Two kinds of commands are left out of the search:
 *  + Fabrics commands.  A host that has lost track of its commands has to reset
 *    or shut down the controller with them.
 *  + Asynchronous Event Requests that wait for an event.  A host that no longer
 *    wants events may forget them: SPDK does so before it shuts a controller
 *    down, and its next command has the identifier of such a request.  See
 *    event_give_up() for what becomes of the request.
 *
 * Almost always a queue pair's list for an identifier is empty when a command
 * arrives; internal.h handles that case.
 */
#include "nvmeof/target/request/request.h"

bool cid_is_used(const struct nvmf_request *list, uint16_t cid)
{
    for (; list != NULL; list = list->next_cid) {
        if (list->sqe.cid == cid) {
            return true;
        }
    }
    return false;
}
