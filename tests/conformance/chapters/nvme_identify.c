/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify Controller: its contents agree with the properties and with Connect;
 * and the Identify command itself.
 *
 * Spec: NVM Express 1.4 5.15; NVMe over Fabrics 1.1 4.1.
 */
#include <string.h>

#include "nvme_lib.h"

enum { V1_4 = 0x00010400, POISON = 0xa5 };

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
                   "%s: byte %zu is %02xh, not printable ASCII", what, i,
                   text[i]);
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
    conf_equal(conf, "smallest SQ entry in SQES (6: 64 bytes)",
               nvme->ctrl[ID_CTRL_SQES] & 0xf, 6);
    conf_check(conf, nvme->ctrl[ID_CTRL_SQES] >> 4 >= 6,
               "SQES is %02xh: the largest is less than the smallest",
               nvme->ctrl[ID_CTRL_SQES]);
    conf_equal(conf, "smallest CQ entry in CQES (4: 16 bytes)",
               nvme->ctrl[ID_CTRL_CQES] & 0xf, 4);
    conf_check(conf, nvme->ctrl[ID_CTRL_CQES] >> 4 >= 4,
               "CQES is %02xh: the largest is less than the smallest",
               nvme->ctrl[ID_CTRL_CQES]);
}

WITH_NVME(maxcmd)
{
    uint32_t maxcmd = get_le16(nvme->ctrl + ID_CTRL_MAXCMD);
    uint64_t cap;

    conf_status(conf, "Property Get CAP",
                nvmf_get(nvme->admin, PROPERTY_CAP, 8, &cap), NVME_SC_SUCCESS);
    conf_check(conf, maxcmd != 0 && maxcmd <= (cap & 0xffff) + 1,
               "MAXCMD is %u, and CAP.MQES is %u", maxcmd,
               (unsigned int)(cap & 0xffff));
}

WITH_NVME(capsules)
{
    conf_check(conf, get_le32(nvme->ctrl + ID_CTRL_IOCCSZ) >= 4,
               "IOCCSZ is below 64 bytes");
    conf_check(conf, get_le32(nvme->ctrl + ID_CTRL_IORCSZ) >= 1,
               "IORCSZ is below 16 bytes");
    conf_check(conf, nvme->ctrl[ID_CTRL_MSDBD] >= 1, "MSDBD is 0");
    conf_equal(conf, "FCATT (0: dynamic controllers)",
               nvme->ctrl[ID_CTRL_FCATT] & 1, 0);
}

WITH_NVME(sgls)
{
    uint32_t sgls = get_le32(nvme->ctrl + ID_CTRL_SGLS);

    conf_check(conf, (sgls & 3) == 1 || (sgls & 3) == 2,
               "SGLS bits 1:0 are %u, but fabrics need SGLs", sgls & 3);
    if (!nvme->admin->has_no_keys) {
        conf_check(conf, sgls & SGLS_KEYED,
                   "SGLS bit 2 is 0, but RDMA needs keys");
    } else {
        conf_check(conf, (sgls & SGLS_KEYED) == 0,
                   "SGLS bit 2 is 1, but TCP has no keys");
    }
    conf_check(conf,
               !(sgls & SGLS_IN_CAPSULE) ||
                   get_le32(nvme->ctrl + ID_CTRL_IOCCSZ) > 4,
               "data in capsules is supported, but no data fits");
}

WITH_NVME(kas)
{
    conf_check(conf, get_le16(nvme->ctrl + ID_CTRL_KAS) != 0,
               "KAS is 0, but fabrics need Keep Alive");
}

WITH_NVME(host_id)
{
    conf_check(
        conf, get_le32(nvme->ctrl + ID_CTRL_CTRATT) & CTRATT_HOSTID_128,
        "CTRATT bit 0 is 0, but fabrics need Host Identifiers of 128 bits");
}

WITH_NVME(shared)
{
    bool is_shared = nvme->ns[ID_NS_NMIC] & NMIC_SHARED;

    conf_check(conf,
               !is_shared || nvme->ctrl[ID_CTRL_CMIC] &
                                 (CMIC_MULTI_PORT | CMIC_MULTI_CONTROLLER),
               "NMIC has the namespace shared, but CMIC has neither several "
               "ports nor several controllers");
    conf_check(conf,
               conf_target(conf)->num_ports < 2 ||
                   nvme->ctrl[ID_CTRL_CMIC] & CMIC_MULTI_PORT,
               "CMIC bit 0 is 0, but there are two ports");
}

WITH_NVME(temperatures)
{
    uint32_t wctemp = get_le16(nvme->ctrl + ID_CTRL_WCTEMP);
    uint32_t cctemp = get_le16(nvme->ctrl + ID_CTRL_CCTEMP);

    conf_check(conf, wctemp != 0 && wctemp <= cctemp,
               "WCTEMP is %u K, above CCTEMP, which is %u K", wctemp, cctemp);
}

