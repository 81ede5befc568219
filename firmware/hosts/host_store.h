/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of hosts in flash: two copies, of which the newest intact one is in
 * force.  A power cut during a write leaves the old or the new list.
 * Reference: docs/hardware/flash.md, "Hosts"
 */
#ifndef ESSD_HOSTS_HOST_STORE_H
#define ESSD_HOSTS_HOST_STORE_H

#include "firmware/drivers/flash.h"
#include "firmware/hosts/host_list.h"

enum host_store_state {
    HOST_STORE_EMPTY,   /* no list was ever written */
    HOST_STORE_INTACT,  /* the list was read */
    HOST_STORE_DAMAGED, /* there is a list, but no copy of it is intact */
};

/** Read the list in force; it is empty if there is none. */
MUST_USE enum host_store_state host_store_read(const struct flash *flash,
                                               struct host_list *list);

/** Write the list over the copy that is not in force.
 * @return false when the flash refuses the write; the old list is in force */
MUST_USE bool host_store_write(const struct flash *flash,
                               const struct host_list *list);

#endif
