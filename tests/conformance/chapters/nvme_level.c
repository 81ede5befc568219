/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The level of NVM Express: what VS 2.0 requires is there, and the profile of
 * the data sheet (1.2.1) has nothing that is newer.
 *
 * Spec: NVM Express Base 2.0 3.1.2, 3.1.3; Base 1.2.1 5.11, 5.14.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    CAP_CRWMS_BIT = 59,
    EFFECTS_CSUPP = 1,
    VS_2_0 = 0x00020000,
    VS_1_2_1 = 0x00010201,
};

static uint64_t get_property(struct nvme *nvme, uint32_t offset,
                             uint8_t size_bytes)
{
    uint64_t value;

    conf_status(nvme->conf, "Property Get",
                nvmf_get(nvme->admin, offset, size_bytes, &value),
                NVME_SC_SUCCESS);
    return value;
}

static struct nvme *open_2_0(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    if (get_le32(nvme->ctrl + ID_CTRL_VER) < VS_2_0) {
        conf_not_applicable(conf, "VS is below 2.0");
    }
    return nvme;
}

static void level_ready(struct conf *conf)
{
    struct nvme *nvme = open_2_0(conf);
    uint64_t cap = get_property(nvme, PROPERTY_CAP, 8);
    uint64_t crto = get_property(nvme, PROPERTY_CRTO, 4);

    conf_check(conf, cap >> CAP_CRWMS_BIT & 1,
               "CAP.CRMS says not that media are ready with the controller");
    conf_check(conf, (crto & 0xffff) != 0, "CRTO.CRWMT is 0");
    conf_check(conf, (cap >> 24 & 0xff) >= MIN(crto & 0xffff, 0xff),
               "CAP.TO is %u, below CRTO.CRWMT", (unsigned)(cap >> 24 & 0xff));
    nvme_close(nvme);
}

static void level_pages(struct conf *conf)
{
    static const uint8_t pages[] = {
        LOG_SUPPORTED,        LOG_ERROR,          LOG_SMART, LOG_FIRMWARE_SLOT,
        LOG_COMMANDS_EFFECTS, LOG_FEATURE_EFFECTS};
    struct nvme *nvme = open_2_0(conf);

    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        conf_status(conf, "Get Log Page of a mandatory page",
                    nvme_get_log(nvme, pages[i] | LOG_RAE, 0, 16),
                    NVME_SC_SUCCESS);
    }
    nvme_close(nvme);
}

static void level_identify(struct conf *conf)
{
    static const uint8_t cns[] = {
        CNS_NAMESPACE, CNS_NS_DESCRIPTORS, CNS_NS_OF_COMMAND_SET,
        CNS_ACTIVE_NS_LIST_OF_COMMAND_SET, CNS_NS_OF_ALL_COMMAND_SETS};
    struct nvme *nvme = open_2_0(conf);

    for (size_t i = 0; i < ARRAY_LEN(cns); i++) {
        conf_status(conf, "Identify with a mandatory CNS",
                    nvme_identify(nvme, cns[i], nvme->nsid), NVME_SC_SUCCESS);
    }
    conf_status(conf, "Identify with CNS 06h",
                nvme_identify(nvme, CNS_CONTROLLER_OF_COMMAND_SET, 0),
                NVME_SC_SUCCESS);
    nvme_close(nvme);
}

