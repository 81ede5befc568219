/* SPDX-License-Identifier: BSD-2-Clause */
/* What a BMC is told of the drive's serial number, and in which order of its
 * controllers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/bmc/bmc_identity.h"

static void test_a_uuid_has_its_version_and_variant(void **state)
{
    /* 'A' is 41h; bytes 6 and 8 have 8 and 10b at the top. */
    static const uint8_t want[MCTP_UUID_LEN] = {
        'A', 'B', 'C', 0, 0, 0, 0x80, 0, 0x80, 0, 0, 0, 0, 0, 0, 0};
    uint8_t uuid[MCTP_UUID_LEN];

    (void)state;
    memset(uuid, 0xa5, sizeof(uuid));
    bmc_identity_uuid(uuid, "ABC");
    assert_memory_equal(uuid, want, sizeof(want));
    bmc_identity_uuid(uuid, "0123456789");
    assert_int_equal(uuid[6], 0x80 | ('6' & 0x0f));
    assert_int_equal(uuid[8], 0x80 | ('8' & 0x3f));
}

static void test_each_character_of_a_long_serial_number_counts(void **state)
{
    static const char serial[] = "0123456789ABCDEFGHIJ";
    uint8_t uuid[MCTP_UUID_LEN], other[MCTP_UUID_LEN];

    (void)state;
    bmc_identity_uuid(uuid, serial);
    assert_int_equal(uuid[0], (uint8_t)('0' * 31 + 'G'));
    for (size_t i = 0; i < strlen(serial); i++) {
        char changed[sizeof(serial)];

        memcpy(changed, serial, sizeof(serial));
        changed[i]++;
        bmc_identity_uuid(other, changed);
        assert_memory_not_equal(uuid, other, sizeof(uuid));
    }
}

static void test_a_serial_number_is_padded_or_cut(void **state)
{
    char padded[MI_SERIAL_LEN + 1];

    (void)state;
    memset(padded, 'x', sizeof(padded));
    bmc_identity_serial(padded, "SN7");
    assert_memory_equal(padded, "SN7                 ", MI_SERIAL_LEN);
    bmc_identity_serial(padded, "0123456789ABCDEFGHIJKLM");
    assert_memory_equal(padded, "0123456789ABCDEFGHIJ", MI_SERIAL_LEN);
    assert_int_equal(padded[MI_SERIAL_LEN], 'x');
}

static void test_controllers_are_listed_by_their_identifiers(void **state)
{
    static const uint16_t come[] = {7, 3, 9, 1, 8, 65534};
    static const uint16_t want[] = {1, 3, 7, 8, 9, 65534};
    struct mi_controller list[6];

    (void)state;
    for (unsigned int i = 0; i < 6; i++) {
        mi_insert_controller(list, i,
                             (struct mi_controller){
                                 .cntlid = come[i],
                                 .status = (uint8_t)(come[i] & 0xf),
                             });
    }
    for (unsigned int i = 0; i < 6; i++) {
        assert_int_equal(list[i].cntlid, want[i]);
        assert_int_equal(list[i].status, want[i] & 0xf);
    }
}