WITH_NVME(type)
{
    if (get_le32(nvme->ctrl + ID_CTRL_VER) < V1_4) {
        conf_not_applicable(conf, "VER is below 1.4");
    }
    conf_equal(conf, "CNTRLTYPE (1: I/O controller)",
               nvme->ctrl[ID_CTRL_CNTRLTYPE], CNTRLTYPE_IO);
}

WITH_NVME(vwc)
{
    if (get_le32(nvme->ctrl + ID_CTRL_VER) < V1_4) {
        conf_not_applicable(conf, "VER is below 1.4");
    }
    conf_check(conf, (nvme->ctrl[ID_CTRL_VWC] >> 1 & 3) >= 2,
               "VWC bits 2:1 do not tell whether Flush accepts NSID FFFFFFFFh");
    conf_equal(conf, "reserved bits of VWC", nvme->ctrl[ID_CTRL_VWC] & 0xf8, 0);
}

WITH_NVME(power_states)
{
    uint32_t npss = nvme->ctrl[ID_CTRL_NPSS];

    conf_check(conf, npss <= 31, "NPSS is %u", npss);
    for (uint32_t i = npss + 1; i < 32; i++) {
        uint8_t none[32] = {0};

        conf_same(conf, "a power state above NPSS",
                  nvme->ctrl + ID_CTRL_PSD0 + 32 * (size_t)i, none, 32);
    }
}

WITH_NVME(firmware)
{
    uint32_t slots = nvme->ctrl[ID_CTRL_FRMW] >> 1 & 7;

    conf_check(conf, slots >= 1, "FRMW has no firmware slot");
}

/* Identify returns the same bytes each time. */
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

