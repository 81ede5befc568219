/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a front-end, mapped: see vhost_map.h. */
#define _GNU_SOURCE 1 /* F_GET_SEALS; QEMU defines it, too */
#include "hw-model/vhost/vhost_map.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * The mappings, which the signal's handler reads in the midst of an access.
 * `size` is written last, and 0 first: a handler sees no half an entry.
 */
static struct {
    _Atomic(uintptr_t) start;
    _Atomic(uint64_t) size; /* in whole pages of the file; 0: it is free */
    atomic_bool is_lost;
} maps[VHOST_MAPS];

static atomic_uint losses;
static struct sigaction next_action; /* for what is not ours */
static _Thread_local bool has_begun;

/* Called by a signal: only what is safe there. */
static bool map_replace(uintptr_t at)
{
    for (unsigned int i = 0; i < VHOST_MAPS; i++) {
        uintptr_t start = atomic_load(&maps[i].start);
        uint64_t size = atomic_load(&maps[i].size);

        if (at >= start && at - start < size) {
            if (mmap((void *)start, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                     -1, 0) == MAP_FAILED) {
                return false;
            }
            atomic_store(&maps[i].is_lost, true);
            atomic_fetch_add(&losses, 1);
            return true;
        }
    }
    return false;
}

static void map_on_sigbus(int number, siginfo_t *info, void *context)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};

    /* A positive code: the kernel's, because of an access. */
    if (info->si_code > 0 && map_replace((uintptr_t)info->si_addr)) {
        return;
    }
    if (next_action.sa_flags & SA_SIGINFO) {
        next_action.sa_sigaction(number, info, context);
    } else if (next_action.sa_handler != SIG_DFL &&
               next_action.sa_handler != SIG_IGN) {
        next_action.sa_handler(number);
    } else {
        /* The access is repeated, and ends the process. */
        (void)sigaction(SIGBUS, &usual, NULL);
    }
}

/* Others replace the handler, some of them for a while: look each time. */
static bool map_catch_sigbus(void)
{
    const struct sigaction ours = {
        .sa_sigaction = map_on_sigbus,
        .sa_flags = SA_SIGINFO,
    };
    struct sigaction now;

    if (sigaction(SIGBUS, NULL, &now) != 0) {
        return false;
    }
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == map_on_sigbus) {
        return true;
    }
    next_action = now;
    return sigaction(SIGBUS, &ours, NULL) == 0;
}

void vhost_map_begin(void)
{
    sigset_t only;

    if (!has_begun) {
        sigemptyset(&only);
        sigaddset(&only, SIGBUS);
        has_begun = pthread_sigmask(SIG_UNBLOCK, &only, NULL) == 0;
    }
}

/* A free entry, or VHOST_MAPS. */
static unsigned int map_find_free(void)
{
    unsigned int i = 0;

    while (i < VHOST_MAPS && atomic_load(&maps[i].size) != 0) {
        i++;
    }
    return i;
}

/* The entry of a mapping, or VHOST_MAPS. */
static unsigned int map_find(const uint8_t *data)
{
    unsigned int i = 0;

    while (i < VHOST_MAPS && (atomic_load(&maps[i].size) == 0 ||
                              atomic_load(&maps[i].start) != (uintptr_t)data)) {
        i++;
    }
    return i;
}

/*
 * How much of a file the kernel maps for `size` bytes: whole pages, which of
 * hugetlbfs are huge.  It refuses to replace or to unmap a part of one.
 *
 * @return 0 if that is not known
 */
static uint64_t map_whole_pages(int fd, uint64_t size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct statfs system;

    if (fstatfs(fd, &system) < 0) {
        return 0;
    }
    if (system.f_type == HUGETLBFS_MAGIC) {
        page = (uint64_t)system.f_bsize;
    }
    return (size + page - 1) / page * page;
}

uint8_t *vhost_map(int fd, uint64_t size)
{
    unsigned int entry = map_find_free();
    struct stat status;
    void *data;

    if (entry == VHOST_MAPS || size == 0 || size > SIZE_MAX ||
        fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &status) < 0 ||
        status.st_size < 0 || (uint64_t)status.st_size < size ||
        !map_catch_sigbus()) {
        return NULL;
    }
    size = map_whole_pages(fd, size);
    data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                fd, 0);
    if (data == MAP_FAILED) {
        return NULL;
    }
    atomic_store(&maps[entry].is_lost, false);
    atomic_store(&maps[entry].start, (uintptr_t)data);
    atomic_store(&maps[entry].size, size);
    return data;
}

void vhost_unmap(uint8_t *data)
{
    unsigned int entry = map_find(data);
    uint64_t size;

    if (entry < VHOST_MAPS) {
        size = atomic_exchange(&maps[entry].size, 0);
        munmap(data, size);
    }
}

static bool map_is_lost(const uint8_t *data)
{
    unsigned int entry = map_find(data);

    return entry < VHOST_MAPS && atomic_load(&maps[entry].is_lost);
}

bool vhost_map_has_lost(const struct vhost_memory *memory, unsigned int *known)
{
    unsigned int now = atomic_load(&losses);
    bool has_lost = false;

    if (now == *known) {
        return false;
    }
    *known = now;
    for (unsigned int i = 0; i < memory->count; i++) {
        const struct vhost_region *region = &memory->regions[i];

        has_lost = has_lost || map_is_lost(region->data - region->offset);
    }
    return has_lost || (memory->log && map_is_lost(memory->log));
}
