/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that epoll watches. */
#include <unistd.h>

#include "program.h"

bool source_open(struct program *program, struct source *source, int fd,
                 uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    if (epoll_ctl(program->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        return false;
    }
    source->fd = fd;
    return true;
}

void source_change(struct program *program, struct source *source,
                   uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    if (source->fd >= 0) {
        (void)epoll_ctl(program->epoll, EPOLL_CTL_MOD, source->fd, &event);
    }
}

void source_close(struct source *source)
{
    if (source->fd >= 0) {
        (void)close(source->fd);
        source->fd = -1;
    }
}
