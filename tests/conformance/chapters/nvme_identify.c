/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify: what each structure says, and that they agree with each other and
 * with properties, Connect and log pages.
 * Spec: NVM Express 1.4 5.15; NVMe over Fabrics 1.1 4.1.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    V1_4 = 0x00010400,
    OACS_NS_MANAGEMENT = 0x08,
    NSFEAT_THIN = 0x01,
    ID_NS_NSFEAT = 24,
    ID_NS_MC = 27,
    ID_NS_DPC = 28,
    ID_NS_DPS = 29,
    ID_CTRL_FUSES = 522,
    NIDT_EUI64 = 1,
    NIDT_NGUID = 2,
    NIDT_UUID = 3,
    NID_HEADER_LEN = 4,
};

#define WITH_NVME(name)                                                        \
    static void name##_of(struct conf *conf, struct nvme *nvme);               \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvme *nvme = nvme_open_admin(conf);                             \
                                                                               \
        name##_of(conf, nvme);                                                 \
        nvme_close(nvme);                                                      \
    }                                                                          \
    static void name##_of(struct conf *conf, struct nvme *nvme)

/* ---- The controller. */

WITH_NVME(cntlid)
{
    conf_equal(conf, "CNTLID", get_le16(nvme->ctrl + ID_CTRL_CNTLID),
               nvme->admin->config.cntlid);
}

WITH_NVME(subnqn)
{
    const uint8_t *at = nvme->ctrl + ID_CTRL_SUBNQN;
    const char *nqn = conf_target(conf)->nqn;
    uint8_t expected[256] = {0};

    memcpy(expected, nqn, strlen(nqn));
    conf_same(conf, "SUBNQN, padded with zeroes", at, expected,
              sizeof(expected));
}

WITH_NVME(version)
{
    uint64_t vs;

    conf_status(conf, "Property Get VS",
                nvmf_get(nvme->admin, PROPERTY_VS, 4, &vs), NVME_SC_SUCCESS);
    conf_equal(conf, "VER", get_le32(nvme->ctrl + ID_CTRL_VER), vs);
}

static void check_ascii(struct conf *conf, const char *what,
                        const uint8_t *text, size_t len)
{
    bool is_padding = true;

    for (size_t i = len; i-- > 0;) {
        conf_check(conf, text[i] >= 0x20 && text[i] <= 0x7e,
                   "%s: byte %zu is %02xh", what, i, text[i]);
        is_padding = is_padding && text[i] == ' ';
    }
    conf_check(conf, !is_padding, "%s is empty", what);
    conf_check(conf, text[0] != ' ', "%s is not left-justified", what);
}

WITH_NVME(strings)
{
    check_ascii(conf, "SN", nvme->ctrl + ID_CTRL_SN, 20);
    check_ascii(conf, "MN", nvme->ctrl + ID_CTRL_MN, 40);
    check_ascii(conf, "FR", nvme->ctrl + ID_CTRL_FR, 8);
}

WITH_NVME(entry_sizes)
{
    conf_equal(conf, "SQES: 64 bytes", nvme->ctrl[ID_CTRL_SQES] & 0xf, 6);
    conf_check(conf, nvme->ctrl[ID_CTRL_SQES] >> 4 >= 6, "SQES is %02xh",
               nvme->ctrl[ID_CTRL_SQES]);
    conf_equal(conf, "CQES: 16 bytes", nvme->ctrl[ID_CTRL_CQES] & 0xf, 4);
    conf_check(conf, nvme->ctrl[ID_CTRL_CQES] >> 4 >= 4, "CQES is %02xh",
               nvme->ctrl[ID_CTRL_CQES]);
}

WITH_NVME(maxcmd)
{
    uint32_t maxcmd = get_le16(nvme->ctrl + ID_CTRL_MAXCMD);
    uint64_t cap;

    conf_status(conf, "Property Get CAP",
                nvmf_get(nvme->admin, PROPERTY_CAP, 8, &cap), NVME_SC_SUCCESS);
    conf_check(conf, maxcmd != 0 && maxcmd <= (cap & 0xffff) + 1,
               "MAXCMD is %u, CAP.MQES %u", maxcmd,
               (unsigned int)(cap & 0xffff));
}

