/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests for a connection and the replies to them: RFC 5044 section 7.1, RFC
 * 6581. */
#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "net/mpa/mpa.h"

static const struct mpa_limits limits = {
    .wants_crc = true, .max_ird = 16, .max_ord = 32};

/* A request with 4 bytes of private data.  @return its length */
static size_t write_request(const struct mpa_setup *setup, uint8_t *buf)
{
    struct mpa_setup with_data = *setup;

    with_data.private_len = 4;
    mpa_setup_emit(&with_data, buf);
    memcpy(buf + mpa_private_at(&with_data), "priv", 4);
    return mpa_setup_bytes(&with_data);
}

static enum mpa_verdict judge_setup(const struct mpa_setup *setup,
                                    struct mpa_request *request)
{
    static uint8_t buf[MPA_SETUP_MAX];

    return mpa_request_judge(request, buf, write_request(setup, buf));
}

static void test_requests_are_judged(void **state)
{
    static const struct {
        struct mpa_setup setup;
        enum mpa_verdict verdict;
    } rows[] = {
        {{.revision = 0}, MPA_ACCEPTABLE},
        {{.revision = 1}, MPA_ACCEPTABLE},
        {{.revision = 2}, MPA_ACCEPTABLE},
        {{.revision = 2, .is_enhanced = true}, MPA_ACCEPTABLE},
        {{.revision = 1, .crc = true}, MPA_ACCEPTABLE},
        {{.revision = 3}, MPA_NOT_MPA},
        {{.revision = 255, .is_enhanced = true}, MPA_NOT_MPA},
        {{.revision = 1, .is_reply = true}, MPA_NOT_MPA},
        {{.revision = 1, .is_rejected = true}, MPA_NOT_MPA},
        {{.revision = 1, .markers = true}, MPA_REFUSED},
        {{.revision = 2, .is_enhanced = true, .markers = true}, MPA_REFUSED},
    };
    struct mpa_request request;

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(judge_setup(&rows[i].setup, &request),
                         rows[i].verdict);
        if (rows[i].verdict == MPA_ACCEPTABLE) {
            assert_int_equal(request.setup.private_len, 4);
            assert_memory_equal(request.private_data, "priv", 4);
        }
    }
}

static void test_a_request_waits_for_its_last_byte(void **state)
{
    const struct mpa_setup setup = {.revision = 2, .is_enhanced = true};
    struct mpa_request request;
    uint8_t buf[MPA_SETUP_MAX] = {0};
    size_t len = write_request(&setup, buf);

    (void)state;
    for (size_t n = 1; n < len; n++) {
        assert_int_equal(mpa_request_judge(&request, buf, n), MPA_WAITS);
    }
    assert_int_equal(mpa_request_judge(&request, buf, len), MPA_ACCEPTABLE);
}

/* A peer has to wait for the reply before it sends an FPDU. */
static void test_bytes_after_a_request_are_refused(void **state)
{
    const struct mpa_setup setup = {.revision = 1};
    struct mpa_request request;
    uint8_t buf[MPA_SETUP_MAX] = {0};
    size_t len = write_request(&setup, buf);

    (void)state;
    assert_int_equal(mpa_request_judge(&request, buf, len + 1), MPA_NOT_MPA);
}

static void test_what_is_not_mpa_is_seen_by_its_first_byte(void **state)
{
    struct mpa_request request;

    (void)state;
    for (unsigned int first = 0; first < 256; first++) {
        const uint8_t byte = (uint8_t)first;

        assert_int_equal(mpa_request_judge(&request, &byte, 1),
                         first == 'M' ? MPA_WAITS : MPA_NOT_MPA);
    }
}

static void choose_terms(const struct mpa_setup *setup, struct mpa_terms *terms)
{
    struct mpa_request request;

    assert_int_equal(judge_setup(setup, &request), MPA_ACCEPTABLE);
    mpa_choose(&request, &limits, terms);
}

static void test_depths_are_the_smaller_ones(void **state)
{
    static const struct {
        uint16_t ird, ord; /* the peer's */
        uint8_t our_ird, our_ord;
    } rows[] = {
        {0, 0, 0, 0},       {1, 2, 2, 1},
        {128, 0, 0, 32},    {32, 16, 16, 32},
        {33, 17, 16, 32},   {31, 15, 15, 31},
        {256, 256, 16, 32}, {MPA_NOT_NEGOTIATED, MPA_NOT_NEGOTIATED, 16, 32},
    };
    struct mpa_terms terms;

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        choose_terms(&(struct mpa_setup){.revision = 2,
                                         .is_enhanced = true,
                                         .ird = rows[i].ird,
                                         .ord = rows[i].ord},
                     &terms);
        assert_int_equal(terms.ird, rows[i].our_ird);
        assert_int_equal(terms.ord, rows[i].our_ord);
    }
    choose_terms(&(struct mpa_setup){.revision = 1}, &terms);
    assert_int_equal(terms.ird, 16);
    assert_int_equal(terms.ord, 32);
}

