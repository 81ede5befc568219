/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endurance groups: Identify and the log page agree.
 *
 * Spec: NVM Express Base 2.0 3.2.3, 5.16.1.10, 5.17.2.1.
 */
#include "nvme_lib.h"

enum { LSI_SHIFT = 16 };

static uint16_t get_group(struct nvme *nvme, uint32_t group)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_GET_LOG_PAGE,
                           .cdw10 = (LOG_ENDURANCE_LEN / 4 - 1) << 16 |
                                    LOG_RAE | LOG_ENDURANCE_GROUP,
                           .cdw11 = group << LSI_SHIFT};

    return nvme_run(nvme, nvme->admin, &sqe, LOG_ENDURANCE_LEN, NULL);
}

static struct nvme *open_endurance(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    if (!(get_le32(nvme->ctrl + ID_CTRL_CTRATT) & CTRATT_ENDURANCE_GROUPS)) {
        conf_not_applicable(conf, "CTRATT bit 4 is 0");
    }
    return nvme;
}

static void endurance_identify(struct conf *conf)
{
    struct nvme *nvme = open_endurance(conf);
    uint16_t most = get_le16(nvme->ctrl + ID_CTRL_ENDGIDMAX);
    uint16_t own = get_le16(nvme->ns + ID_NS_ENDGID);

    conf_check(conf, most != 0, "ENDGIDMAX is 0");
    conf_check(conf, own != 0 && own <= most,
               "ENDGID of the namespace is %u, ENDGIDMAX %u", own, most);
    if (get_le32(nvme->ctrl + ID_CTRL_VER) >= 0x20000) {
        conf_status(conf, "Identify with CNS 19h",
                    nvme_identify(nvme, CNS_ENDURANCE_GROUPS, 0),
                    NVME_SC_SUCCESS);
        conf_check(conf, get_le16(nvme->admin->mem) != 0,
                   "the list of endurance groups is empty");
    }
    nvme_close(nvme);
}

static void endurance_page(struct conf *conf)
{
    struct nvme *nvme = open_endurance(conf);
    uint16_t own = get_le16(nvme->ns + ID_NS_ENDGID);
    uint64_t reads;

    conf_status(conf, "Get Log Page of the namespace's endurance group",
                get_group(nvme, own), NVME_SC_SUCCESS);
    reads = get_le64(nvme->admin->mem + ENDURANCE_HOST_READS);
    conf_check(conf,
               get_le64(nvme->admin->mem + ENDURANCE_CAPACITY) >=
                   nvme->size_blocks * nvme->block_bytes,
               "the group is smaller than its namespace");
    conf_check(conf,
               reads <= get_le64(nvme_log(nvme, LOG_SMART, LOG_SMART_LEN) +
                                 SMART_HOST_READS),
               "the group counts more host reads than the subsystem");
    nvme_close(nvme);
}

static void endurance_unknown(struct conf *conf)
{
    struct nvme *nvme = open_endurance(conf);
    uint16_t most = get_le16(nvme->ctrl + ID_CTRL_ENDGIDMAX);

    conf_status(conf, "endurance group 0", get_group(nvme, 0),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "an endurance group above ENDGIDMAX",
                get_group(nvme, most + 1u), NVME_SC_INVALID_FIELD);
    nvme_close(nvme);
}

static const struct conf_test tests[] = {
    CONF_TEST("endurance.identify", "NVMe 2.0 3.2.3, 5.17.2.1",
              "ENDGIDMAX, ENDGID and the list of groups agree",
              endurance_identify),
    CONF_TEST("endurance.page", "NVMe 2.0 5.16.1.10",
              "the page of the namespace's group agrees with SMART",
              endurance_page),
    CONF_TEST("endurance.unknown", "NVMe 2.0 5.16.1.10",
              "the page of a group that does not exist is refused",
              endurance_unknown),
};
CONF_TESTS(conf_tests_nvme_endurance, "nvme", tests);