WITH_NVME(capsules)
{
    conf_check(conf, get_le32(nvme->ctrl + ID_CTRL_IOCCSZ) >= 4,
               "IOCCSZ is below 64 bytes");
    conf_check(conf, get_le32(nvme->ctrl + ID_CTRL_IORCSZ) >= 1,
               "IORCSZ is below 16 bytes");
    conf_check(conf, nvme->ctrl[ID_CTRL_MSDBD] >= 1, "MSDBD is 0");
    conf_equal(conf, "FCATT: dynamic controllers",
               nvme->ctrl[ID_CTRL_FCATT] & 1, 0);
}

WITH_NVME(sgls)
{
    uint32_t sgls = get_le32(nvme->ctrl + ID_CTRL_SGLS);

    conf_check(conf, (sgls & 3) == 1 || (sgls & 3) == 2,
               "SGLS bits 1:0 are %u: fabrics need SGLs", sgls & 3);
    conf_check(conf, sgls & SGLS_KEYED, "SGLS bit 2: RDMA needs keys");
    conf_check(conf,
               !(sgls & SGLS_IN_CAPSULE) ||
                   get_le32(nvme->ctrl + ID_CTRL_IOCCSZ) > 4,
               "data in capsules, and none fits");
}

WITH_NVME(kas)
{
    conf_check(conf, get_le16(nvme->ctrl + ID_CTRL_KAS) != 0,
               "KAS is 0: fabrics need Keep Alive");
}

WITH_NVME(host_id)
{
    conf_check(conf, get_le32(nvme->ctrl + ID_CTRL_CTRATT) & CTRATT_HOSTID_128,
               "CTRATT bit 0: fabrics have 128 bits of Host Identifier");
}

WITH_NVME(shared)
{
    bool is_shared = nvme->ns[ID_NS_NMIC] & NMIC_SHARED;

    conf_check(conf,
               !is_shared || nvme->ctrl[ID_CTRL_CMIC] &
                                 (CMIC_MULTI_PORT | CMIC_MULTI_CONTROLLER),
               "NMIC says shared, CMIC neither ports nor controllers");
    conf_check(conf,
               conf_target(conf)->num_ports < 2 ||
                   nvme->ctrl[ID_CTRL_CMIC] & CMIC_MULTI_PORT,
               "CMIC bit 0 is 0; there are two ports");
}

WITH_NVME(temperatures)
{
    uint32_t wctemp = get_le16(nvme->ctrl + ID_CTRL_WCTEMP);
    uint32_t cctemp = get_le16(nvme->ctrl + ID_CTRL_CCTEMP);

    conf_check(conf, wctemp != 0 && wctemp <= cctemp,
               "WCTEMP is %u K, CCTEMP %u K", wctemp, cctemp);
}

WITH_NVME(type)
{
    if (get_le32(nvme->ctrl + ID_CTRL_VER) < V1_4) {
        conf_not_applicable(conf, "VER is below 1.4");
    }
    conf_equal(conf, "CNTRLTYPE: I/O", nvme->ctrl[ID_CTRL_CNTRLTYPE],
               CNTRLTYPE_IO);
}

WITH_NVME(vwc)
{
    if (get_le32(nvme->ctrl + ID_CTRL_VER) < V1_4) {
        conf_not_applicable(conf, "VER is below 1.4");
    }
    conf_check(conf, (nvme->ctrl[ID_CTRL_VWC] >> 1 & 3) >= 2,
               "VWC bits 2:1 do not say what Flush of FFFFFFFFh does");
    conf_equal(conf, "VWC, reserved bits", nvme->ctrl[ID_CTRL_VWC] & 0xf8, 0);
}

WITH_NVME(power_states)
{
    uint32_t npss = nvme->ctrl[ID_CTRL_NPSS];

    conf_check(conf, npss <= 31, "NPSS is %u", npss);
    for (uint32_t i = npss + 1; i < 32; i++) {
        uint8_t none[32] = {0};

        conf_same(conf, "a power state behind NPSS",
                  nvme->ctrl + ID_CTRL_PSD0 + 32 * (size_t)i, none, 32);
    }
}

