/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the target says that it supports: log pages, features, command sets.
 *
 * Spec: NVM Express Base 2.0 5.16.1.1 (Supported Log Pages), 5.16.1.18 (Feature
 * Identifiers Supported and Effects), 5.17.2.22 (I/O Command Set data).
 */
#include <string.h>

#include "nvme_lib.h"

enum { IDENTIFIERS = 256, SELECT_SHIFT = 8, EXHID = 1 };

static struct nvme *open_support(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    if (!(nvme->ctrl[ID_CTRL_LPA] & LPA_SUPPORTED_PAGES)) {
        conf_not_applicable(conf, "LPA bit 5 is 0");
    }
    return nvme;
}

static const uint8_t *copy_page(struct nvme *nvme, uint8_t lid)
{
    uint8_t *copy = conf_alloc(nvme->conf, LOG_SUPPORTED_LEN);

    memcpy(copy, nvme_log(nvme, lid, LOG_SUPPORTED_LEN), LOG_SUPPORTED_LEN);
    return copy;
}

static void support_logs(struct conf *conf)
{
    struct nvme *nvme = open_support(conf);
    const uint8_t *page = copy_page(nvme, LOG_SUPPORTED);

    for (uint32_t lid = 0; lid < IDENTIFIERS; lid++) {
        bool has = get_le32(page + 4 * lid) & LOG_SUPPORTED_LSUPP;
        uint16_t status = nvme_get_log(nvme, lid | LOG_RAE, 0, 16);

        if (has && status == NVME_SC_INVALID_FIELD) {
            continue; /* a page that wants an identifier, such as 09h */
        }
        /* Persistent events cannot be read without a context. */
        if (lid == LOG_PERSISTENT_EVENT && status == NVME_SC_COMMAND_SEQUENCE) {
            status = NVME_SC_SUCCESS;
        }
        conf_check(conf, (status == NVME_SC_SUCCESS) == has,
                   "page %02xh: Get Log Page %03xh, LSUPP %d", lid, status,
                   has);
    }
    nvme_close(nvme);
}

static void support_features(struct conf *conf)
{
    struct nvme *nvme = open_support(conf);
    const uint8_t *page = copy_page(nvme, LOG_FEATURE_EFFECTS);

    for (uint32_t fid = 1; fid < IDENTIFIERS; fid++) {
        struct nvme_sqe sqe = {
            .opcode = ADMIN_GET_FEATURES,
            .cdw10 = FEATURE_SELECT_CAPABILITIES << SELECT_SHIFT | fid,
            .cdw11 = fid == FEATURE_HOST_IDENTIFIER ? EXHID : 0};
        bool has = get_le32(page + 4 * fid) & FEATURE_EFFECTS_FSUPP;
        uint16_t status = nvme_run(nvme, nvme->admin, &sqe, 0, NULL);

        if (has && status == NVME_SC_INVALID_NS) {
            continue; /* a feature of namespaces */
        }
        conf_check(conf, (status == NVME_SC_SUCCESS) == has,
                   "feature %02xh: Get Features %03xh, FSUPP %d", fid, status,
                   has);
    }
    nvme_close(nvme);
}

static void support_command_sets(struct conf *conf)
{
    struct nvme *nvme = open_support(conf);
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY,
                           .cdw10 = CNS_COMMAND_SETS |
                                    0xffffu << NVME_IDENTIFY_CNTID_SHIFT};

    conf_status(conf, "Identify 1Ch of this controller",
                nvme_run(nvme, nvme->admin, &sqe, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_check(conf, nvme->admin->mem[0] & 1,
               "the first combination has no NVM command set");
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST("support." id, "NVMe 2.0 " clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("logs", "5.16.1.1",
         "Supported Log Pages names the pages that can be read", support_logs),
    TEST("features", "5.16.1.18",
         "Feature Identifiers Effects names the features that exist",
         support_features),
    TEST("command-sets", "5.17.2.22", "Identify 1Ch has the NVM command set",
         support_command_sets),
};
CONF_TESTS(conf_tests_nvme_support, "nvme", tests);