static void compare_controller(struct conf *conf, struct nvme *nvme,
                               struct rc *rc)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY, .cdw10 = CNS_CONTROLLER};

    conf_status(conf, "Identify",
                nvme_run(nvme, rc, &sqe, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_check(
        conf,
        memcmp(rc->mem + ID_CTRL_CNTLID, nvme->ctrl + ID_CTRL_CNTLID, 2) != 0,
        "two controllers have the same CNTLID");
    memcpy(rc->mem + ID_CTRL_CNTLID, nvme->ctrl + ID_CTRL_CNTLID, 2);
    conf_same(conf, "Identify Controller by another controller", rc->mem,
              nvme->ctrl, NVME_IDENTIFY_LEN);
    sqe.cdw10 = CNS_NAMESPACE;
    sqe.nsid = nvme->nsid;
    conf_status(conf, "Identify",
                nvme_run(nvme, rc, &sqe, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_same(conf, "Identify Namespace by another controller", rc->mem,
              nvme->ns, NVME_IDENTIFY_LEN);
    rc_close(rc);
}

WITH_NVME(controllers)
{
    compare_controller(conf, nvme,
                       rc_open_controller(conf, &(struct rc_config){0}));
}

WITH_NVME(ports)
{
    compare_controller(
        conf, nvme, rc_open_controller(conf, &(struct rc_config){.port = 1}));
}

/* ---- The command. */

static void expect_cns_refused(struct nvme *nvme, uint8_t number)
{
    conf_status(nvme->conf, "Identify with an undefined CNS",
                nvme_identify(nvme, number, 0), NVME_SC_INVALID_FIELD);
}

WITH_NVME(cns_reserved)
{
    (void)conf;
    expect_cns_refused(nvme, 0x1f);
    expect_cns_refused(nvme, 0x3f);
    expect_cns_refused(nvme, 0xff);
}

WITH_NVME(cns_management)
{
    if (get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT) {
        conf_not_applicable(conf, "OACS bit 3 is 1");
    }
    for (uint8_t i = 0x10; i <= 0x13; i++) {
        expect_cns_refused(nvme, i);
    }
}

static void identify_into_length(struct nvme *nvme, uint32_t len)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY, .cdw10 = CNS_CONTROLLER};
    bool is_longer = get_le32(nvme->ctrl + ID_CTRL_SGLS) & SGLS_LONGER &&
                     len > NVME_IDENTIFY_LEN;

    memset(nvme->admin->mem, POISON, NVME_IDENTIFY_LEN);
    conf_status(nvme->conf, "Identify with another data length",
                nvme_run(nvme, nvme->admin, &sqe, len, NULL),
                is_longer ? NVME_SC_SUCCESS : NVME_SC_SGL_INVALID_LENGTH);
    for (uint32_t i = 0; !is_longer && i < NVME_IDENTIFY_LEN; i++) {
        conf_check(nvme->conf, nvme->admin->mem[i] == POISON,
                   "a refused Identify transferred data");
    }
    nvme_expect_works(nvme);
}

WITH_NVME(shorter)
{
    (void)conf;
    identify_into_length(nvme, NVME_IDENTIFY_LEN / 2);
}

WITH_NVME(nothing)
{
    (void)conf;
    identify_into_length(nvme, 0);
}

WITH_NVME(longer)
{
    (void)conf;
    identify_into_length(nvme, 2 * NVME_IDENTIFY_LEN);
}

/* CNTID matters only for lists of controllers, dwords 12 and up never. */
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

    conf_status(conf, "Identify with unused fields set",
                nvme_run(nvme, nvme->admin, &sqe, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_same(conf, "Identify Controller", nvme->admin->mem, nvme->ctrl,
              NVME_IDENTIFY_LEN);
}

/* An NGUID begins with an extension of 8 bytes; the OUI follows, which Identify
 * Controller has in the reverse order. */
static void oui_of_nguid(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    const uint8_t *nguid = nvme->ns + ID_NS_NGUID;
    const uint8_t *ieee = nvme->ctrl + ID_CTRL_IEEE;

    if (get_le64(nguid) == 0 && get_le64(nguid + 8) == 0) {
        conf_not_applicable(conf, "the namespace has no NGUID");
    }
    for (unsigned int i = 0; i < 3; i++) {
        conf_equal(conf, "a byte of the OUI", ieee[2 - i], nguid[8 + i]);
    }
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("identify." id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("cntlid", "5.15.2.2; NVMe-oF 1.1 3.3",
         "CNTLID is the one that Connect returned", cntlid),
    TEST("subnqn", "5.15.2.2; NVMe-oF 1.1 4.1",
         "SUBNQN is the one that Connect named", subnqn),
    TEST("oui", "5.15.2.1, 5.15.2.2",
         "the OUI in NGUID is that of Identify Controller", oui_of_nguid),
    TEST("version", "5.15.2.2, 3.1.2", "VER equals the property VS", version),
    TEST("strings", "5.15.2.2, 1.5", "SN, MN and FR are padded ASCII", strings),
    TEST("entry-sizes", "5.15.2.2; NVMe-oF 1.1 4.1",
         "SQES and CQES allow entries of 64 and 16 bytes", entry_sizes),
    TEST("maxcmd", "5.15.2.2; NVMe-oF 1.1 4.1",
         "MAXCMD is between 1 and CAP.MQES + 1", maxcmd),
    TEST("capsules", "5.15.2.2; NVMe-oF 1.1 4.1",
         "capsules are large enough for commands and responses", capsules),
    TEST("sgls", "5.15.2.2; NVMe-oF 1.1 7.3.3",
         "SGLs are supported, with keys over RDMA alone", sgls),
    TEST("kas", "5.15.2.2; NVMe-oF 1.1 7.1", "Keep Alive is supported", kas),
    TEST("host-id", "5.15.2.2; NVMe-oF 1.1 4.1",
         "Host Identifiers of 128 bits are supported", host_id),
    TEST("shared", "5.15.2.1, 5.15.2.2", "NMIC and CMIC agree", shared),
    TEST("temperatures", "5.15.2.2", "WCTEMP is not above CCTEMP",
         temperatures),
    TEST("type", "5.15.2.2", "CNTRLTYPE is I/O", type),
    TEST("vwc", "5.15.2.2", "VWC tells whether Flush accepts NSID FFFFFFFFh",
         vwc),
    TEST("power-states", "5.15.2.2",
         "the power state descriptors above NPSS are zero", power_states),
    TEST("firmware", "5.15.2.2", "there is at least one firmware slot",
         firmware),
    TEST("twice", "5.15", "Identify returns the same data twice", twice),
    TEST("controllers", "5.15", "another controller returns the same data",
         controllers),
    TEST("ports", "5.15",
         "a controller on the other port returns the same data", ports,
         .needs = CONF_NEEDS_TWO_PORTS),
    TEST("cns-reserved", "5.15", "a reserved CNS is refused with Invalid Field",
         cns_reserved),
    TEST("cns-management", "5.15",
         "CNS 10h to 13h are refused without namespace management",
         cns_management),
    TEST("shorter", "5.15, 4.4",
         "Identify into 2048 bytes is refused with Length Invalid", shorter),
    TEST("nothing", "5.15, 4.4",
         "Identify into no bytes is refused with Length Invalid", nothing),
    TEST(
        "longer", "5.15, 4.4",
        "Identify into 8192 bytes is accepted or refused, as SGLS bit 18 tells",
        longer),
    TEST("unused-fields", "5.15, 4.2", "unused fields of Identify are ignored",
         unused_fields),
};
CONF_TESTS(conf_tests_nvme_identify, "nvme", tests);
