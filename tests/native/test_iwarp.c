/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP in the drive: when it is on, and what discovery lists. */
#include "bed.h"

#include <string.h>

#include "nvmeof/wire/discovery.h"
#include "tests/test_fixture.h"

enum { MEDIUM_BYTES = 16 << 20, ALL_PORTS = 2 };

/* The RDMA protocols of the drive's list, as BIT(prtype), and TCP as BIT(0).
 * Each has one entry for each port. */
static unsigned int read_list(const struct addresses *addresses)
{
    unsigned int counts[RDMA_PRTYPE_IWARP + 1] = {0};
    unsigned int found = 0;

    for (unsigned int i = 0; i < addresses->count; i++) {
        const struct nvmf_address *entry = &addresses->list[i];

        assert_string_equal(entry->trsvcid, "4420");
        counts[entry->trtype == TRTYPE_RDMA ? entry->tsas.rdma_prtype : 0]++;
    }
    for (unsigned int i = 0; i < ARRAY_LEN(counts); i++) {
        assert_true(counts[i] == 0 || counts[i] == ALL_PORTS);
        found |= counts[i] != 0 ? 1u << i : 0;
    }
    return found;
}

/* Start a drive with these settings.  @return read_list() */
static unsigned int list_with(bool has_iwarp, bool has_tcp,
                              enum config_listed listed)
{
    static struct native_world world;
    static struct medium medium;
    struct config saved;
    struct native_drive_config config = {
        .node = {.number = 1}, .medium = &medium, .saved = &saved};
    struct native_drive *drive;
    unsigned int found;

    config_default(&saved);
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        saved.port[i].has_ipv4 = true;
        memcpy(saved.port[i].ipv4, (const uint8_t[]){10, 0, i, 10}, 4);
        saved.port[i].ipv4_prefix = 24;
    }
    saved.network.has_nvme_iwarp = has_iwarp;
    saved.network.has_nvme_tcp = has_tcp;
    saved.network.listed = listed;
    native_world_init(&world);
    medium_init(&medium, MEDIUM_BYTES);
    drive = native_drive_create(&world, &config);
    assert_int_equal(drive->drive.tcp.has_iwarp, has_iwarp);
    found = read_list(&drive->drive.addresses);
    native_drive_destroy(drive);
    medium_end(&medium);
    native_world_end(&world);
    return found;
}

static void test_discovery_lists_what_is_on_and_not_hidden(void **state)
{
    static const unsigned int tcp = 1, roce = BIT(RDMA_PRTYPE_ROCEV2),
                              iwarp = BIT(RDMA_PRTYPE_IWARP);

    (void)state;
    assert_int_equal(list_with(false, false, CONFIG_LISTED_ALL), roce);
    assert_int_equal(list_with(true, false, CONFIG_LISTED_ALL), roce | iwarp);
    assert_int_equal(list_with(true, true, CONFIG_LISTED_ALL),
                     roce | iwarp | tcp);
    assert_int_equal(list_with(true, false, CONFIG_LISTED_ROCE), roce);
    assert_int_equal(list_with(true, false, CONFIG_LISTED_IWARP), iwarp);
    /* What is off cannot be listed: hosts would find nothing. */
    assert_int_equal(list_with(false, false, CONFIG_LISTED_IWARP), roce);
}

TEST_FIXTURE(NULL, NULL)
