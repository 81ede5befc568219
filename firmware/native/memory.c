/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/memory.h"

#include <stdint.h>
#include <sys/mman.h>

#include "lib/util.h"

enum { PAGE = 4096, ALIGN = 64, HUGE_PAGE = 2 << 20 };

/* LeakSanitizer's: it looks for pointers to the heap in these regions, too.
 * NULL in programs without it. */
__attribute__((weak)) void __lsan_register_root_region(const void *start,
                                                       size_t len_bytes);
__attribute__((weak)) void __lsan_unregister_root_region(const void *start,
                                                         size_t len_bytes);

/* What stands before the memory. */
struct mapping {
    void *start;
    size_t len_bytes;
    size_t root_bytes; /* in which there may be pointers */
};

_Static_assert(sizeof(struct mapping) <= ALIGN, "it fits before the memory");

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

void native_memory_use_huge_pages(void *start, size_t len_bytes)
{
    /* A kernel without huge pages refuses, and nothing changes. */
    (void)madvise(start, len_bytes, MADV_HUGEPAGE);
}

void *native_memory_get_sparse(size_t len_bytes)
{
    size_t used = round_up(len_bytes, ALIGN);
    size_t body = round_up(ALIGN + used, HUGE_PAGE);
    struct mapping mapping = {.len_bytes = HUGE_PAGE + body + PAGE};
    uint8_t *end, *memory;

    mapping.start = mmap(NULL, mapping.len_bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT(mapping.start != MAP_FAILED);
    end = (uint8_t *)round_up((uintptr_t)mapping.start, HUGE_PAGE) + body;
    ASSERT(mprotect(end - body, body, PROT_READ | PROT_WRITE) == 0);
    memory = end - used;
    *(struct mapping *)(void *)(memory - ALIGN) = mapping;
    return memory;
}

void *native_memory_get(size_t len_bytes)
{
    uint8_t *memory = native_memory_get_sparse(len_bytes);
    struct mapping *mapping = (struct mapping *)(void *)(memory - ALIGN);

    native_memory_use_huge_pages(mapping->start, mapping->len_bytes);
    if (__lsan_register_root_region != NULL) {
        mapping->root_bytes = len_bytes;
        __lsan_register_root_region(memory, len_bytes);
    }
    return memory;
}

void native_memory_free(void *memory)
{
    struct mapping mapping;

    if (memory == NULL) {
        return;
    }
    mapping = *(struct mapping *)(void *)((uint8_t *)memory - ALIGN);
    if (mapping.root_bytes != 0) {
        __lsan_unregister_root_region(memory, mapping.root_bytes);
    }
    ASSERT(munmap(mapping.start, mapping.len_bytes) == 0);
}