static void test_crc_is_used_if_one_side_wants_it(void **state)
{
    struct mpa_limits quiet = limits;
    struct mpa_request request;
    struct mpa_terms terms;

    (void)state;
    quiet.wants_crc = false;
    for (unsigned int i = 0; i < 4; i++) {
        const struct mpa_setup setup = {.revision = 1, .crc = i & 1};

        assert_int_equal(judge_setup(&setup, &request), MPA_ACCEPTABLE);
        mpa_choose(&request, i & 2 ? &limits : &quiet, &terms);
        assert_int_equal(terms.crc, i != 0);
    }
}

static void test_the_rtr_is_a_write_a_read_or_a_send(void **state)
{
    static const uint8_t chosen[8] = {
        [0] = 0,
        [MPA_RTR_SEND] = MPA_RTR_SEND,
        [MPA_RTR_WRITE] = MPA_RTR_WRITE,
        [MPA_RTR_WRITE | MPA_RTR_SEND] = MPA_RTR_WRITE,
        [MPA_RTR_READ] = MPA_RTR_READ,
        [MPA_RTR_READ | MPA_RTR_SEND] = MPA_RTR_READ,
        [MPA_RTR_READ | MPA_RTR_WRITE] = MPA_RTR_WRITE,
        [7] = MPA_RTR_WRITE,
    };
    struct mpa_terms terms;

    (void)state;
    for (uint8_t rtr = 0; rtr < 8; rtr++) {
        struct mpa_setup setup = {.revision = 2,
                                  .is_enhanced = true,
                                  .peer_to_peer = true,
                                  .rtr = rtr,
                                  .ord = 3};

        choose_terms(&setup, &terms);
        assert_int_equal(terms.rtr, chosen[rtr]);
        setup.peer_to_peer = false;
        choose_terms(&setup, &terms);
        assert_int_equal(terms.rtr, 0);
    }
}

static void test_an_rtr_by_read_needs_a_read(void **state)
{
    struct mpa_setup setup = {.revision = 2,
                              .is_enhanced = true,
                              .peer_to_peer = true,
                              .rtr = MPA_RTR_READ | MPA_RTR_SEND};
    struct mpa_limits none = limits;
    struct mpa_request request;
    struct mpa_terms terms;

    (void)state;
    choose_terms(&setup, &terms);
    assert_int_equal(terms.rtr, MPA_RTR_READ);
    assert_int_equal(terms.ird, 1);
    none.max_ird = 0;
    assert_int_equal(judge_setup(&setup, &request), MPA_ACCEPTABLE);
    mpa_choose(&request, &none, &terms);
    assert_int_equal(terms.rtr, MPA_RTR_SEND);
    assert_int_equal(terms.ird, 0);
}

static void test_a_reply_has_the_requests_revision(void **state)
{
    struct mpa_request request;
    struct mpa_terms terms;
    struct mpa_setup reply;
    uint8_t buf[MPA_SETUP_MAX];

    (void)state;
    for (uint8_t revision = 0; revision <= 2; revision++) {
        const struct mpa_setup setup = {.revision = revision};
        size_t len;

        assert_int_equal(judge_setup(&setup, &request), MPA_ACCEPTABLE);
        mpa_choose(&request, &limits, &terms);
        len = mpa_reply(&request, &terms, revision == 1, "answer", 6, buf);
        assert_int_equal(len, MPA_SETUP_LEN + 6);
        assert_int_equal(mpa_setup_parse(&reply, buf, len), MPA_PARSED);
        assert_true(reply.is_reply);
        assert_false(reply.markers);
        assert_true(reply.crc);
        assert_int_equal(reply.is_rejected, revision == 1);
        assert_int_equal(reply.revision, revision);
        assert_false(reply.is_enhanced);
        assert_memory_equal(buf + MPA_SETUP_LEN, "answer", 6);
    }
}

static void test_an_enhanced_reply_names_the_terms(void **state)
{
    const struct mpa_setup setup = {.revision = 2,
                                    .is_enhanced = true,
                                    .peer_to_peer = true,
                                    .rtr = 7,
                                    .ird = 9,
                                    .ord = 3};
    struct mpa_request request;
    struct mpa_terms terms;
    struct mpa_setup reply;
    uint8_t buf[MPA_SETUP_MAX];
    size_t len;

    (void)state;
    assert_int_equal(judge_setup(&setup, &request), MPA_ACCEPTABLE);
    mpa_choose(&request, &limits, &terms);
    len = mpa_reply(&request, &terms, false, NULL, 0, buf);
    assert_int_equal(len, MPA_SETUP_LEN + MPA_ENHANCED_LEN);
    assert_int_equal(mpa_setup_parse(&reply, buf, len), MPA_PARSED);
    assert_true(reply.is_enhanced && reply.peer_to_peer);
    assert_int_equal(reply.rtr, MPA_RTR_WRITE);
    assert_int_equal(reply.ird, 3);
    assert_int_equal(reply.ord, 9);
}
