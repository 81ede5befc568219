/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command identifiers in use.  An identifier is in use from the arrival of its
 * command until the target gives the response to the transport, because the
 * host may use it again when it has the response.
 * Spec: NVM Express Base 1.4 section 4.2; Command ID Conflict in figure 127.
 *
 * Almost always a queue pair's list for an identifier is empty when a command
 * arrives; internal.h handles that case.
 */
#include "nvmeof/target/internal.h"

bool cid_is_used(const struct nvmf_request *list, uint16_t cid)
{
    for (; list != NULL; list = list->next_cid) {
        if (list->sqe.cid == cid) {
            return true;
        }
    }
    return false;
}
