/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends of a link: every pair of settings, and the clause 73 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/regfields.h"
#include "hw-model/port/port_phy.h"
#include "hw-model/regs/port.h"

enum { PARTNER_SETTINGS = 4, NO = -1 };

/*
 * The resulting FEC of each pair at 25 Gb/s: own setting, then the partner's.
 */
static const int fec_at_25g[3][PARTNER_SETTINGS] = {
    /* partner:        none           FC           RS           auto */
    [PORT_FEC_NONE] = {PORT_FEC_NONE, NO, NO, PORT_FEC_NONE},
    [PORT_FEC_FC] = {NO, PORT_FEC_FC, NO, PORT_FEC_FC},
    [PORT_FEC_RS] = {NO, NO, PORT_FEC_RS, PORT_FEC_RS},
};

static void expect_pair(uint32_t speed_mbps, uint8_t own_fec,
                        uint8_t partner_fec, int expected)
{
    struct phy_own own = {speed_mbps, own_fec, true, true};
    struct phy_partner partner = {
        .speed_mbps = speed_mbps, .fec = partner_fec, .is_present = 1};
    struct phy_link link = phy_judge(&own, &partner);

    assert_true(link.has_signal);
    assert_int_equal(link.is_negotiating, partner_fec == PHY_PARTNER_AUTO);
    assert_int_equal(link.has_local_fault, expected == NO);
    if (expected == NO) {
        assert_int_equal(link.reason, PORT_REASON_FEC);
    } else {
        assert_int_equal(link.reason, PORT_REASON_NONE);
        assert_int_equal(link.fec, expected);
    }
}

static void test_phy_every_pair_of_fec_settings(void **state)
{
    (void)state;
    for (uint8_t own = 0; own < 3; own++) {
        for (uint8_t partner = 0; partner < PARTNER_SETTINGS; partner++) {
            expect_pair(25000, own, partner, fec_at_25g[own][partner]);
            if (own != PORT_FEC_RS) { /* not at 10 Gb/s */
                expect_pair(10000, own, partner, fec_at_25g[own][partner]);
            }
        }
    }
}

/* Compare all 256 pairs with the rules of clause 73.6.5. */
static void test_phy_resolves_every_pair_of_fec_bits(void **state)
{
    (void)state;
    for (unsigned int a = 0; a < 16; a++) {
        for (unsigned int b = 0; b < 16; b++) {
            bool rs = (a & 4) != 0 || (b & 4) != 0;
            bool base_r = (a & 8) != 0 || (b & 8) != 0;
            bool both_able = (a & 1) != 0 && (b & 1) != 0;
            bool one_asks = (a & 2) != 0 || (b & 2) != 0;
            int at_25g = rs       ? PORT_FEC_RS
                         : base_r ? PORT_FEC_FC
                                  : PORT_FEC_NONE;
            int at_10g = both_able && one_asks ? PORT_FEC_FC : PORT_FEC_NONE;

            assert_int_equal(phy_an_resolve(25000, (uint8_t)a, (uint8_t)b),
                             at_25g);
            assert_int_equal(phy_an_resolve(10000, (uint8_t)a, (uint8_t)b),
                             at_10g);
        }
    }
}

/* The reasons in their order: each of them hides those that follow. */
static void test_phy_reports_the_first_reason_that_applies(void **state)
{
    struct phy_own own = {25000, PORT_FEC_FC, false, false};
    struct phy_partner partner = {
        .speed_mbps = 10000, .fec = PORT_FEC_RS, .has_fault = 1};
    struct phy_link link;

    (void)state;
    link = phy_judge(&own, &partner);
    assert_int_equal(link.reason, PORT_REASON_DISABLED);
    assert_false(link.has_local_fault);
    own.is_enabled = true;
    link = phy_judge(&own, &partner);
    assert_int_equal(link.reason, PORT_REASON_CABLE);
    assert_false(link.has_signal);
    assert_true(link.has_local_fault);
    own.has_cable = true;
    link = phy_judge(&own, &partner);
    assert_int_equal(link.reason, PORT_REASON_NO_PARTNER);
    assert_false(link.has_signal);
    partner.is_present = 1;
    link = phy_judge(&own, &partner);
    assert_int_equal(link.reason, PORT_REASON_SPEED);
    assert_true(link.has_signal);
    partner.speed_mbps = 25000;
    link = phy_judge(&own, &partner);
    assert_int_equal(link.reason, PORT_REASON_FEC);
    /* Without lock, no remote fault is received. */
    assert_false(link.has_remote_fault);
    partner.fec = PORT_FEC_FC;
    link = phy_judge(&own, &partner);
    assert_int_equal(link.reason, PORT_REASON_REMOTE_FAULT);
    assert_true(link.has_remote_fault);
    assert_false(link.has_local_fault);
    partner.has_fault = 0;
    link = phy_judge(&own, &partner);
    assert_int_equal(link.reason, PORT_REASON_NONE);
    assert_false(link.has_local_fault);
}
