/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/media_seam.h"

#include "nvmeof/limits.h"

static const uint8_t opcode_of[] = {
    [MEDIA_READ] = MEDIA_CMD_READ,
    [MEDIA_WRITE] = MEDIA_CMD_WRITE,
    [MEDIA_FLUSH] = MEDIA_CMD_FLUSH,
    [MEDIA_WRITE_ZEROES] = MEDIA_CMD_WRITE_ZEROES,
    [MEDIA_DEALLOCATE] = MEDIA_CMD_DEALLOCATE,
};

static bool submit_command(void *ctx, const struct media_io *io)
{
    struct media_piece pieces[NVMF_MAX_PIECES];
    struct media_command command = {
        .opcode = (enum media_opcode)opcode_of[io->op],
        .fua = io->fua,
        .piece_count = io->piece_count,
        .count_blocks = io->count_blocks,
        .first_lba = io->first_lba,
        .cookie = (uintptr_t)io->cookie,
        .tag = io->number,
        .pieces = pieces,
    };

    ASSERT((io->ns == 0 || io->ns == MEDIA_NS_ALL) &&
           io->piece_count <= NVMF_MAX_PIECES);
    for (uint8_t i = 0; i < io->piece_count; i++) {
        pieces[i] =
            (struct media_piece){io->pieces[i].ptr, io->pieces[i].len_bytes};
    }
    return media_submit(ctx, &command);
}

static void set_volatile(void *ctx, bool is_enabled)
{
    media_set_cache(ctx, is_enabled);
}

static void read_geometry(void *ctx, uint32_t ns,
                          struct media_geometry *geometry)
{
    struct media_info info;

    ASSERT(ns == 0);
    media_info_get(ctx, &info);
    *geometry = (struct media_geometry){
        .size_blocks = info.size_blocks,
        .block_shift = info.block_shift,
        .has_volatile_cache = info.cache_bytes != 0,
    };
}

struct nvmf_media media_seam(struct media *media)
{
    return (struct nvmf_media){
        .ctx = media,
        .submit = submit_command,
        .set_volatile = set_volatile,
        .geometry = read_geometry,
    };
}

enum media_status media_seam_status(enum media_cqe_status status)
{
    switch (status) {
    case MEDIA_CQE_OK:
        return MEDIA_OK;
    case MEDIA_CQE_LBA_RANGE:
        return MEDIA_LBA_RANGE;
    case MEDIA_CQE_READ_ERROR:
        return MEDIA_READ_ERROR;
    case MEDIA_CQE_WRITE_ERROR:
    case MEDIA_CQE_NO_SPACE:
        return MEDIA_WRITE_ERROR;
    case MEDIA_CQE_READ_ONLY:
        return MEDIA_READ_ONLY;
    case MEDIA_CQE_ABORTED:
        return MEDIA_ABORTED;
    case MEDIA_CQE_BAD_OPCODE:
    case MEDIA_CQE_BAD_ARGUMENT:
    case MEDIA_CQE_BAD_ADDRESS:
        break;
    }
    return MEDIA_INTERNAL_ERROR;
}
