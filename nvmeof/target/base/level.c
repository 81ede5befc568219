/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Since which level of NVM Express the commands, log pages, features and bits
 * exist that the target has, or can be expected to get.  What is in no row is
 * as old as the data sheet's level, 1.2.1 with fabrics 1.0.
 * Spec: NVM Express Base 1.2.1, 1.3, 1.4 and 2.0; NVM Command Set 1.0.
 *
 * Left out: what a host decides by itself, such as to use no flow control of
 * submission queues (fabrics 1.1) or to authenticate (2.0).
 */
#include "nvmeof/target/base/level.h"

#include "nvmeof/target/base/base.h"
#include "nvmeof/wire/identify.h"

struct level_row {
    uint32_t since;
    uint8_t kind;   /* enum level_kind */
    uint16_t first; /* number, or offset of the first byte */
    uint16_t count; /* how many numbers, or bytes */
    uint8_t mask;   /* which bits of each of these bytes */
};

static const struct level_row rows[] = {
    {NVMF_VS_1_3, LEVEL_ADMIN, 0x14, 1, 0}, /* Device Self-test */
    {NVMF_VS_1_3, LEVEL_ADMIN, 0x19, 2, 0}, /* Directive Send, Receive */
    {NVMF_VS_1_3, LEVEL_ADMIN, 0x84, 1, 0}, /* Sanitize */
    {NVMF_VS_1_3, LEVEL_CNS, CNS_NS_DESCRIPTORS, 1, 0},
    {NVMF_VS_1_3, LEVEL_LOG, 0x06, 3, 0}, /* self-test, telemetry */
    {NVMF_VS_1_3, LEVEL_LOG, 0x81, 1, 0}, /* sanitize status */
    {NVMF_VS_1_3, LEVEL_FEATURE, FEATURE_TIMESTAMP, 1, 0},
    {NVMF_VS_1_3, LEVEL_FEATURE, 0x10, 2, 0},
    {NVMF_VS_1_3, LEVEL_CONTROLLER, ID_CTRL_OACS, 1, 0xf0},
    {NVMF_VS_1_3, LEVEL_CONTROLLER, ID_CTRL_OACS + 1, 1, 0x01},
    {NVMF_VS_1_3, LEVEL_CONTROLLER, ID_CTRL_LPA, 1, 0x08}, /* telemetry */
    {NVMF_VS_1_3, LEVEL_CONTROLLER, 316, 4, 0xff},         /* EDSTT to FWUG */
    {NVMF_VS_1_3, LEVEL_CONTROLLER, 322, 10, 0xff}, /* HCTMA to SANICAP */
    {NVMF_VS_1_3, LEVEL_CONTROLLER, ID_CTRL_ONCS, 1, ONCS_TIMESTAMP},
    {NVMF_VS_1_3, LEVEL_NAMESPACE, ID_NS_RESCAP, 1, RESCAP_IEKEY_1_3},
    {NVMF_VS_1_3, LEVEL_NAMESPACE, ID_NS_DLFEAT, 1, 0xff},

    {NVMF_VS_1_4, LEVEL_ADMIN, 0x86, 1, 0}, /* Get LBA Status */
    {NVMF_VS_1_4, LEVEL_IO, NVM_VERIFY, 1, 0},
    {NVMF_VS_1_4, LEVEL_CNS, CNS_NS_GRANULARITY, 2, 0},
    {NVMF_VS_1_4, LEVEL_LOG, 0x09, 7, 0}, /* endurance groups to LBA status */
    {NVMF_VS_1_4, LEVEL_FEATURE, 0x12, 7, 0},
    {NVMF_VS_1_4, LEVEL_FEATURE, FEATURE_NS_WRITE_PROTECTION, 1, 0},
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_CMIC, 1, 0x08}, /* ANA */
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_OAES + 1, 1, 0x78},
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_CTRATT, 1, 0xfc},
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_CTRATT + 1, 1, 0x03},
    {NVMF_VS_1_4, LEVEL_CONTROLLER, 100, 2, 0xff},                /* RRLS */
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_CNTRLTYPE, 23, 0xff}, /* to CRDT3 */
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_OACS + 1, 1, 0x02},
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_LPA, 1, 0x10}, /* event log */
    {NVMF_VS_1_4, LEVEL_CONTROLLER, 332, 24, 0xff},        /* HMMINDS to PELS */
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_ONCS, 1, ONCS_VERIFY},
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_VWC, 1, VWC_FLUSH_ALL},
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_NWPC, 1, 0xff},
    {NVMF_VS_1_4, LEVEL_CONTROLLER, ID_CTRL_MNAN, 4, 0xff},
    {NVMF_VS_1_4, LEVEL_NAMESPACE, ID_NS_NSFEAT, 1, NSFEAT_OPTPERF},
    {NVMF_VS_1_4, LEVEL_NAMESPACE, ID_NS_NPWG, 10, 0xff}, /* to NOWS */
    {NVMF_VS_1_4, LEVEL_NAMESPACE, ID_NS_ANAGRPID, 4, 0xff},
    {NVMF_VS_1_4, LEVEL_NAMESPACE, ID_NS_NSATTR, 5, 0xff}, /* to ENDGID */
    {NVMF_VS_1_4, LEVEL_SMART, 6, 1, 0xff}, /* summary of endurance groups */

    {NVMF_VS_2_0, LEVEL_IO, NVM_COPY, 1, 0},
    {NVMF_VS_2_0, LEVEL_CNS, CNS_NS_OF_COMMAND_SET, 4, 0},
    {NVMF_VS_2_0, LEVEL_CNS, CNS_ENDURANCE_GROUPS, 1, 0},
    {NVMF_VS_2_0, LEVEL_CNS, CNS_COMMAND_SETS, 1, 0},
    {NVMF_VS_2_0, LEVEL_LOG, LOG_SUPPORTED, 1, 0},
    {NVMF_VS_2_0, LEVEL_LOG, LOG_FEATURE_EFFECTS, 2, 0},
    {NVMF_VS_2_0, LEVEL_PROPERTY, PROPERTY_CRTO, 1, 0},
    {NVMF_VS_2_0, LEVEL_CONTROLLER, ID_CTRL_CTRATT + 1, 3, 0xfc},
    {NVMF_VS_2_0, LEVEL_CONTROLLER, ID_CTRL_FRMW, 1, FRMW_DETECTS_OVERLAP},
    {NVMF_VS_2_0, LEVEL_CONTROLLER, ID_CTRL_LPA, 1, 0xe0},
    {NVMF_VS_2_0, LEVEL_CONTROLLER, ID_CTRL_ONCS + 1, 1, ONCS_COPY >> 8},
    {NVMF_VS_2_0, LEVEL_CONTROLLER, ID_CTRL_OCFS, 2, 0xff},
    {NVMF_VS_2_0, LEVEL_NAMESPACE, ID_NS_MSSRL, 7, 0xff}, /* to MSRC */
};

bool level_has(const struct nvmf_target *target, enum level_kind kind,
               uint32_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].kind == kind && number >= rows[i].first &&
            number - rows[i].first < rows[i].count) {
            return target->config.vs >= rows[i].since;
        }
    }
    return true;
}

void level_trim(const struct nvmf_target *target, enum level_kind kind,
                uint8_t *data)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (uint32_t byte = 0;
             rows[i].kind == kind && target->config.vs < rows[i].since &&
             byte < rows[i].count;
             byte++) {
            data[rows[i].first + byte] &= (uint8_t)~rows[i].mask;
        }
    }
}
