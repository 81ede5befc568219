/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/mac_control.h"
#include "tests/unit/net/wire/golden_mac_control.h"

static void test_mac_control_pause_is_parsed_and_emitted(void **state)
{
    DIRTY(out, MAC_CONTROL_LEN);
    struct mac_control control;

    (void)state;
    assert_true(mac_control_parse(&control, mac_control_pause,
                                  sizeof(mac_control_pause)));
    assert_int_equal(control.opcode, MAC_CONTROL_OP_PAUSE);
    assert_int_equal(control.priorities, 0xff);
    for (unsigned int i = 0; i < MAC_CONTROL_PRIORITIES; i++) {
        assert_int_equal(control.quanta[i], 0x1234);
    }
    mac_control_emit(&control, out);
    assert_memory_equal(out, mac_control_pause, sizeof(out));
}

static void test_mac_control_pfc_is_parsed_and_emitted(void **state)
{
    static const uint16_t quanta[] = {0x4321, 0, 0, 0, 0, 0x1234, 0, 0};
    DIRTY(out, MAC_CONTROL_LEN);
    struct mac_control control;

    (void)state;
    assert_true(
        mac_control_parse(&control, mac_control_pfc, sizeof(mac_control_pfc)));
    assert_int_equal(control.opcode, MAC_CONTROL_OP_PFC);
    assert_int_equal(control.priorities, 0x21);
    assert_memory_equal(control.quanta, quanta, sizeof(quanta));
    mac_control_emit(&control, out);
    assert_memory_equal(out, mac_control_pfc, sizeof(out));
}

static void test_mac_control_parse_refuses_every_truncation(void **state)
{
    struct mac_control control;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(mac_control_parse, &control, mac_control_pause,
                               MAC_CONTROL_PAUSE_LEN);
    ASSERT_TRUNCATIONS_REFUSED(mac_control_parse, &control, mac_control_pfc,
                               MAC_CONTROL_PFC_LEN);
}

static void test_mac_control_parse_reports_unknown_opcodes(void **state)
{
    uint8_t buf[MAC_CONTROL_LEN] = {0};
    struct mac_control control;

    (void)state;
    for (uint32_t opcode = 0; opcode <= UINT16_MAX; opcode++) {
        bool is_known =
            opcode == MAC_CONTROL_OP_PAUSE || opcode == MAC_CONTROL_OP_PFC;

        buf[0] = (uint8_t)(opcode >> 8);
        buf[1] = (uint8_t)opcode;
        assert_int_equal(mac_control_parse(&control, buf, sizeof(buf)),
                         is_known);
        assert_int_equal(control.opcode, opcode);
    }
}
