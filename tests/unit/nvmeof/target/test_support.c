/* SPDX-License-Identifier: BSD-2-Clause */
/* Log pages that say what the drive supports, and OCP's SMART page. */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

static uint16_t get_log(struct fake *fake, uint16_t admin, uint8_t lid,
                        uint32_t len)
{
    struct nvme_sqe sqe =
        fake_admin(ADMIN_GET_LOG_PAGE, 0, (len / 4 - 1) << 16 | lid, 0);

    memset(fake->data, 0xa5, len);
    return fake_exec(fake, admin, &sqe, fake->data, len).status & NVME_SC_MASK;
}

/* The page and Get Log Page agree about every LID. */
static void test_the_supported_pages_are_those_that_can_be_read(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t page[LOG_SUPPORTED_LEN];
    unsigned int count = 0;

    assert_int_equal(get_log(fake, admin, LOG_SUPPORTED, sizeof(page)), 0);
    memcpy(page, fake->data, sizeof(page));
    for (unsigned int lid = 0; lid < 256; lid++) {
        bool is_events = lid == LOG_PERSISTENT_EVENT;
        uint32_t wanted =
            LOG_SUPPORTED_LSUPP | (is_events ? LOG_SUPPORTED_PEL_HEADER : 0u);
        bool is_supported = get_le32(page + 4 * lid) == wanted;

        assert_true(is_supported || get_le32(page + 4 * lid) == 0);
        /* Persistent events cannot be read without a context. */
        assert_int_equal(get_log(fake, admin, (uint8_t)lid, 4),
                         is_events      ? NVME_SC_COMMAND_SEQUENCE
                         : is_supported ? 0
                                        : NVME_SC_INVALID_LOG_PAGE);
        count += is_supported;
    }
    assert_true(count >= 9);
}

/* The page and Get Features agree about every FID. */
static void test_the_feature_effects_name_the_features_that_exist(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t page[LOG_FEATURE_EFFECTS_LEN];

    assert_int_equal(get_log(fake, admin, LOG_FEATURE_EFFECTS, sizeof(page)),
                     0);
    memcpy(page, fake->data, sizeof(page));
    for (uint32_t fid = 0; fid < 256; fid++) {
        struct nvme_sqe sqe = fake_admin(ADMIN_GET_FEATURES, 0, 3 << 8 | fid,
                                         fid == FEATURE_HOST_IDENTIFIER);
        uint32_t effects = get_le32(page + 4 * fid);
        uint16_t status =
            fake_exec(fake, admin, &sqe, fake->data, 0).status & NVME_SC_MASK;

        /* Features with a namespace are refused without one. */
        if (status == NVME_SC_SUCCESS) {
            assert_true(effects & FEATURE_EFFECTS_FSUPP);
        } else if (effects == 0) {
            assert_int_not_equal(status, NVME_SC_SUCCESS);
        }
    }
    assert_int_equal(get_le32(page + 4 * FEATURE_TIMESTAMP),
                     FEATURE_EFFECTS_FSUPP | FEATURE_EFFECTS_SUBSYSTEM_SCOPE);
    assert_int_equal(get_le32(page + 4 * FEATURE_ARBITRATION),
                     FEATURE_EFFECTS_FSUPP | FEATURE_EFFECTS_CTRL_SCOPE);
}

static void test_ocp_smart_has_its_guid_and_counts_bytes(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 8);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 3);
    /* AFD514C97C6F4F9CA4F2BFEA2810AFC5h, little-endian */
    static const uint8_t guid[16] = {0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf,
                                     0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c,
                                     0xc9, 0x14, 0xd5, 0xaf};

    fake_exec(fake, io, &write, fake->data, 4096);
    fake_exec(fake, io, &read, fake->data, 1536);
    assert_int_equal(get_log(fake, admin, LOG_OCP_SMART, 512), 0);
    assert_memory_equal(fake->data + 496, guid, sizeof(guid));
    assert_int_equal(get_le16(fake->data + 494), 3);
    assert_int_equal(get_le64(fake->data), 4096);
    assert_int_equal(get_le64(fake->data + 16), 1536);
    assert_int_equal(get_le32(fake->data + 112), 9); /* unsafe shutdowns */
    assert_int_equal(fake->data[120], 100);
    assert_int_equal(get_le64(fake->data + 152), 2 * FAKE_BLOCKS);
    for (unsigned int i = 40; i < 56; i++) {
        assert_int_equal(fake->data[i], 0);
    }
}

static void read_fake_flash(void *ctx, struct nvmf_flash_use *use)
{
    (void)ctx;
    *use = (struct nvmf_flash_use){
        .written_bytes = 7000,
        .failed_blocks = 3,
        .left_percent = 90,
        .rebuilt = 4,
        .soft_reads = 5,
        .most_erased = 0x01020304,
        .least_erased = 6,
    };
}

WITH_FIXTURE(NULL, NULL)
static void test_ocps_smart_page_describes_the_flash(void **state)
{
    struct fake *fake = fake_new();
    uint16_t admin;

    (void)state;
    fake->config.read_flash = read_fake_flash;
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(get_log(fake, admin, LOG_OCP_SMART, 512), 0);
    assert_int_equal(get_le64(fake->data), 7000);
    assert_int_equal(get_le32(fake->data + 32), 3);
    assert_int_equal(get_le16(fake->data + 38), 90);
    assert_int_equal(get_le64(fake->data + 48), 4);
    assert_int_equal(get_le64(fake->data + 64), 5);
    assert_int_equal(get_le32(fake->data + 88), 0x01020304);
    assert_int_equal(get_le32(fake->data + 92), 6);
    fake_free(fake);
}

WITH_FIXTURE(NULL, NULL)
static void test_identify_names_a_management_endpoint_if_there_is_a_bmc(
    void **state)
{
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);

    (void)state;
    for (unsigned int has_bmc = 0; has_bmc < 2; has_bmc++) {
        struct fake *fake = fake_new();
        uint16_t admin;

        fake->config.has_bmc = has_bmc != 0;
        fake_start(fake);
        admin = fake_host(fake, 0);
        assert_int_equal(
            fake_exec(fake, admin, &identify, fake->data, NVME_IDENTIFY_LEN)
                .status,
            0);
        assert_int_equal(fake->data[253], 1); /* NVMSR: a storage device */
        assert_int_equal(fake->data[255], has_bmc);
        assert_int_equal(get_log(fake, admin, LOG_OCP_CAPABILITIES, 4096), 0);
        assert_int_equal(get_le16(fake->data + 2), has_bmc ? 5 : 0);
        fake_free(fake);
    }
}

WITH_FIXTURE(NULL, NULL)
static void test_the_data_sheet_profile_lacks_pages_of_2_0(void **state)
{
    struct fake *fake = fake_new();
    uint16_t admin;

    (void)state;
    fake->config.vs = 0x00010201;
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(get_log(fake, admin, LOG_SUPPORTED, 4),
                     NVME_SC_INVALID_LOG_PAGE);
    assert_int_equal(get_log(fake, admin, LOG_FEATURE_EFFECTS, 4),
                     NVME_SC_INVALID_LOG_PAGE);
    fake_free(fake);
}

TEST_FIXTURE(fake_setup, fake_teardown)
