/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/medium/media_seam.h"

#include "nvmeof/limits.h"

static const uint8_t opcode_of[] = {
    [MEDIA_READ] = MEDIA_CMD_READ,
    [MEDIA_WRITE] = MEDIA_CMD_WRITE,
    [MEDIA_FLUSH] = MEDIA_CMD_FLUSH,
    [MEDIA_WRITE_ZEROES] = MEDIA_CMD_WRITE_ZEROES,
    [MEDIA_DEALLOCATE] = MEDIA_CMD_DEALLOCATE,
};

/* Start an operation whose place on the medium is known. */
static inline __attribute__((always_inline)) bool submit_command(
    struct media *media, const struct media_io *io, uint64_t first_lba,
    uint32_t count_blocks)
{
    struct media_piece pieces[NVMF_MAX_PIECES];
    struct media_command command = {
        .opcode = (enum media_opcode)opcode_of[io->op],
        .fua = io->fua,
        .piece_count = io->piece_count,
        .count_blocks = count_blocks,
        .first_lba = first_lba,
        .cookie = (uintptr_t)io->owner,
        .tag = io->number,
        .pieces = pieces,
    };

    ASSERT(io->piece_count <= NVMF_MAX_PIECES);
    for (uint8_t i = 0; i < io->piece_count; i++) {
        pieces[i] =
            (struct media_piece){io->pieces[i].ptr, io->pieces[i].len_bytes};
    }
    return media_submit(media, &command);
}

bool media_seam_submit(void *media, const struct media_io *io)
{
    return submit_command(media, io, io->first_lba, io->count_blocks);
}

/* All namespaces are on one medium: a flush of one flushes all. */
static __attribute__((noinline)) bool submit_other(
    const struct media_seam *seam, const struct media_io *io)
{
    uint64_t lba = 0;
    uint32_t count = 0;

    volume_note_operation(seam->volume, io);
    if (io->op != MEDIA_FLUSH &&
        !volume_locate(seam->volume, io, &lba, &count)) {
        return volume_submit(seam->volume, io);
    }
    return submit_command(seam->media, io, lba, count);
}

static bool submit_io(void *ctx, const struct media_io *io)
{
    const struct media_seam *seam = ctx;
    uint64_t lba;
    uint32_t count;

    if (__builtin_expect(
            io->op == MEDIA_FLUSH ||
                !volume_locate_linear(seam->volume, io, &lba, &count),
            0)) {
        return submit_other(seam, io);
    }
    return submit_command(seam->media, io, lba, count);
}

static void set_volatile(void *ctx, bool is_enabled)
{
    media_set_cache(((struct media_seam *)ctx)->media, is_enabled);
}

static void read_geometry(void *ctx, uint32_t ns,
                          struct media_geometry *geometry)
{
    volume_geometry(((struct media_seam *)ctx)->volume, ns, geometry);
}

struct nvmf_media media_seam(struct media_seam *seam)
{
    return (struct nvmf_media){
        .ctx = seam,
        .submit = submit_io,
        .set_volatile = set_volatile,
        .geometry = read_geometry,
    };
}

static enum media_status seam_status(enum media_cqe_status status)
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

void media_seam_done(void *ctx, uint64_t cookie, enum media_cqe_status status)
{
    (void)ctx;
    media_end((struct media_owner *)(uintptr_t)cookie, seam_status(status));
}
