/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of hosts in flash: two copies with the same content.
 *
 * A change writes one copy and then the other one.  It is acknowledged when
 * both hold it, so one damaged copy changes nothing.  A power cut during a
 * change leaves the old or the new list.  Each copy is erased as a whole before
 * it is written, so no secret of an earlier list stays in flash.
 *
 * Older firmware wrote each list into one copy only.  There, the intact copy
 * beside a damaged one may hold an older list, which must not count.  The seal
 * of a copy tells the two apart.
 * Reference: docs/hardware/flash.md, "Hosts"
 */
#ifndef ESSD_HOSTS_HOST_STORE_H
#define ESSD_HOSTS_HOST_STORE_H

#include "firmware/drivers/flash.h"
#include "firmware/hosts/host_list.h"

enum host_store_state {
    HOST_STORE_EMPTY,   /* no list was ever written */
    HOST_STORE_INTACT,  /* the list was read */
    HOST_STORE_DAMAGED, /* there is a list, and no copy is sure to hold it */
};

/* What host_store_repair() found. */
enum host_repair {
    HOST_REPAIR_NONE,     /* both copies hold the list, and nothing else */
    HOST_REPAIR_FINISHED, /* a change was not finished, or older secrets were
                           * left: now both copies hold the list only */
    HOST_REPAIR_DAMAGE,   /* a damaged copy was written again */
    HOST_REPAIR_FAILED,   /* the flash refused it */
};

/** Read the list in force; it is empty if there is none. */
MUST_USE enum host_store_state host_store_read(const struct flash *flash,
                                               struct host_list *list);

/**
 * Make both copies hold the list in force, and nothing else.  Call this once at
 * the start, after host_store_read().
 *
 * @param list  what host_store_read() has read
 */
MUST_USE enum host_repair host_store_repair(const struct flash *flash,
                                            const struct host_list *list);

/** Write the list into both copies, and read them back. */
MUST_USE enum host_save host_store_write(const struct flash *flash,
                                         const struct host_list *list);

#endif
