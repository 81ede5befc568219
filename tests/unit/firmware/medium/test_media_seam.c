/* SPDX-License-Identifier: BSD-2-Clause */
/* How commands and statuses are converted between target and media engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "firmware/medium/media_seam.h"

static struct media_command submitted;
static bool has_room, cache_is_on;

bool media_submit(struct media *media, const struct media_command *command)
{
    assert_null(media);
    submitted = *command;
    return has_room;
}

void media_set_cache(struct media *media, bool is_enabled)
{
    assert_null(media);
    cache_is_on = is_enabled;
}

static unsigned int splits;
static struct volume volume; /* static, because it is large */
static struct media_seam parts = {NULL, &volume};

/*
 * Namespace 3 has windows 5, 6 and 9 of 1 MiB.  The volume's own tests check
 * where blocks are.
 */
bool volume_locate(const struct volume *ctx, const struct media_io *io,
                   uint64_t *lba, uint32_t *count)
{
    assert_ptr_equal(ctx, &volume);
    *lba = 5 * 2048 + io->first_lba * 8;
    *count = io->count_blocks * 8;
    return io->first_lba + io->count_blocks <= 512;
}

/* The volume's own tests divide operations; here they are only counted. */
bool volume_submit(struct volume *ctx, const struct media_io *io)
{
    assert_ptr_equal(ctx, &volume);
    assert_int_equal(io->count_blocks, 7);
    splits++;
    return true;
}

static unsigned int first_writes;

void volume_begin_write(struct volume *ctx)
{
    assert_ptr_equal(ctx, &volume);
    volume.is_watched = false;
    first_writes++;
}

void volume_geometry(const struct volume *ctx, uint32_t ns,
                     struct media_geometry *geometry)
{
    assert_ptr_equal(ctx, &volume);
    *geometry = (struct media_geometry){.size_blocks = ns, .block_shift = 12};
}

/* Namespace 3 has blocks of 4096 bytes, in windows 5, 6 and 9 of 1 MiB. */
static void make_volume(void)
{
    static const uint16_t windows[] = {5, 6, 9};

    volume.window_shift = 11;
    volume.map[3] = (struct volume_map){.windows = windows, .shift = 3};
}

static enum media_status ended;

static void note_end(struct media_owner *owner, enum media_status status)
{
    (void)owner;
    ended = status;
}

static void test_every_status_of_the_engine_has_one_of_the_target(void **state)
{
    static const enum media_status expected[] = {
        [MEDIA_CQE_OK] = MEDIA_OK,
        [MEDIA_CQE_BAD_OPCODE] = MEDIA_INTERNAL_ERROR,
        [MEDIA_CQE_BAD_ARGUMENT] = MEDIA_INTERNAL_ERROR,
        [MEDIA_CQE_BAD_ADDRESS] = MEDIA_INTERNAL_ERROR,
        [MEDIA_CQE_LBA_RANGE] = MEDIA_LBA_RANGE,
        [MEDIA_CQE_READ_ERROR] = MEDIA_READ_ERROR,
        [MEDIA_CQE_WRITE_ERROR] = MEDIA_WRITE_ERROR,
        [MEDIA_CQE_NO_SPACE] = MEDIA_WRITE_ERROR,
        [MEDIA_CQE_READ_ONLY] = MEDIA_READ_ONLY,
        [MEDIA_CQE_ABORTED] = MEDIA_ABORTED,
    };

    struct media_owner owner = {note_end};

    (void)state;
    for (unsigned int i = 0; i < 256; i++) {
        /* An unknown status is never a success. */
        media_seam_done(NULL, (uintptr_t)&owner, (enum media_cqe_status)i);
        assert_int_equal(ended, i < ARRAY_LEN(expected) ? expected[i]
                                                        : MEDIA_INTERNAL_ERROR);
    }
}

static void test_a_command_is_passed_on_as_it_is(void **state)
{
    static const enum media_opcode opcode[] = {
        [MEDIA_READ] = MEDIA_CMD_READ,
        [MEDIA_WRITE] = MEDIA_CMD_WRITE,
        [MEDIA_FLUSH] = MEDIA_CMD_FLUSH,
        [MEDIA_WRITE_ZEROES] = MEDIA_CMD_WRITE_ZEROES,
        [MEDIA_DEALLOCATE] = MEDIA_CMD_DEALLOCATE,
    };
    struct nvmf_media seam = media_seam(&parts);
    struct media_owner owner;

    (void)state;
    make_volume();
    for (size_t i = 0; i < ARRAY_LEN(opcode); i++) {
        struct media_io io = {
            .op = (enum media_op)i,
            .fua = i % 2,
            .ns = 3,
            .first_lba = 256 + 2,
            .count_blocks = 7,
            .owner = &owner,
        };

        has_room = i != 1;
        assert_int_equal(seam.submit(seam.ctx, &io), has_room);
        assert_int_equal(submitted.opcode, opcode[i]);
        assert_int_equal(submitted.fua, i % 2);
        if (i != MEDIA_FLUSH) {
            assert_int_equal(submitted.first_lba, 6 * 2048 + 2 * 8);
            assert_int_equal(submitted.count_blocks, 7 * 8);
        }
        assert_int_equal(submitted.cookie, (uintptr_t)&owner);
    }
}

static void test_what_is_in_several_places_goes_to_the_volume(void **state)
{
    struct nvmf_media seam = media_seam(&parts);
    struct media_io io = {.op = MEDIA_WRITE, .ns = 3, .count_blocks = 7};

    (void)state;
    make_volume();
    has_room = true;
    io.first_lba = 256 - 1; /* windows 5 and 6 are adjacent */
    assert_true(seam.submit(seam.ctx, &io));
    assert_int_equal(splits, 0);
    assert_int_equal(submitted.first_lba, 6 * 2048 - 8);
    io.first_lba = 512 - 1; /* windows 6 and 9 are not */
    assert_true(seam.submit(seam.ctx, &io));
    assert_int_equal(splits, 1);
}

static void test_only_the_first_write_is_reported(void **state)
{
    struct nvmf_media seam = media_seam(&parts);
    struct media_io io = {.op = MEDIA_READ, .ns = 3, .count_blocks = 1};

    (void)state;
    make_volume();
    has_room = true;
    first_writes = 0;
    volume.is_watched = true;
    assert_true(seam.submit(seam.ctx, &io));
    io.op = MEDIA_DEALLOCATE;
    assert_true(seam.submit(seam.ctx, &io));
    assert_int_equal(first_writes, 0);
    io.op = MEDIA_WRITE;
    assert_true(seam.submit(seam.ctx, &io));
    assert_true(seam.submit(seam.ctx, &io));
    assert_int_equal(first_writes, 1);
}

static void test_the_volume_knows_the_geometry(void **state)
{
    struct nvmf_media seam = media_seam(&parts);
    struct media_geometry geometry;

    (void)state;
    seam.geometry(seam.ctx, 77, &geometry);
    assert_int_equal(geometry.size_blocks, 77);
    seam.set_volatile(seam.ctx, true);
    assert_true(cache_is_on);
}
