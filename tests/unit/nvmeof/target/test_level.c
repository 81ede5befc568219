/* SPDX-License-Identifier: BSD-2-Clause */
/* What the levels of NVM Express have: the data sheet's profile, and 2.0. */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"
#include "tests/test_fixture.h"

/* What was refused because it does not exist. */
static bool is_unknown(uint16_t status)
{
    return (status & NVME_SC_MASK) == NVME_SC_INVALID_OPCODE ||
           (status & NVME_SC_MASK) == NVME_SC_INVALID_LOG_PAGE ||
           (status & NVME_SC_MASK) == NVME_SC_INVALID_FIELD;
}

static struct fake *fake_of_level(uint32_t vs, uint16_t *admin)
{
    struct fake *fake = fake_new();

    fake->config.vs = vs;
    fake_start(fake);
    *admin = fake_host(fake, 0);
    return fake;
}

static const uint8_t *identify_data(struct fake *fake, uint16_t admin,
                                    uint8_t cns, uint32_t nsid)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_IDENTIFY, nsid, cns, 0);

    memset(fake->data, 0xa5, NVME_IDENTIFY_LEN);
    assert_int_equal(
        fake_exec(fake, admin, &sqe, fake->data, NVME_IDENTIFY_LEN).status, 0);
    return fake->data;
}

static uint16_t run_query(struct fake *fake, uint16_t admin, uint8_t opcode,
                          uint32_t cdw10, uint32_t len)
{
    struct nvme_sqe sqe = fake_admin(opcode, 0, cdw10, 0);

    return fake_exec(fake, admin, &sqe, fake->data, len).status;
}

static void test_the_newest_level_has_what_2_0_requires(void **state)
{
    uint16_t admin;
    struct fake *fake = fake_of_level(0, &admin);
    const uint8_t *id;
    uint64_t cap;

    (void)state;
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_VS, 4), 0x20000);
    cap = fake_property_get(fake, admin, PROPERTY_CAP, 8);
    assert_int_equal(cap >> 59 & 3, 1); /* CRMS: ready with media */
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CRTO, 4), 20);
    id = identify_data(fake, admin, CNS_CONTROLLER, 0);
    assert_int_equal(get_le32(id + ID_CTRL_VER), 0x20000);
    assert_true(id[ID_CTRL_LPA] & LPA_SUPPORTED_PAGES);
    for (uint8_t cns = 5; cns <= 8; cns++) {
        identify_data(fake, admin, cns, cns == 6 ? 0 : 1);
    }
    fake_free(fake);
}

