/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MCTP packets, and messages of several packets.
 * The bytes of both packets, with their PEC, are what pymctp makes of the
 * same fields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/bmc/mctp.h"

#include <string.h>

enum { BMC_ADDR = 0x10, DRIVE_ADDR = 0x1d, BMC_EID = 8, DRIVE_EID = 0x42 };

/* A BMC assigns endpoint identifier 42h. */
static const uint8_t set_eid[] = {0x0f, 0x0a, 0x21, 0x01, 0x00, 0x08, 0xcd,
                                  0x00, 0x80, 0x01, 0x00, 0x42, 0xb5};
/* The drive accepts it. */
static const uint8_t set_eid_response[] = {0x0f, 0x0c, 0x3b, 0x01, 0x08,
                                           0x42, 0xc5, 0x00, 0x00, 0x01,
                                           0x00, 0x00, 0x42, 0x00, 0x62};

static void test_a_request_is_parsed(void **state)
{
    struct mctp_packet packet;

    (void)state;
    assert_int_equal(
        mctp_packet_parse(&packet, DRIVE_ADDR, set_eid, sizeof(set_eid)),
        MCTP_PARSED);
    assert_int_equal(packet.from_addr, BMC_ADDR);
    assert_int_equal(packet.to_eid, 0);
    assert_int_equal(packet.from_eid, BMC_EID);
    assert_true(packet.is_first);
    assert_true(packet.is_last);
    assert_int_equal(packet.seq, 0);
    assert_true(packet.is_tag_owner);
    assert_int_equal(packet.tag, 5);
    assert_int_equal(packet.len, 5);
    assert_ptr_equal(packet.data, set_eid + 7);
}

static void test_a_response_is_emitted_over_a_dirty_buffer(void **state)
{
    const struct mctp_packet packet = {
        .from_addr = DRIVE_ADDR,
        .to_eid = BMC_EID,
        .from_eid = DRIVE_EID,
        .is_first = true,
        .is_last = true,
        .tag = 5,
        .data = set_eid_response + 7,
        .len = 7,
    };
    uint8_t bytes[MCTP_PACKET_MAX];

    (void)state;
    memset(bytes, 0xa5, sizeof(bytes));
    assert_int_equal(mctp_packet_emit(&packet, BMC_ADDR, bytes),
                     sizeof(set_eid_response));
    assert_memory_equal(bytes, set_eid_response, sizeof(set_eid_response));
    assert_int_equal(bytes[sizeof(set_eid_response)], 0xa5);
}

static void test_flags_are_where_the_specification_has_them(void **state)
{
    static const struct {
        struct mctp_packet packet;
        uint8_t flags;
    } rows[] = {
        {{.is_first = true}, 0x80}, {{.is_last = true}, 0x40},
        {{.seq = 1}, 0x10},         {{.seq = 3}, 0x30},
        {{.is_tag_owner = 1}, 0x8}, {{.tag = 7}, 0x07},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mctp_packet packet = rows[i].packet, parsed;
        uint8_t bytes[MCTP_PACKET_MAX];
        size_t len;

        packet.data = set_eid;
        packet.len = 1;
        len = mctp_packet_emit(&packet, DRIVE_ADDR, bytes);
        assert_int_equal(bytes[6], rows[i].flags);
        assert_int_equal(mctp_packet_parse(&parsed, DRIVE_ADDR, bytes, len),
                         MCTP_PARSED);
        packet.data = parsed.data; /* a copy, compared below */
        assert_memory_equal(&parsed, &packet, sizeof(packet));
        assert_int_equal(parsed.data[0], set_eid[0]);
    }
}

static void test_every_truncation_is_malformed(void **state)
{
    struct mctp_packet packet;

    (void)state;
    for (size_t len = 0; len < sizeof(set_eid); len++) {
        assert_int_equal(mctp_packet_parse(&packet, DRIVE_ADDR, set_eid, len),
                         MCTP_MALFORMED);
    }
}

/* Parse the request with one byte changed by `bits`. */
static enum mctp_parsed parse_changed(size_t at, uint8_t bits)
{
    uint8_t bytes[sizeof(set_eid)];
    struct mctp_packet packet;

    memcpy(bytes, set_eid, sizeof(bytes));
    bytes[at] ^= bits;
    return mctp_packet_parse(&packet, DRIVE_ADDR, bytes, sizeof(bytes));
}

static void test_a_packet_of_another_kind_is_malformed(void **state)
{
    (void)state;
    assert_int_equal(parse_changed(0, 0x01), MCTP_MALFORMED); /* the command */
    assert_int_equal(parse_changed(1, 0x01), MCTP_MALFORMED); /* the count */
    assert_int_equal(parse_changed(2, 0x01), MCTP_MALFORMED); /* bit 0 */
    assert_int_equal(parse_changed(3, 0x02), MCTP_MALFORMED); /* the version */
}