WITH_NVME(firmware)
{
    uint32_t slots = nvme->ctrl[ID_CTRL_FRMW] >> 1 & 7;

    conf_check(conf, slots >= 1, "FRMW says there is no slot");
}

/* The same bytes each time. */
WITH_NVME(twice)
{
    conf_status(conf, "Identify", nvme_identify(nvme, CNS_CONTROLLER, 0),
                NVME_SC_SUCCESS);
    conf_same(conf, "Identify Controller again", nvme->admin->mem, nvme->ctrl,
              NVME_IDENTIFY_LEN);
    conf_status(conf, "Identify",
                nvme_identify(nvme, CNS_NAMESPACE, nvme->nsid),
                NVME_SC_SUCCESS);
    conf_same(conf, "Identify Namespace again", nvme->admin->mem, nvme->ns,
              NVME_IDENTIFY_LEN);
}

static void compare(struct conf *conf, struct nvme *nvme, struct rc *rc)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY, .cdw10 = CNS_CONTROLLER};

    conf_status(conf, "Identify",
                nvme_run(nvme, rc, &sqe, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_check(
        conf,
        memcmp(rc->mem + ID_CTRL_CNTLID, nvme->ctrl + ID_CTRL_CNTLID, 2) != 0,
        "two controllers have one CNTLID");
    memcpy(rc->mem + ID_CTRL_CNTLID, nvme->ctrl + ID_CTRL_CNTLID, 2);
    conf_same(conf, "Identify of another controller", rc->mem, nvme->ctrl,
              NVME_IDENTIFY_LEN);
    sqe.cdw10 = CNS_NAMESPACE;
    sqe.nsid = nvme->nsid;
    conf_status(conf, "Identify",
                nvme_run(nvme, rc, &sqe, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_same(conf, "the namespace, seen by another", rc->mem, nvme->ns,
              NVME_IDENTIFY_LEN);
    rc_close(rc);
}

WITH_NVME(controllers)
{
    compare(conf, nvme, rc_open_controller(conf, &(struct rc_config){0}));
}

WITH_NVME(ports)
{
    compare(conf, nvme,
            rc_open_controller(conf, &(struct rc_config){.port = 1}));
}

/* ---- The namespace. */

WITH_NVME(sizes)
{
    uint64_t nsze = get_le64(nvme->ns + ID_NS_NSZE);
    uint64_t ncap = get_le64(nvme->ns + ID_NS_NCAP);
    uint64_t nuse = get_le64(nvme->ns + ID_NS_NUSE);

    conf_check(conf, nsze >= ncap && ncap >= nuse && ncap != 0,
               "NSZE %llu, NCAP %llu, NUSE %llu", (unsigned long long)nsze,
               (unsigned long long)ncap, (unsigned long long)nuse);
    conf_check(conf, nvme->ns[ID_NS_NSFEAT] & NSFEAT_THIN || ncap == nsze,
               "NCAP is not NSZE, and NSFEAT has no thin provisioning");
}

WITH_NVME(formats)
{
    conf_check(conf,
               (nvme->ns[ID_NS_FLBAS] & 0xf) <= nvme->ns[ID_NS_NLBAF] &&
                   nvme->ns[ID_NS_NLBAF] < 16,
               "FLBAS is %02xh, NLBAF %u", nvme->ns[ID_NS_FLBAS],
               nvme->ns[ID_NS_NLBAF]);
    for (unsigned int i = nvme->ns[ID_NS_NLBAF] + 1u; i < 16; i++) {
        conf_equal(conf, "an LBA format behind NLBAF",
                   get_le32(nvme->ns + ID_NS_LBAF0 + (size_t)4 * i), 0);
    }
}

/* No metadata: nothing that speaks of it. */
WITH_NVME(metadata)
{
    unsigned int flbas = nvme->ns[ID_NS_FLBAS] & 0xf;

    if (get_le16(nvme->ns + ID_NS_LBAF0 + (size_t)4 * flbas) != 0) {
        conf_not_applicable(conf, "the format has metadata");
    }
    conf_equal(conf, "DPS: no protection", nvme->ns[ID_NS_DPS] & 7, 0);
    conf_equal(conf, "FLBAS bit 4", nvme->ns[ID_NS_FLBAS] & 0x10, 0);
}

WITH_NVME(capacity)
{
    uint64_t nvmcap = get_le64(nvme->ns + ID_NS_NVMCAP);

    conf_check(conf,
               nvmcap == 0 || nvmcap >= get_le64(nvme->ns + ID_NS_NCAP) *
                                            nvme->block_bytes,
               "NVMCAP %llu is below NCAP", (unsigned long long)nvmcap);
}

/* OACS bit 3: without namespace management there is no common structure. */
WITH_NVME(namespace_all)
{
    if (get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT) {
        conf_not_applicable(conf, "OACS bit 3 is 1");
    }
    conf_status(conf, "Identify Namespace FFFFFFFFh",
                nvme_identify(nvme, CNS_NAMESPACE, NVME_NSID_ALL),
                NVME_SC_INVALID_NS);
}

WITH_NVME(namespace_zero)
{
    conf_status(conf, "Identify Namespace 0",
                nvme_identify(nvme, CNS_NAMESPACE, 0), NVME_SC_INVALID_NS);
}

WITH_NVME(namespace_above)
{
    conf_status(conf, "Identify Namespace NN + 1",
                nvme_identify(nvme, CNS_NAMESPACE, nvme->num_ns + 1),
                NVME_SC_INVALID_NS);
}

WITH_NVME(namespace_inactive)
{
    uint32_t nsid = nvme_inactive_nsid(nvme);

    if (nsid == 0) {
        conf_not_applicable(conf, "all of NN namespaces are active");
    }
    memset(nvme->admin->mem, 0xff, NVME_IDENTIFY_LEN);
    conf_status(conf, "Identify of an inactive namespace",
                nvme_identify(nvme, CNS_NAMESPACE, nsid), NVME_SC_SUCCESS);
    conf_same(conf, "all of it", nvme->admin->mem,
              conf_alloc(conf, NVME_IDENTIFY_LEN), NVME_IDENTIFY_LEN);
}

/* ---- Lists. */

WITH_NVME(list)
{
    const uint8_t *mem = nvme->admin->mem;
    uint32_t last = 0;
    bool has_ours = false, is_over = false;

    conf_status(conf, "Identify, active namespaces",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, 0), NVME_SC_SUCCESS);
    for (unsigned int i = 0; i < NVME_IDENTIFY_LEN; i += 4) {
        uint32_t nsid = get_le32(mem + i);

        is_over = is_over || nsid == 0;
        conf_check(conf, is_over ? nsid == 0 : nsid > last,
                   "entry %u is %u behind %u", i / 4, nsid, last);
        conf_check(conf, nsid <= nvme->num_ns, "%u is above NN", nsid);
        has_ours = has_ours || nsid == nvme->nsid;
        last = nsid;
    }
    conf_check(conf, has_ours, "namespace %u is not in the list", nvme->nsid);
}

WITH_NVME(list_after)
{
    conf_status(conf, "Identify, active namespaces above ours",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, nvme->nsid),
                NVME_SC_SUCCESS);
    for (unsigned int i = 0; i < NVME_IDENTIFY_LEN; i += 4) {
        uint32_t nsid = get_le32(nvme->admin->mem + i);

        conf_check(conf, nsid == 0 || nsid > nvme->nsid, "entry %u is %u",
                   i / 4, nsid);
    }
}

WITH_NVME(list_before)
{
    conf_status(conf, "Identify, active namespaces above the one before",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, nvme->nsid - 1),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the first", get_le32(nvme->admin->mem), nvme->nsid);
}

WITH_NVME(list_end)
{
    conf_status(conf, "Identify, active namespaces above NN",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, nvme->num_ns),
                NVME_SC_SUCCESS);
    conf_same(conf, "an empty list", nvme->admin->mem,
              conf_alloc(conf, NVME_IDENTIFY_LEN), NVME_IDENTIFY_LEN);
}