/* Bits, commands, pages and features that came after 1.2.1 do not exist. */
static void test_the_data_sheet_has_nothing_that_is_newer(void **state)
{
    static const uint8_t logs[] = {LOG_SUPPORTED, LOG_FEATURE_EFFECTS,
                                   LOG_MI_EFFECTS};
    static const uint8_t cns[] = {CNS_NS_DESCRIPTORS, CNS_NS_OF_COMMAND_SET,
                                  CNS_CONTROLLER_OF_COMMAND_SET,
                                  CNS_NS_OF_ALL_COMMAND_SETS, CNS_COMMAND_SETS};
    uint16_t admin;
    struct fake *fake = fake_of_level(NVMF_VS_1_2_1, &admin);
    const uint8_t *id = identify_data(fake, admin, CNS_CONTROLLER, 0);

    (void)state;
    assert_int_equal(id[ID_CTRL_LPA], LPA_COMMANDS_EFFECTS | LPA_EXTENDED_DATA);
    assert_int_equal(get_le32(id + ID_CTRL_CTRATT), CTRATT_HOSTID_128);
    assert_int_equal(get_le16(id + ID_CTRL_ONCS),
                     ONCS_COMPARE | ONCS_DATASET_MANAGEMENT |
                         ONCS_WRITE_ZEROES | ONCS_SAVE_SELECT |
                         ONCS_RESERVATIONS);
    assert_int_equal(id[ID_CTRL_VWC], VWC_PRESENT);
    assert_int_equal(id[ID_CTRL_CNTRLTYPE], 0);
    assert_int_equal(get_le16(id + ID_CTRL_OCFS), 0);
    id = identify_data(fake, admin, CNS_NAMESPACE, 1);
    assert_int_equal(id[ID_NS_DLFEAT], 0);
    assert_int_equal(id[ID_NS_NSFEAT] & NSFEAT_OPTPERF, 0);
    for (unsigned int i = ID_NS_NPWG; i < ID_NS_NOWS + 2; i++) {
        assert_int_equal(id[i], 0);
    }
    assert_int_equal(get_le16(id + ID_NS_MSSRL), 0);
    assert_int_equal(get_le32(id + ID_NS_MCL), 0);
    for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
        assert_true(
            is_unknown(run_query(fake, admin, ADMIN_GET_LOG_PAGE, logs[i], 4)));
    }
    for (size_t i = 0; i < ARRAY_LEN(cns); i++) {
        assert_true(is_unknown(
            run_query(fake, admin, ADMIN_IDENTIFY, cns[i], NVME_IDENTIFY_LEN)));
    }
    assert_true(is_unknown(
        run_query(fake, admin, ADMIN_GET_FEATURES, FEATURE_TIMESTAMP, 8)));
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CRTO, 4), 0);
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CAP, 8) >> 59 & 3,
                     0);
    fake_free(fake);
}

/* The effects page claims the commands that the level has, and no others. */
static void test_the_effects_page_follows_the_level(void **state)
{
    static const uint32_t levels[] = {NVMF_VS_1_2_1, NVMF_VS_1_4, NVMF_VS_2_0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        uint16_t admin;
        struct fake *fake = fake_of_level(levels[i], &admin);
        const uint8_t *io = fake->data + COMMANDS_EFFECTS_IO;

        assert_int_equal(run_query(fake, admin, ADMIN_GET_LOG_PAGE,
                                   1023u << 16 | LOG_COMMANDS_EFFECTS, 4096),
                         0);
        assert_int_equal(get_le32(io + 4 * NVM_READ), 1);
        assert_int_equal(get_le32(io + 4 * NVM_VERIFY) & 1,
                         levels[i] >= NVMF_VS_1_4);
        assert_int_equal(get_le32(io + 4 * NVM_COPY) & 1,
                         levels[i] >= NVMF_VS_2_0);
        fake_free(fake);
    }
}

/* Base 2.0 gives discovery controllers these pages too. */
static void test_a_discovery_controller_names_its_pages_and_features(
    void **state)
{
    uint16_t unused;
    struct fake *fake = fake_of_level(0, &unused);
    uint16_t admin = fake_discovery_host(fake);
    const uint8_t *page = fake->data;

    (void)state;
    assert_int_equal(run_query(fake, admin, ADMIN_GET_LOG_PAGE,
                               255u << 16 | LOG_SUPPORTED, LOG_SUPPORTED_LEN),
                     0);
    for (uint32_t lid = 0; lid < 256; lid++) {
        assert_int_equal(get_le32(page + 4 * lid),
                         lid == LOG_SUPPORTED || lid == LOG_FEATURE_EFFECTS ||
                             lid == LOG_DISCOVERY);
    }
    assert_int_equal(run_query(fake, admin, ADMIN_GET_LOG_PAGE,
                               255u << 16 | LOG_FEATURE_EFFECTS,
                               LOG_FEATURE_EFFECTS_LEN),
                     0);
    for (uint32_t fid = 0; fid < 256; fid++) {
        assert_int_equal(get_le32(page + 4 * fid) & 1,
                         fid == FEATURE_ASYNC_EVENT_CONFIG ||
                             fid == FEATURE_KEEP_ALIVE_TIMER);
    }
    fake_free(fake);
}
