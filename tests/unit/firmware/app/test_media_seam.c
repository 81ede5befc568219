/* SPDX-License-Identifier: BSD-2-Clause */
/* How commands and statuses are converted between target and media engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "firmware/app/media_seam.h"

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

void media_info_get(const struct media *media, struct media_info *info)
{
    assert_null(media);
    *info = (struct media_info){.size_blocks = 1000, .block_shift = 12};
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

    (void)state;
    for (unsigned int i = 0; i < 256; i++) {
        /* An unknown status is never a success. */
        assert_int_equal(media_seam_status((enum media_cqe_status)i),
                         i < ARRAY_LEN(expected) ? expected[i]
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
    struct nvmf_media seam = media_seam(NULL);
    int cookie;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(opcode); i++) {
        struct media_io io = {
            .op = (enum media_op)i,
            .fua = i % 2,
            .first_lba = UINT64_C(1) << 40,
            .count_blocks = 7,
            .cookie = &cookie,
        };

        has_room = i != 1;
        assert_int_equal(seam.submit(seam.ctx, &io), has_room);
        assert_int_equal(submitted.opcode, opcode[i]);
        assert_int_equal(submitted.fua, i % 2);
        assert_int_equal(submitted.first_lba, UINT64_C(1) << 40);
        assert_int_equal(submitted.count_blocks, 7);
        assert_int_equal(submitted.cookie, (uintptr_t)&cookie);
    }
}

static void test_a_medium_without_a_cache_reports_none(void **state)
{
    struct nvmf_media seam = media_seam(NULL);
    struct media_geometry geometry;

    (void)state;
    seam.geometry(seam.ctx, 0, &geometry);
    assert_int_equal(geometry.size_blocks, 1000);
    assert_int_equal(geometry.block_shift, 12);
    assert_false(geometry.has_volatile_cache);
    seam.set_volatile(seam.ctx, true);
    assert_true(cache_is_on);
}