/* A discovery controller names its pages too. */
static void level_discovery(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint64_t vs;
    struct nvme_sqe sqe = {.opcode = ADMIN_GET_LOG_PAGE,
                           .cdw10 = (LOG_SUPPORTED_LEN / 4 - 1) << 16 |
                                    LOG_SUPPORTED};
    struct nvme *nvme = conf_alloc(conf, sizeof(*nvme));

    *nvme = (struct nvme){.conf = conf, .admin = rc};
    conf_status(conf, "Property Get VS", nvmf_get(rc, PROPERTY_VS, 4, &vs),
                NVME_SC_SUCCESS);
    if (vs < VS_2_0) {
        conf_not_applicable(conf, "VS is below 2.0");
    }
    conf_status(conf, "Get Log Page 00h of a discovery controller",
                nvme_run(nvme, rc, &sqe, LOG_SUPPORTED_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_check(conf, get_le32(rc->mem + 4 * LOG_DISCOVERY) & 1,
               "page 70h is not among the supported pages");
    conf_check(conf, !(get_le32(rc->mem + 4 * LOG_SMART) & 1),
               "page 02h is said to exist on a discovery controller");
    rc_close(rc);
}

/* ---- The data sheet's profile. */

static void expect_none(struct nvme *nvme, const char *what, uint16_t status,
                        uint16_t wanted)
{
    conf_status(nvme->conf, what, status, wanted);
}

static void check_1_2_1(struct conf *conf)
{
    static const uint8_t pages[] = {
        LOG_SUPPORTED,       0x06, 0x07, 0x08, 0x09, 0x0c, 0x0d,
        LOG_FEATURE_EFFECTS, 0x81};
    struct nvme *nvme = nvme_open(conf);
    const uint8_t *ctrl = nvme->ctrl;
    struct nvme_sqe verify = nvme_right(nvme, NVM_VERIFY);
    const uint8_t *effects;

    conf_equal(conf, "VS", get_property(nvme, PROPERTY_VS, 4), VS_1_2_1);
    conf_equal(conf, "VER", get_le32(ctrl + ID_CTRL_VER), VS_1_2_1);
    conf_equal(conf, "CRTO", get_property(nvme, PROPERTY_CRTO, 4), 0);
    conf_equal(conf, "CTRATT without bit 0",
               get_le32(ctrl + ID_CTRL_CTRATT) & ~(uint32_t)CTRATT_HOSTID_128,
               0);
    conf_equal(conf, "LPA bits 7:3", ctrl[ID_CTRL_LPA] & 0xf8, 0);
    conf_equal(conf, "ONCS bits 15:6", get_le16(ctrl + ID_CTRL_ONCS) >> 6, 0);
    conf_equal(conf, "OACS bits 15:4", get_le16(ctrl + ID_CTRL_OACS) >> 4, 0);
    conf_equal(conf, "OCFS", get_le16(ctrl + ID_CTRL_OCFS), 0);
    conf_equal(conf, "CNTRLTYPE", ctrl[ID_CTRL_CNTRLTYPE], 0);
    conf_equal(conf, "VWC bits 7:1", ctrl[ID_CTRL_VWC] >> 1, 0);
    conf_equal(conf, "DLFEAT", nvme->ns[ID_NS_DLFEAT], 0);
    conf_equal(conf, "MSSRL", get_le16(nvme->ns + ID_NS_MSSRL), 0);
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        expect_none(nvme, "Get Log Page of a page newer than 1.2.1",
                    nvme_get_log(nvme, pages[i] | LOG_RAE, 0, 16),
                    NVME_SC_INVALID_LOG_PAGE);
    }
    expect_none(nvme, "Identify with CNS 03h",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, nvme->nsid),
                NVME_SC_INVALID_FIELD);
    expect_none(nvme, "Identify with CNS 06h",
                nvme_identify(nvme, CNS_CONTROLLER_OF_COMMAND_SET, 0),
                NVME_SC_INVALID_FIELD);
    expect_none(nvme, "Get Features Timestamp",
                nvme_timestamp(nvme, ADMIN_GET_FEATURES, 8),
                NVME_SC_INVALID_FIELD);
    expect_none(nvme, "Verify", nvme_run(nvme, nvme->io, &verify, 0, NULL),
                NVME_SC_INVALID_OPCODE);
    effects = nvme_log(nvme, LOG_COMMANDS_EFFECTS, LOG_COMMANDS_EFFECTS_LEN) +
              COMMANDS_EFFECTS_IO;
    conf_equal(conf, "effects of Copy", get_le32(effects + 4 * NVM_COPY), 0);
    conf_equal(conf, "effects of Read",
               get_le32(effects + 4 * NVM_READ) & EFFECTS_CSUPP, 1);
    nvme_close(nvme);
}

/* Unique names came with 2.0.  A Linux host accepts one only from a controller
 * whose CNTRLTYPE, which came with 1.4, says discovery. */
static void check_discovery_1_2_1(struct conf *conf)
{
    struct nvme *nvme = conf_alloc(conf, sizeof(*nvme));
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    const uint8_t *ctrl;

    *nvme = (struct nvme){
        .conf = conf,
        .admin = nvmf_open_discovery(conf, &(struct rc_config){0})};
    conf_status(conf, "Identify of a discovery controller",
                nvme_run(nvme, nvme->admin, &identify, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    ctrl = nvme->admin->mem;
    conf_equal(conf, "CNTRLTYPE", ctrl[ID_CTRL_CNTRLTYPE], 0);
    conf_check(
        conf,
        strcmp((const char *)ctrl + ID_CTRL_SUBNQN, NVME_DISCOVERY_NQN) == 0,
        "SUBNQN of a discovery controller is not the well-known name");
    rc_close(nvme->admin);
}

static void level_datasheet(struct conf *conf)
{
    if (strstr(conf_console(conf, "config"), "nvme.profile ") == NULL) {
        conf_not_applicable(conf, "the console has no setting nvme.profile");
    }
    conf_console(conf, "config set nvme.profile datasheet");
    conf_console(conf, "config save");
    conf_reset(conf);
    check_1_2_1(conf);
    check_discovery_1_2_1(conf);
    conf_console(conf, "config set nvme.profile newest");
    conf_console(conf, "config save");
    conf_reset(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("level.ready", "NVMe 2.0 3.1.3.1, 3.1.3.17",
              "CAP.CRMS and CRTO say when media are ready", level_ready),
    CONF_TEST("level.pages", "NVMe 2.0 3.1.2.1.2",
              "the log pages that are mandatory for I/O controllers exist",
              level_pages),
    CONF_TEST("level.identify", "NVMe 2.0 5.17.1",
              "the Identify data that are mandatory exist", level_identify),
    CONF_TEST("level.discovery", "NVMe 2.0 5.16.1.1",
              "a discovery controller names its log pages", level_discovery),
    CONF_TEST("level.datasheet", "NVMe 1.2.1 5.11, 5.14",
              "the profile of the data sheet has nothing newer than 1.2.1",
              level_datasheet, .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_nvme_level, "nvme", tests);