static void test_the_pec_covers_every_byte_and_the_address(void **state)
{
    struct mctp_packet packet;

    (void)state;
    for (size_t i = 4; i < sizeof(set_eid); i++) {
        assert_int_equal(parse_changed(i, 0x10), MCTP_BAD_PEC);
    }
    assert_int_equal(parse_changed(2, 0x10), MCTP_BAD_PEC);
    assert_int_equal(
        mctp_packet_parse(&packet, DRIVE_ADDR + 1, set_eid, sizeof(set_eid)),
        MCTP_BAD_PEC);
}

/* ---- Messages. */

static const uint8_t numbers[MCTP_MESSAGE_MAX + MCTP_UNIT] = {
    [0] = 0x7e, [63] = 1,  [64] = 2,  [65] = 3,  [127] = 4,
    [128] = 5,  [191] = 6, [192] = 7, [255] = 8, [256] = 9,
};

enum { FIRST = 0x80, LAST = 0x40 };

/* A packet of a request with tag 5 from the BMC, whose data is at `offset`. */
static struct mctp_packet request_packet(unsigned int flags, unsigned int seq,
                                         size_t offset, size_t len)
{
    return (struct mctp_packet){
        .from_addr = BMC_ADDR,
        .to_eid = DRIVE_EID,
        .from_eid = BMC_EID,
        .is_first = flags & FIRST,
        .is_last = flags & LAST,
        .seq = (uint8_t)seq,
        .is_tag_owner = true,
        .tag = 5,
        .data = numbers + offset,
        .len = len,
    };
}

static void expect_take(struct mctp_assembly *assembly,
                        struct mctp_packet packet, enum mctp_verdict verdict)
{
    struct mctp_message message;

    assert_int_equal(mctp_assembly_take(assembly, DRIVE_EID, &packet, &message),
                     verdict);
}

/* Take the last packet of a message, which begins at `offset`. */
static void expect_message(struct mctp_assembly *assembly,
                           struct mctp_packet packet, size_t offset, size_t len)
{
    struct mctp_message message;

    assert_int_equal(mctp_assembly_take(assembly, DRIVE_EID, &packet, &message),
                     MCTP_COMPLETE);
    assert_int_equal(message.len, len);
    assert_memory_equal(message.bytes, numbers + offset, len);
    assert_int_equal(message.from.addr, packet.from_addr);
    assert_int_equal(message.from.eid, packet.from_eid);
    assert_int_equal(message.from.tag, packet.tag);
}

static void test_a_message_may_be_one_packet(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    for (unsigned int seq = 0; seq < 4; seq++) {
        expect_message(&assembly, request_packet(FIRST | LAST, seq, seq, 9),
                       seq, 9);
    }
}

static void test_a_message_of_several_packets_is_put_together(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    for (unsigned int first = 0; first < 4; first++) {
        expect_take(&assembly, request_packet(FIRST, first, 0, 64),
                    MCTP_INCOMPLETE);
        expect_take(&assembly, request_packet(0, (first + 1) & 3, 64, 64),
                    MCTP_INCOMPLETE);
        expect_take(&assembly, request_packet(0, (first + 2) & 3, 128, 64),
                    MCTP_INCOMPLETE);
        expect_message(&assembly,
                       request_packet(LAST, (first + 3) & 3, 192, 64), 0, 256);
    }
}

static void test_the_last_packet_may_be_shorter(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_message(&assembly, request_packet(LAST, 1, 64, 1), 0, 65);
}

