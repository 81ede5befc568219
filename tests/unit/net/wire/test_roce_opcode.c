/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/roce_opcode.h"

/*
 * IBTA Vol 1 table 38 as printed: the opcodes, the headers that follow the BTH,
 * and their length.  It was written independently of the table that is tested.
 * Every opcode that is not here must be unknown to that table.
 */
static const struct {
    uint8_t opcode;
    uint8_t header_len;
    char position; /* First Middle Last Only */
    const char *what;
    const char *headers;
} spec[] = {
    {0x00, 12, 'F', "SEND", ""},
    {0x01, 12, 'M', "SEND", ""},
    {0x02, 12, 'L', "SEND", ""},
    {0x03, 16, 'L', "SEND", "ImmDt"},
    {0x04, 12, 'O', "SEND", ""},
    {0x05, 16, 'O', "SEND", "ImmDt"},
    {0x06, 28, 'F', "WRITE", "RETH"},
    {0x07, 12, 'M', "WRITE", ""},
    {0x08, 12, 'L', "WRITE", ""},
    {0x09, 16, 'L', "WRITE", "ImmDt"},
    {0x0a, 28, 'O', "WRITE", "RETH"},
    {0x0b, 32, 'O', "WRITE", "RETH ImmDt"},
    {0x0c, 28, 'O', "READ", "RETH"},
    {0x0d, 16, 'F', "RESPONSE", "AETH"},
    {0x0e, 12, 'M', "RESPONSE", ""},
    {0x0f, 16, 'L', "RESPONSE", "AETH"},
    {0x10, 16, 'O', "RESPONSE", "AETH"},
    {0x11, 16, 'O', "ACK", "AETH"},
    {0x12, 24, 'O', "ATOMIC ACK", "AETH AtomicAckETH"},
    {0x13, 40, 'O', "ATOMIC", "AtomicETH"},
    {0x14, 40, 'O', "ATOMIC", "AtomicETH"},
    {0x16, 16, 'L', "SEND", "IETH"},
    {0x17, 16, 'O', "SEND", "IETH"},
    {0x20, 12, 'F', "SEND", ""},
    {0x21, 12, 'M', "SEND", ""},
    {0x22, 12, 'L', "SEND", ""},
    {0x23, 16, 'L', "SEND", "ImmDt"},
    {0x24, 12, 'O', "SEND", ""},
    {0x25, 16, 'O', "SEND", "ImmDt"},
    {0x26, 28, 'F', "WRITE", "RETH"},
    {0x27, 12, 'M', "WRITE", ""},
    {0x28, 12, 'L', "WRITE", ""},
    {0x29, 16, 'L', "WRITE", "ImmDt"},
    {0x2a, 28, 'O', "WRITE", "RETH"},
    {0x2b, 32, 'O', "WRITE", "RETH ImmDt"},
    {0x64, 20, 'O', "SEND", "DETH"},
    {0x65, 24, 'O', "SEND", "DETH ImmDt"},
    {0x81, 12, 'O', "CNP", ""},
};

struct name {
    const char *name;
    uint32_t flag;
};

static uint32_t flags_of(size_t row)
{
    static const struct name kinds[] = {
        {"SEND", ROCE_SEND},
        {"WRITE", ROCE_WRITE},
        {"READ", ROCE_READ_REQUEST},
        {"RESPONSE", ROCE_READ_RESPONSE},
        {"ACK", ROCE_ACK},
        {"ATOMIC", ROCE_ATOMIC},
        {"ATOMIC ACK", ROCE_ATOMIC_ACK},
        {"CNP", ROCE_NOTIFY},
    };
    static const struct name headers[] = {
        {"", 0},
        {"ImmDt", ROCE_IMMDT},
        {"RETH", ROCE_RETH},
        {"RETH ImmDt", ROCE_RETH | ROCE_IMMDT},
        {"AETH", ROCE_AETH},
        {"AETH AtomicAckETH", ROCE_AETH | ROCE_ATOMICACKETH},
        {"AtomicETH", ROCE_ATOMICETH},
        {"IETH", ROCE_IETH},
        {"DETH", ROCE_DETH},
        {"DETH ImmDt", ROCE_DETH | ROCE_IMMDT},
    };
    uint32_t flags = spec[row].position == 'F'   ? ROCE_FIRST
                     : spec[row].position == 'M' ? ROCE_MIDDLE
                     : spec[row].position == 'L' ? ROCE_LAST
                                                 : ROCE_ONLY;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        flags |= strcmp(kinds[i].name, spec[row].what) == 0 ? kinds[i].flag : 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        flags |= strcmp(headers[i].name, spec[row].headers) == 0
                     ? headers[i].flag
                     : 0;
    }
    return flags;
}

static void test_roce_opcode_table_matches_the_specification(void **state)
{
    (void)state;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        uint32_t flags = 0;
        uint8_t header_len = 0;

        for (size_t row = 0; row < ARRAY_LEN(spec); row++) {
            if (spec[row].opcode == opcode) {
                flags = flags_of(row);
                header_len = spec[row].header_len;
            }
        }
        assert_int_equal(roce_opcodes[opcode].flags, flags);
        assert_int_equal(roce_opcodes[opcode].header_len_bytes, header_len);
    }
}

static void test_roce_opcode_functions_read_the_table(void **state)
{
    (void)state;
    assert_true(roce_opcode_is(RC_WRITE_LAST, ROCE_REQUEST));
    assert_false(roce_opcode_is(RC_ACKNOWLEDGE, ROCE_REQUEST));
    assert_true(roce_opcode_is(RC_ACKNOWLEDGE, ROCE_RESPONSE));
    assert_false(roce_opcode_is(RC_READ_REQUEST, ROCE_HAS_PAYLOAD));
    assert_true(roce_opcode_is(RC_SEND_ONLY, ROCE_STARTS));
    assert_true(roce_opcode_is(RC_SEND_ONLY, ROCE_ENDS));
    assert_false(roce_opcode_is(RC_SEND_MIDDLE, ROCE_STARTS | ROCE_ENDS));
    assert_int_equal(roce_opcode_transport(RC_SEND_ONLY_INVALIDATE), ROCE_RC);
    assert_int_equal(roce_opcode_transport(UC_SEND_ONLY), ROCE_UC);
    assert_int_equal(roce_opcode_transport(UD_SEND_ONLY), ROCE_UD);
    assert_int_equal(roce_opcode_transport(CNP_NOTIFY), ROCE_CNP);
}