WITH_NVME(list_all)
{
    conf_status(conf, "active namespaces above FFFFFFFFh",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, NVME_NSID_ALL),
                NVME_SC_INVALID_NS);
}

WITH_NVME(list_nearly_all)
{
    conf_status(conf, "active namespaces above FFFFFFFEh",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, NVME_NSID_ALL - 1),
                NVME_SC_INVALID_NS);
}

/* ---- Descriptors. */

/* Each type once, of its length, and nothing behind them. */
WITH_NVME(descriptors)
{
    static const uint8_t lengths[] = {0, 8, 16, 16};
    const uint8_t *mem = nvme->admin->mem;
    unsigned int at = 0, seen = 0;

    conf_status(conf, "Identify, descriptors",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, nvme->nsid),
                NVME_SC_SUCCESS);
    while (at + NID_HEADER_LEN <= NVME_IDENTIFY_LEN && mem[at] != 0) {
        unsigned int nidt = mem[at], nidl = mem[at + 1];

        conf_check(conf, nidt >= ARRAY_LEN(lengths) || nidl == lengths[nidt],
                   "descriptor of type %u has %u bytes", nidt, nidl);
        conf_check(conf, !(seen & 1u << (nidt & 31)), "two of type %u", nidt);
        seen |= 1u << (nidt & 31);
        at += NID_HEADER_LEN + nidl;
    }
    conf_check(conf, seen != 0, "there is no identifier");
    while (at < NVME_IDENTIFY_LEN) {
        conf_equal(conf, "a byte behind the descriptors", mem[at++], 0);
    }
}

