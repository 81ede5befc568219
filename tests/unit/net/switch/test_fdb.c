/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/switch/switch_test.h"

#include "lib/random.h"

static struct mac_addr numbered_mac(uint32_t number)
{
    struct mac_addr mac = {{2, 0}};

    put_be32(mac.bytes + 2, number);
    return mac;
}

static struct fdb *make_fdb(uint32_t ageing_s)
{
    struct fdb *fdb = calloc(1, sizeof(*fdb));

    fdb->ageing_s = ageing_s;
    fdb->hash_key = 0x1234;
    return fdb;
}

static void test_fdb_gives_back_address_and_vlan(void **state)
{
    struct fdb *fdb = make_fdb(300);
    struct mac_addr mac = {{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}};
    unsigned live = 0;

    (void)state;
    fdb_learn(fdb, &mac, 4094, 63, 5);
    assert_int_equal(fdb_port(fdb, &mac, 4094, 5), 63);
    assert_int_equal(fdb_port(fdb, &mac, 4093, 5), FDB_NO_PORT);
    for (unsigned i = 0; i < FDB_ENTRIES; i++) {
        if (fdb_is_live(fdb, &fdb->entries[i], 5)) {
            struct mac_addr got = fdb_entry_mac(&fdb->entries[i]);

            assert_true(mac_addr_equal(&got, &mac));
            assert_int_equal(fdb_entry_vlan(&fdb->entries[i]), 4094);
            live++;
        }
    }
    assert_int_equal(live, 1);
    free(fdb);
}

/* The h-th address of a family: steps of a power of two in one of two parts of
 * the address, both parts alike, or the VLAN. */
static struct mac_addr family_mac(unsigned family, uint32_t h, uint16_t *vlan)
{
    struct mac_addr mac = {{2, 0, 0, 0, 0, 1}};

    *vlan = 1;
    if (family < 16) {
        put_be32(mac.bytes + 2, h << family);
    } else if (family < 20) {
        put_be32(mac.bytes + 1, h << (family - 12));
    } else if (family == 20) {
        put_be16(mac.bytes + 1, (uint16_t)h);
        put_be16(mac.bytes + 4, (uint16_t)h);
    } else {
        *vlan = (uint16_t)h;
        put_be16(mac.bytes + 4, (uint16_t)h);
    }
    return mac;
}

/* 4096 addresses in 2048 sets of four: addresses at random lose 160 of their
 * places to others. */
static void test_fdb_no_family_of_addresses_collides(void **state)
{
    enum { FAMILIES = 22, ADDRESSES = 4096, MOST_LOST = 300 };

    (void)state;
    for (unsigned round = 0; round < 16 * FAMILIES; round++) {
        struct fdb *fdb = make_fdb(300);
        unsigned known = 0;
        uint16_t vlan;

        fdb->hash_key = random_mix(round);
        for (uint32_t h = 1; h <= ADDRESSES; h++) {
            struct mac_addr mac = family_mac(round % FAMILIES, h, &vlan);

            fdb_learn(fdb, &mac, vlan, 3, 0);
        }
        for (uint32_t h = 1; h <= ADDRESSES; h++) {
            struct mac_addr mac = family_mac(round % FAMILIES, h, &vlan);

            known += fdb_port(fdb, &mac, vlan, 0) == 3;
        }
        if (known + MOST_LOST < ADDRESSES) {
            fail_msg("family %u: %u of %u are known", round % FAMILIES, known,
                     ADDRESSES);
        }
        free(fdb);
    }
}

static void test_fdb_keeps_the_latest_of_too_many_addresses(void **state)
{
    struct fdb *fdb = make_fdb(300);
    unsigned known = 0;

    (void)state;
    for (uint32_t i = 0; i < 10 * FDB_ENTRIES; i++) {
        struct mac_addr mac = numbered_mac(i);

        fdb_learn(fdb, &mac, 1, (uint8_t)(i % 64), i / 1000);
        assert_int_equal(fdb_port(fdb, &mac, 1, i / 1000), i % 64);
    }
    for (uint32_t i = 0; i < 10 * FDB_ENTRIES; i++) {
        struct mac_addr mac = numbered_mac(i);

        known += fdb_port(fdb, &mac, 1, 10 * FDB_ENTRIES / 1000) != FDB_NO_PORT;
    }
    assert_in_range(known, FDB_ENTRIES / 2, FDB_ENTRIES);
    free(fdb);
}

static void test_fdb_entries_age_unless_refreshed_or_told_not_to(void **state)
{
    struct fdb *fdb = make_fdb(10);
    struct mac_addr mac = numbered_mac(1);

    (void)state;
    fdb_learn(fdb, &mac, 1, 3, 100);
    assert_int_equal(fdb_port(fdb, &mac, 1, 109), 3);
    assert_int_equal(fdb_port(fdb, &mac, 1, 110), FDB_NO_PORT);
    fdb_learn(fdb, &mac, 1, 3, 109);
    assert_int_equal(fdb_port(fdb, &mac, 1, 118), 3);
    fdb->ageing_s = 0;
    assert_int_equal(fdb_port(fdb, &mac, 1, 1000000), 3);
    free(fdb);
}

static void test_fdb_forgets_one_port_or_all(void **state)
{
    struct fdb *fdb = make_fdb(10);
    struct mac_addr a = numbered_mac(1), b = numbered_mac(2);

    (void)state;
    fdb_learn(fdb, &a, 1, 3, 0);
    fdb_learn(fdb, &b, 1, 4, 0);
    fdb_forget(fdb, 3);
    assert_int_equal(fdb_port(fdb, &a, 1, 0), FDB_NO_PORT);
    assert_int_equal(fdb_port(fdb, &b, 1, 0), 4);
    fdb_forget(fdb, FDB_NO_PORT);
    assert_int_equal(fdb_port(fdb, &b, 1, 0), FDB_NO_PORT);
    free(fdb);
}
