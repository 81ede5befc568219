/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls a function of a test when the target's next operation at the medium has
 * ended, before the target learns of it.
 */
#ifndef ESSD_TESTS_NATIVE_MEDIA_SPY_H
#define ESSD_TESTS_NATIVE_MEDIA_SPY_H

#include "nvmeof/target/state.h"

struct media_spy {
    struct media_owner owner; /* stands in for the target's */
    struct media_io io;
    void (*at_end)(const struct media_io *io);
    struct nvmf_media *media;
    bool (*submit)(void *ctx, const struct media_io *io);
};

static struct media_spy media_spy;

static void media_spy_end(struct media_owner *owner, enum media_status status)
{
    (void)owner;
    media_spy.at_end(&media_spy.io);
    media_end(media_spy.io.owner, status);
}

static bool media_spy_submit(void *ctx, const struct media_io *io)
{
    struct media_io copy = *io;

    copy.owner = &media_spy.owner;
    if (!media_spy.submit(ctx, &copy)) {
        return false;
    }
    media_spy.io = *io;
    media_spy.media->submit = media_spy.submit;
    return true;
}

/** Wait for the target's next operation.  Its io is given to at_end(). */
static inline void media_spy_start(struct nvmf_target *target,
                                   void (*at_end)(const struct media_io *io))
{
    media_spy = (struct media_spy){
        .owner = {media_spy_end},
        .at_end = at_end,
        .media = &target->media,
        .submit = target->media.submit,
    };
    target->media.submit = media_spy_submit;
}

#endif