static const uint8_t *find(struct nvme *nvme, uint8_t nidt)
{
    const uint8_t *mem = nvme->admin->mem;

    conf_status(nvme->conf, "Identify, descriptors",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, nvme->nsid),
                NVME_SC_SUCCESS);
    for (size_t at = 0; at + 20 < NVME_IDENTIFY_LEN && mem[at] != 0;
         at += NID_HEADER_LEN + (size_t)mem[at + 1]) {
        if (mem[at] == nidt) {
            return mem + at + NID_HEADER_LEN;
        }
    }
    return NULL;
}

static void same_identifier(struct nvme *nvme, uint8_t nidt, size_t offset,
                            size_t len)
{
    const uint8_t *nid = find(nvme, nidt);
    const uint8_t *said = nvme->ns + offset;
    bool is_said = false;

    for (size_t i = 0; i < len; i++) {
        is_said = is_said || said[i] != 0;
    }
    conf_equal(nvme->conf, "a descriptor for what Identify Namespace has",
               nid != NULL, is_said);
    if (nid != NULL) {
        conf_same(nvme->conf, "the identifier", nid, said, len);
    }
}

WITH_NVME(nguid)
{
    (void)conf;
    same_identifier(nvme, NIDT_NGUID, ID_NS_NGUID, 16);
}

WITH_NVME(eui64)
{
    (void)conf;
    same_identifier(nvme, NIDT_EUI64, ID_NS_EUI64, 8);
}

/* RFC 4122: the variant's bits. */
WITH_NVME(uuid)
{
    const uint8_t *nid = find(nvme, NIDT_UUID);

    if (nid == NULL) {
        conf_not_applicable(conf, "the namespace has no UUID");
    }
    conf_equal(conf, "variant", nid[8] >> 6, 2);
    conf_check(conf, nid[6] >> 4 >= 1 && nid[6] >> 4 <= 8, "version %u",
               nid[6] >> 4);
}

WITH_NVME(descriptors_inactive)
{
    uint32_t nsid = nvme_inactive_nsid(nvme);

    if (nsid == 0) {
        conf_not_applicable(conf, "all of NN namespaces are active");
    }
    conf_check(conf,
               nvme_identify(nvme, CNS_NS_DESCRIPTORS, nsid) != NVME_SC_SUCCESS,
               "descriptors of an inactive namespace");
}