static void test_a_message_that_is_too_long_is_dropped(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, request_packet(0, 1, 64, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, request_packet(0, 2, 128, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, request_packet(0, 3, 192, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, request_packet(LAST, 0, 256, 1), MCTP_DROPPED);
    expect_take(&assembly, request_packet(LAST, 0, 256, 1), MCTP_DROPPED);
    expect_message(&assembly, request_packet(FIRST | LAST, 0, 3, 64), 3, 64);
}

static void test_a_lost_or_repeated_packet_ends_the_message(void **state)
{
    (void)state;
    for (unsigned int seq = 0; seq < 4; seq++) {
        struct mctp_assembly assembly = {0};

        if (seq == 1) {
            continue; /* the right one */
        }
        expect_take(&assembly, request_packet(FIRST, 0, 0, 64),
                    MCTP_INCOMPLETE);
        expect_take(&assembly, request_packet(0, seq, 64, 64), MCTP_DROPPED);
        expect_take(&assembly, request_packet(0, 1, 64, 64), MCTP_DROPPED);
        expect_take(&assembly, request_packet(LAST, 2, 128, 64), MCTP_DROPPED);
    }
}

static void test_a_packet_without_a_start_is_dropped(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    expect_take(&assembly, request_packet(0, 0, 0, 64), MCTP_DROPPED);
    expect_take(&assembly, request_packet(LAST, 0, 0, 64), MCTP_DROPPED);
    /* Neither is there a start after the end. */
    expect_message(&assembly, request_packet(FIRST | LAST, 0, 0, 64), 0, 64);
    expect_take(&assembly, request_packet(LAST, 1, 64, 64), MCTP_DROPPED);
}

static void test_a_new_start_begins_another_message(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, request_packet(0, 1, 64, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, request_packet(FIRST, 2, 128, 64), MCTP_INCOMPLETE);
    expect_message(&assembly, request_packet(LAST, 3, 192, 64), 128, 128);
    expect_take(&assembly, request_packet(LAST, 0, 256, 64), MCTP_DROPPED);
}

static void test_a_packet_for_another_endpoint_changes_nothing(void **state)
{
    struct mctp_assembly assembly = {0};
    struct mctp_packet other = request_packet(0, 1, 64, 64);

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    other.to_eid = DRIVE_EID + 1;
    expect_take(&assembly, other, MCTP_DROPPED);
    other.is_first = true;
    expect_take(&assembly, other, MCTP_DROPPED);
    expect_message(&assembly, request_packet(LAST, 1, 64, 64), 0, 128);
}

static void test_a_packet_for_identifier_0_is_taken(void **state)
{
    struct mctp_assembly assembly = {0};
    struct mctp_packet packet = request_packet(FIRST | LAST, 0, 0, 5);

    (void)state;
    packet.to_eid = 0;
    expect_message(&assembly, packet, 0, 5);
}

/* The drive sends no requests, so that no tag is its own. */
static void test_a_response_changes_nothing(void **state)
{
    struct mctp_assembly assembly = {0};
    struct mctp_packet response = request_packet(FIRST | LAST, 1, 64, 64);

    (void)state;
    response.is_tag_owner = false;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, response, MCTP_DROPPED);
    expect_message(&assembly, request_packet(LAST, 1, 64, 64), 0, 128);
}

/* Clause 8.8, "Incorrect transmission unit". */
static void test_a_middle_packet_of_another_size_ends_the_message(void **state)
{
    static const size_t wrong[] = {1, 63, 65, 100};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct mctp_assembly assembly = {0};

        expect_take(&assembly, request_packet(FIRST, 0, 0, 64),
                    MCTP_INCOMPLETE);
        expect_take(&assembly, request_packet(0, 1, 64, wrong[i]),
                    MCTP_DROPPED);
        expect_take(&assembly, request_packet(LAST, 2, 128, 64), MCTP_DROPPED);
        /* So does the second one. */
        expect_take(&assembly, request_packet(FIRST, 0, 0, 64),
                    MCTP_INCOMPLETE);
        expect_take(&assembly, request_packet(0, 1, 64, 64), MCTP_INCOMPLETE);
        expect_take(&assembly, request_packet(0, 2, 128, wrong[i]),
                    MCTP_DROPPED);
        expect_take(&assembly, request_packet(LAST, 3, 192, 1), MCTP_DROPPED);
    }
}

/* Clause 8.3.1: the last packet is at most as long as the others. */
static void test_a_last_packet_that_is_longer_ends_the_message(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, request_packet(LAST, 1, 64, 65), MCTP_DROPPED);
    expect_take(&assembly, request_packet(LAST, 1, 64, 64), MCTP_DROPPED);
}

static struct mctp_packet with_tag(struct mctp_packet packet, uint8_t tag)
{
    packet.tag = tag;
    return packet;
}

/* Clause 8.6: an unexpected packet does not end the assembly of a message. */
static void test_a_stray_packet_of_another_message_changes_nothing(void **state)
{
    struct mctp_assembly assembly = {0};
    struct mctp_packet stray = request_packet(0, 1, 64, 64);

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, with_tag(stray, 4), MCTP_DROPPED);
    stray.from_eid = BMC_EID + 1;
    expect_take(&assembly, stray, MCTP_DROPPED);
    stray = request_packet(LAST, 1, 64, 64);
    stray.from_addr = BMC_ADDR + 1;
    expect_take(&assembly, stray, MCTP_DROPPED);
    expect_message(&assembly, request_packet(LAST, 1, 64, 64), 0, 128);
}

/* Clause 8.7: a message of one packet is not assembled. */
static void test_a_single_packet_may_come_amid_another_message(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_message(&assembly,
                   with_tag(request_packet(FIRST | LAST, 1, 128, 9), 4), 128,
                   9);
    expect_message(&assembly, request_packet(LAST, 1, 64, 64), 0, 128);
}

/* Clause 8.8, "Receipt of a new start packet", which may be the last, too. */
static void test_a_single_packet_with_the_same_tag_ends_a_message(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_message(&assembly, request_packet(FIRST | LAST, 0, 128, 9), 128, 9);
    expect_take(&assembly, request_packet(LAST, 1, 64, 64), MCTP_DROPPED);
}

/* The drive has one buffer, and a BMC that stopped must not keep it. */
static void test_of_interleaved_messages_the_later_one_is_taken(void **state)
{
    struct mctp_assembly assembly = {0};

    (void)state;
    expect_take(&assembly, request_packet(FIRST, 0, 0, 64), MCTP_INCOMPLETE);
    expect_take(&assembly, with_tag(request_packet(FIRST, 0, 128, 64), 4),
                MCTP_INCOMPLETE);
    expect_take(&assembly, request_packet(0, 1, 64, 64), MCTP_DROPPED);
    expect_message(&assembly, with_tag(request_packet(LAST, 1, 192, 64), 4),
                   128, 128);
    expect_take(&assembly, request_packet(LAST, 2, 128, 64), MCTP_DROPPED);
}
