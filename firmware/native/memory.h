/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for the large structs of a native node.
 *
 * A test may start thousands of drives.  Each start writes tens of megabytes,
 * and with pages of 4 KiB the kernel then spent more time than the drive.
 */
#ifndef ESSD_FIRMWARE_NATIVE_MEMORY_H
#define ESSD_FIRMWARE_NATIVE_MEMORY_H

#include <stddef.h>

/**
 * Get zeroed memory of its own, in huge pages where the kernel has them.
 *
 * The page next to its end, rounded up to 64 bytes, cannot be accessed.
 *
 * @return never NULL; aligned to 64 bytes; release it with native_memory_free()
 */
void *native_memory_get(size_t len_bytes);

/** The same in small pages, for memory of which little is used, and in which
 * there are no pointers to the heap: LeakSanitizer does not look there. */
void *native_memory_get_sparse(size_t len_bytes);

/** Release what these functions have returned; NULL is allowed. */
void native_memory_free(void *memory);

/** Have the kernel use huge pages for this range, if it has any. */
void native_memory_use_huge_pages(void *start, size_t len_bytes);

#endif
