/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/mpa.h"

/* What siw of Linux 6.12 sends for the admin queue of nvme-rdma, without the
 * last zeros: built with CRC and peer-to-peer, and as it is by default. */
static const uint8_t request[56] = {
    'M',  'P',  'A',  ' ',  'I',  'D',  ' ',  'R',  'e',  'q',  ' ',
    'F',  'r',  'a',  'm',  'e',  0x50, 2,    0x00, 0x24, 0x80, 0x80,
    0xc0, 0x01, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x1f,
};
static const uint8_t plain[56] = {
    'M',  'P',  'A',  ' ',  'I',  'D',  ' ',  'R',  'e',  'q',  ' ',
    'F',  'r',  'a',  'm',  'e',  0x10, 2,    0x00, 0x24, 0x00, 0x80,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x1f,
};
/* The reply of nvmet over siw to the first one. */
static const uint8_t reply[56] = {
    'M',  'P',  'A',  ' ',  'I',  'D',  ' ',  'R',  'e',
    'p',  ' ',  'F',  'r',  'a',  'm',  'e',  0x50, 2,
    0x00, 0x24, 0x80, 0x01, 0x80, 0x80, 0x00, 0x00, 0x20,
};
/* Its answers to markers, and to private data that it does not understand in a
 * request of revision 1. */