WITH_NVME(descriptors_zero)
{
    conf_status(conf, "descriptors of namespace 0",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, 0), NVME_SC_INVALID_NS);
}

WITH_NVME(descriptors_above)
{
    conf_status(conf, "descriptors of namespace NN + 1",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, nvme->num_ns + 1),
                NVME_SC_INVALID_NS);
}

/* ---- The command. */

static void cns(struct nvme *nvme, uint8_t number)
{
    conf_status(nvme->conf, "Identify with a CNS that is not there",
                nvme_identify(nvme, number, 0), NVME_SC_INVALID_FIELD);
}

WITH_NVME(cns_reserved)
{
    (void)conf;
    cns(nvme, 0x1f);
    cns(nvme, 0x3f);
    cns(nvme, 0xff);
}

WITH_NVME(cns_management)
{
    if (get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT) {
        conf_not_applicable(conf, "OACS bit 3 is 1");
    }
    for (uint8_t i = 0x10; i <= 0x13; i++) {
        cns(nvme, i);
    }
}

static void length(struct nvme *nvme, uint32_t len)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY, .cdw10 = CNS_CONTROLLER};
    bool is_longer = get_le32(nvme->ctrl + ID_CTRL_SGLS) & SGLS_LONGER &&
                     len > NVME_IDENTIFY_LEN;

    memset(nvme->admin->mem, 0, NVME_IDENTIFY_LEN);
    conf_status(nvme->conf, "Identify into another length",
                nvme_run(nvme, nvme->admin, &sqe, len, NULL),
                is_longer ? NVME_SC_SUCCESS : NVME_SC_SGL_INVALID_LENGTH);
    conf_check(nvme->conf, is_longer || nvme->admin->mem[0] != nvme->ctrl[0],
               "a refused Identify moved data");
    nvme_expect_works(nvme);
}

WITH_NVME(shorter)
{
    (void)conf;
    length(nvme, NVME_IDENTIFY_LEN / 2);
}

WITH_NVME(nothing)
{
    (void)conf;
    length(nvme, 0);
}

WITH_NVME(longer)
{
    (void)conf;
    length(nvme, 2 * NVME_IDENTIFY_LEN);
}

