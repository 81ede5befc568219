/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps the memory of a front-end of vhost-user.
 *
 * The front-end can shorten its file, or fill what holds it, at any time.  An
 * access to a page that is not there is a SIGBUS.  It is caught here: the whole
 * mapping becomes zeroed memory of this process, the access goes on there, and
 * vhost_map_has_lost() is true.  So only the connection has to end.
 *
 * All functions but the handler of the signal are called under one lock.
 */
#ifndef ESSD_HW_VHOST_MAP_H
#define ESSD_HW_VHOST_MAP_H

#include "hw-model/vhost/vhost_memory.h"
#include "lib/util.h"

enum { VHOST_MAPS = 64 }; /* most mappings of this process at one time */

/**
 * Map the first `size` bytes of a memory file: a memfd, or a file of tmpfs.
 * A page of any other file can keep this process waiting for as long as its
 * owner likes (FUSE).
 *
 * @return NULL if the file is of another kind or is shorter, or if there are
 *         VHOST_MAPS mappings already
 */
uint8_t *vhost_map(int fd, uint64_t size);

/** End a mapping of vhost_map(). */
void vhost_unmap(uint8_t *data);

/**
 * Before the first access, each thread must call this: QEMU blocks all signals
 * in its threads, and a SIGBUS that is blocked ends the process.
 */
void vhost_map_begin(void);

/**
 * Whether an access has met a page of this memory that was not there.
 *
 * @param known  how many losses of any memory the caller knows of; at first 0.
 *               If there is no new one, the answer is false
 */
bool vhost_map_has_lost(const struct vhost_memory *memory, unsigned int *known);

#endif