static const uint8_t no_markers[24] = {
    'M', 'P', 'A', ' ', 'I',  'D', ' ',  'R',  'e',  'p',  ' ',  'F',
    'r', 'a', 'm', 'e', 0x70, 2,   0x00, 0x04, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t rejected_1[24] = {
    'M', 'P', 'A', ' ', 'I',  'D', ' ',  'R',  'e',  'p',  ' ',  'F',
    'r', 'a', 'm', 'e', 0x60, 1,   0x00, 0x04, 0x00, 0x00, 0x02, 0x00,
};

static void check_frame(const uint8_t *frame, size_t len,
                        const struct mpa_setup *expected)
{
    struct mpa_setup setup;
    DIRTY(out, 64);

    assert_int_equal(mpa_setup_parse(&setup, frame, len), MPA_PARSED);
    assert_int_equal(setup.is_reply, expected->is_reply);
    assert_int_equal(setup.markers, expected->markers);
    assert_int_equal(setup.crc, expected->crc);
    assert_int_equal(setup.is_rejected, expected->is_rejected);
    assert_int_equal(setup.is_enhanced, expected->is_enhanced);
    assert_int_equal(setup.peer_to_peer, expected->peer_to_peer);
    assert_int_equal(setup.rtr, expected->rtr);
    assert_int_equal(setup.ird, expected->ird);
    assert_int_equal(setup.ord, expected->ord);
    assert_int_equal(setup.revision, expected->revision);
    assert_int_equal(setup.private_len, expected->private_len);
    assert_int_equal(mpa_setup_bytes(&setup), len);
    mpa_setup_emit(expected, out);
    assert_memory_equal(out, frame, mpa_private_at(expected));
    assert_int_equal(out[mpa_private_at(expected)], 0xa5);
}

static void test_setup_frames_of_siw_are_parsed_and_emitted(void **state)
{
    (void)state;
    check_frame(request, sizeof(request),
                &(struct mpa_setup){.crc = true,
                                    .is_enhanced = true,
                                    .peer_to_peer = true,
                                    .rtr = MPA_RTR_WRITE | MPA_RTR_READ,
                                    .ird = 128,
                                    .ord = 1,
                                    .revision = 2,
                                    .private_len = 32});
    check_frame(
        plain, sizeof(plain),
        &(struct mpa_setup){
            .is_enhanced = true, .ird = 128, .revision = 2, .private_len = 32});
    check_frame(reply, sizeof(reply),
                &(struct mpa_setup){.is_reply = true,
                                    .crc = true,
                                    .is_enhanced = true,
                                    .peer_to_peer = true,
                                    .rtr = MPA_RTR_WRITE,
                                    .ird = 1,
                                    .ord = 128,
                                    .revision = 2,
                                    .private_len = 32});
    check_frame(no_markers, sizeof(no_markers),
                &(struct mpa_setup){.is_reply = true,
                                    .crc = true,
                                    .is_rejected = true,
                                    .is_enhanced = true,
                                    .revision = 2});
    check_frame(rejected_1, sizeof(rejected_1),
                &(struct mpa_setup){.is_reply = true,
                                    .crc = true,
                                    .is_rejected = true,
                                    .revision = 1,
                                    .private_len = 4});
}

/* 'S' is a reserved bit in revision 1: the four bytes are the user's. */
static void test_revision_1_has_no_depths(void **state)
{
    struct mpa_setup setup;
    uint8_t buf[sizeof(request)];

    (void)state;
    memcpy(buf, request, sizeof(buf));
    buf[MPA_REVISION] = 1;
    assert_int_equal(mpa_setup_parse(&setup, buf, sizeof(buf)), MPA_PARSED);
    assert_false(setup.is_enhanced);
    assert_int_equal(setup.private_len, 36);
    assert_int_equal(mpa_private_at(&setup), MPA_SETUP_LEN);
    assert_int_equal(setup.rtr, 0);
}

static void test_every_flag_is_one_bit(void **state)
{
    static const struct {
        uint8_t bit;
        struct mpa_setup setup;
    } rows[] = {
        {0x80, {.markers = true, .revision = 2}},
        {0x40, {.crc = true, .revision = 2}},
        {0x20, {.is_rejected = true, .revision = 2}},
        {0x10, {.is_enhanced = true, .revision = 2}},
    };
    static const struct {
        uint16_t ird, ord;
        struct mpa_setup setup;
    } depths[] = {
        {0x8000, 0, {.peer_to_peer = true}}, {0x4000, 0, {.rtr = MPA_RTR_SEND}},
        {0, 0x8000, {.rtr = MPA_RTR_WRITE}}, {0, 0x4000, {.rtr = MPA_RTR_READ}},
        {0x3fff, 0, {.ird = 0x3fff}},        {0, 0x3fff, {.ord = 0x3fff}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        DIRTY(out, 24);

        mpa_setup_emit(&rows[i].setup, out);
        assert_int_equal(out[MPA_FLAGS], rows[i].bit);
    }
    for (size_t i = 0; i < ARRAY_LEN(depths); i++) {
        struct mpa_setup setup = depths[i].setup;
        DIRTY(out, 24);

        setup.is_enhanced = true;
        setup.revision = 2;
        mpa_setup_emit(&setup, out);
        assert_int_equal(out[20] << 8 | out[21], depths[i].ird);
        assert_int_equal(out[22] << 8 | out[23], depths[i].ord);
        check_frame(out, sizeof(out), &setup);
    }
}

static void test_a_setup_frame_may_come_byte_by_byte(void **state)
{
    struct mpa_setup setup;

    (void)state;
    for (size_t len = 0; len < sizeof(request); len++) {
        uint8_t *copy = malloc(len != 0 ? len : 1);

        memcpy(copy, request, len);
        assert_int_equal(mpa_setup_parse(&setup, copy, len), MPA_INCOMPLETE);
        free(copy);
    }
}

/* A port may serve other protocols: the first byte tells. */
static void test_a_wrong_byte_of_the_key_is_seen_at_once(void **state)
{
    struct mpa_setup setup;

    (void)state;
    for (size_t at = 0; at < MPA_KEY_LEN; at++) {
        uint8_t buf[sizeof(request)];

        memcpy(buf, request, sizeof(buf));
        buf[at] ^= 0x20;
        for (size_t len = 0; len <= sizeof(buf); len++) {
            assert_int_equal(mpa_setup_parse(&setup, buf, len) == MPA_MALFORMED,
                             len > at);
        }
    }
}

static void test_lengths_of_private_data_are_checked(void **state)
{
    uint8_t buf[MPA_SETUP_MAX + 1] = {0};
    struct mpa_setup setup;

    (void)state;
    memcpy(buf, request, sizeof(request));
    for (unsigned int len = 0; len < 4; len++) {
        buf[MPA_PD_LENGTH] = 0;
        buf[MPA_PD_LENGTH + 1] = (uint8_t)len;
        assert_int_equal(mpa_setup_parse(&setup, buf, sizeof(buf)),
                         MPA_MALFORMED);
    }
    buf[MPA_PD_LENGTH] = 2;
    buf[MPA_PD_LENGTH + 1] = 0;
    assert_int_equal(mpa_setup_parse(&setup, buf, sizeof(buf)), MPA_PARSED);
    assert_int_equal(setup.private_len, MPA_PD_MAX - MPA_ENHANCED_LEN);
    buf[MPA_PD_LENGTH + 1] = 1;
    assert_int_equal(mpa_setup_parse(&setup, buf, 20), MPA_MALFORMED);
}

static void test_fpdus_are_multiples_of_four(void **state)
{
    (void)state;
    for (uint32_t len = 0; len < 64; len++) {
        assert_true(mpa_pad_bytes(len) < 4);
        assert_int_equal(mpa_fpdu_bytes(len) % 4, 0);
        assert_int_equal(mpa_fpdu_bytes(len), 6 + len + mpa_pad_bytes(len));
    }
    assert_int_equal(mpa_fpdu_bytes(MPA_ULPDU_MAX), 65544);
}