/* CNTID is for lists of controllers; dwords 12 and up are for nothing. */
WITH_NVME(unused_fields)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_IDENTIFY,
        .cdw2 = UINT32_MAX,
        .cdw3 = UINT32_MAX,
        .cdw10 = CNS_CONTROLLER | 0xabcdu << NVME_IDENTIFY_CNTID_SHIFT,
        .cdw12 = UINT32_MAX,
        .cdw13 = UINT32_MAX,
        .cdw15 = UINT32_MAX,
    };

    conf_status(conf, "Identify with fields that it does not use",
                nvme_run(nvme, nvme->admin, &sqe, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_same(conf, "Identify Controller", nvme->admin->mem, nvme->ctrl,
              NVME_IDENTIFY_LEN);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("identify." id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("cntlid", "5.15.2.2; NVMe-oF 1.1 3.3", "CNTLID is Connect's", cntlid),
    TEST("subnqn", "5.15.2.2; NVMe-oF 1.1 4.1", "SUBNQN is Connect's", subnqn),
    TEST("version", "5.15.2.2, 3.1.2", "VER is the property VS", version),
    TEST("strings", "5.15.2.2, 1.5", "SN, MN and FR are padded ASCII", strings),
    TEST("entry-sizes", "5.15.2.2; NVMe-oF 1.1 4.1",
         "SQES and CQES: 64 and 16 bytes", entry_sizes),
    TEST("maxcmd", "5.15.2.2; NVMe-oF 1.1 4.1",
         "MAXCMD is not 0, nor more than CAP.MQES", maxcmd),
    TEST("capsules", "5.15.2.2; NVMe-oF 1.1 4.1", "sizes of capsules",
         capsules),
    TEST("sgls", "5.15.2.2; NVMe-oF 1.1 7.3.3", "SGLs with keys", sgls),
    TEST("kas", "5.15.2.2; NVMe-oF 1.1 7.1", "Keep Alive is supported", kas),
    TEST("host-id", "5.15.2.2; NVMe-oF 1.1 4.1", "Host Identifiers of 128 bits",
         host_id),
    TEST("shared", "5.15.2.1, 5.15.2.2", "NMIC and CMIC agree", shared),
    TEST("temperatures", "5.15.2.2", "WCTEMP is not above CCTEMP",
         temperatures),
    TEST("type", "5.15.2.2", "CNTRLTYPE is I/O", type),
    TEST("vwc", "5.15.2.2", "what Flush of FFFFFFFFh does", vwc),
    TEST("power-states", "5.15.2.2", "none behind NPSS", power_states),
    TEST("firmware", "5.15.2.2", "at least one firmware slot", firmware),
    TEST("twice", "5.15", "the same twice", twice),
    TEST("controllers", "5.15", "another controller says the same",
         controllers),
    TEST("ports", "5.15", "a controller on the other port says the same", ports,
         .needs = CONF_NEEDS_TWO_PORTS),
    TEST("sizes", "5.15.2.1", "NSZE, NCAP, NUSE", sizes),
    TEST("formats", "5.15.2.1", "the format is one of those listed", formats),
    TEST("metadata", "5.15.2.1, 8.3", "no metadata, no protection", metadata),
    TEST("capacity", "5.15.2.1", "NVMCAP holds NCAP", capacity),
    TEST("namespace-all", "5.15.2.1",
         "FFFFFFFFh without namespace management: Invalid Namespace",
         namespace_all),
    TEST("namespace-zero", "5.15.2.1, 6.1", "NSID 0: Invalid Namespace",
         namespace_zero),
    TEST("namespace-above", "5.15.2.1, 6.1", "NSID NN + 1: Invalid Namespace",
         namespace_above),
    TEST("namespace-inactive", "5.15.2.1", "an inactive NSID: zeroes",
         namespace_inactive),
    TEST("list", "5.15.2.3", "ascending, ours among them, then zeroes", list),
    TEST("list-after", "5.15.2.3", "only those above the NSID", list_after),
    TEST("list-before", "5.15.2.3", "the NSID itself is not in it",
         list_before),
    TEST("list-end", "5.15.2.3", "none above NN", list_end),
    TEST("list-all", "5.15.2.3", "NSID FFFFFFFFh: Invalid Namespace", list_all),
    TEST("list-nearly-all", "5.15.2.3", "NSID FFFFFFFEh: Invalid Namespace",
         list_nearly_all),
    TEST("descriptors", "5.15.2.4", "well-formed, each type once", descriptors),
    TEST("nguid", "5.15.2.4, 7.10", "NGUID is the descriptor's", nguid),
    TEST("eui64", "5.15.2.4, 7.10", "EUI64 is the descriptor's", eui64),
    TEST("uuid", "5.15.2.4, 7.10", "the UUID is one", uuid),
    TEST("descriptors-inactive", "5.15.2.4", "an inactive NSID is refused",
         descriptors_inactive),
    TEST("descriptors-zero", "5.15.2.4", "NSID 0: Invalid Namespace",
         descriptors_zero),
    TEST("descriptors-above", "5.15.2.4", "NSID NN + 1: Invalid Namespace",
         descriptors_above),
    TEST("cns-reserved", "5.15", "a reserved CNS: Invalid Field", cns_reserved),
    TEST("cns-management", "5.15",
         "CNS 10h to 13h without namespace management", cns_management),
    TEST("shorter", "5.15, 4.4", "into 2048 bytes: Length Invalid", shorter),
    TEST("nothing", "5.15, 4.4", "into no bytes: Length Invalid", nothing),
    TEST("longer", "5.15, 4.4", "into 8192 bytes: as SGLS bit 18 says", longer),
    TEST("unused-fields", "5.15, 4.2", "fields that it does not use",
         unused_fields),
};
CONF_TESTS(conf_tests_nvme_identify, "nvme", tests);
