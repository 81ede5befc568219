/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Properties: which exist, which may be written, and what CC does.
 *
 * Spec: NVMe over Fabrics 1.1 3.4, 3.5; NVM Express 1.4 3.1.
 */
#include "nvmf_lib.h"

static struct rc *open_admin(struct conf *conf)
{
    return rc_open_nvme(conf, &(struct rc_config){0});
}

static uint64_t get_property(struct rc *rc, uint32_t offset, uint8_t size_bytes)
{
    uint64_t value;

    conf_status(rc->conf, "Property Get",
                nvmf_get(rc, offset, size_bytes, &value), NVME_SC_SUCCESS);
    return value;
}

static void property_cap(struct conf *conf)
{
    struct rc *rc = open_admin(conf);
    uint64_t cap = get_property(rc, PROPERTY_CAP, 8);

    conf_check(conf, (cap & 0xffff) >= 1, "CAP.MQES is 0");
    conf_check(conf, cap >> 16 & 1, "CAP.CQR is 0, but fabrics need 1");
    conf_check(conf, cap >> 37 & 1, "CAP.CSS lacks the NVM command set");
    conf_check(conf, (cap >> 24 & 0xff) != 0, "CAP.TO is 0");
    conf_equal(conf, "CAP.DSTRD", cap >> 32 & 0xf, 0);
    conf_equal(conf, "CAP.MPSMIN (0: 4 KiB)", cap >> 48 & 0xf, 0);
    conf_check(conf, (cap >> 52 & 0xf) >= (cap >> 48 & 0xf),
               "CAP.MPSMAX is below MPSMIN");
    rc_close(rc);
}

static void property_version(struct conf *conf)
{
    struct rc *rc = open_admin(conf);
    uint64_t vs = get_property(rc, PROPERTY_VS, 4);

    conf_check(conf, vs >= 0x10201,
               "VS is %08x, older than 1.2.1, the first version with fabrics",
               (unsigned int)vs);
    rc_close(rc);
}

static void cc_at_start(struct conf *conf)
{
    struct rc *rc = open_admin(conf);

    conf_equal(conf, "CC.EN", get_property(rc, PROPERTY_CC, 4) & CC_EN, 0);
    conf_equal(conf, "CSTS.RDY", get_property(rc, PROPERTY_CSTS, 4) & CSTS_RDY,
               0);
    rc_close(rc);
}

static void cc_kept(struct conf *conf)
{
    struct rc *rc = open_admin(conf);

    conf_status(conf, "Property Set CC",
                nvmf_set(rc, PROPERTY_CC, 4, NVMF_CC_ENABLE), NVME_SC_SUCCESS);
    conf_equal(conf, "CC", get_property(rc, PROPERTY_CC, 4), NVMF_CC_ENABLE);
    rc_close(rc);
}

static void enable_disable(struct conf *conf)
{
    struct rc *rc = open_admin(conf);

    for (unsigned int i = 0; i < 3; i++) {
        conf_status(conf, "CC.EN 1",
                    nvmf_set(rc, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                    NVME_SC_SUCCESS);
        nvmf_wait_csts(rc, CSTS_RDY, CSTS_RDY);
        conf_status(conf, "CC.EN 0",
                    nvmf_set(rc, PROPERTY_CC, 4, NVMF_CC_ENABLE - CC_EN),
                    NVME_SC_SUCCESS);
        nvmf_wait_csts(rc, CSTS_RDY, 0);
    }
    rc_close(rc);
}

/* A controller reset ends the I/O queues; the admin queue stays connected. */
static void reset_ends_io(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});

    conf_status(conf, "CC.EN 0",
                nvmf_set(pair.admin, PROPERTY_CC, 4, NVMF_CC_ENABLE - CC_EN),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(pair.admin, CSTS_RDY, 0);
    conf_pass(conf, NVMF_QUIET_US);
    nvmf_expect_gone(pair.io);
    conf_check(conf, get_property(pair.admin, PROPERTY_VS, 4) >> 16 >= 1,
               "VS is below 1.0");
    rc_close(pair.admin);
}

static void shutdown_of_kind(struct conf *conf, uint32_t shn)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, 8, 1);
    struct sgl sgl = rc_keyed(pair.io, 0, 512);

    conf_status(conf, "Write", rc_command(pair.io, &write, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    conf_status(conf, "Property Set CC.SHN",
                nvmf_set(pair.admin, PROPERTY_CC, 4,
                         NVMF_CC_ENABLE | shn << CC_SHN_SHIFT),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(pair.admin, 3u << CSTS_SHST_SHIFT, 2u << CSTS_SHST_SHIFT);
    rc_close(pair.admin);
    conf_expect_alive(conf);
}

static void shutdown_normal(struct conf *conf)
{
    shutdown_of_kind(conf, 1);
}

static void shutdown_abrupt(struct conf *conf)
{
    shutdown_of_kind(conf, 2);
}

static void expect_property_refused(struct conf *conf, bool is_set,
                                    uint32_t offset, uint8_t size_bytes)
{
    struct rc *rc = open_admin(conf);
    uint64_t value;
    uint16_t status = is_set ? nvmf_set(rc, offset, size_bytes, 0)
                             : nvmf_get(rc, offset, size_bytes, &value);

    conf_check(conf, (status & NVME_SC_MASK) != NVME_SC_SUCCESS,
               "an access of %u bytes at %xh was accepted", size_bytes, offset);
    conf_check(conf, get_property(rc, PROPERTY_VS, 4) >> 16 >= 1,
               "VS, read on the same queue, is below 1.0");
    rc_close(rc);
}

/* A write is refused, and the property keeps its value. */
static void read_only(struct conf *conf, uint32_t offset, uint8_t size_bytes)
{
    struct rc *rc = open_admin(conf);
    uint64_t before = get_property(rc, offset, size_bytes);

    conf_check(conf,
               (nvmf_set(rc, offset, size_bytes, ~before) & NVME_SC_MASK) !=
                   NVME_SC_SUCCESS,
               "a property of %u bytes at %xh was written", size_bytes, offset);
    conf_equal(conf, "the property after the refused write",
               get_property(rc, offset, size_bytes), before);
    rc_close(rc);
}

static void set_cap(struct conf *conf)
{
    read_only(conf, PROPERTY_CAP, 8);
}

static void set_vs(struct conf *conf)
{
    read_only(conf, PROPERTY_VS, 4);
}

/* One bit of CSTS can be written, to clear it: NSSRO. */
static void set_csts(struct conf *conf)
{
    struct rc *rc = open_admin(conf);
    uint64_t before = get_property(rc, PROPERTY_CSTS, 4);

    (void)nvmf_set(rc, PROPERTY_CSTS, 4, ~before & ~(uint64_t)CSTS_NSSRO);
    conf_equal(conf, "CSTS after a write", get_property(rc, PROPERTY_CSTS, 4),
               before);
    rc_close(rc);
}

static void get_cap_half(struct conf *conf)
{
    expect_property_refused(conf, false, PROPERTY_CAP, 4);
}

static void get_vs_eight(struct conf *conf)
{
    expect_property_refused(conf, false, PROPERTY_VS, 8);
}

static void get_inside(struct conf *conf)
{
    expect_property_refused(conf, false, PROPERTY_CAP + 2, 4);
}

static void set_nothing_there(struct conf *conf)
{
    /* AQA, which fabrics do not have. */
    expect_property_refused(conf, true, 0x24, 4);
}

/* Fabrics 1.1 3.4: Property Get of a reserved property returns zero. */
static void get_reserved(struct conf *conf)
{
    struct rc *rc = open_admin(conf);
    uint64_t value = 1;
    uint16_t status = nvmf_get(rc, 0x24, 4, &value);

    conf_check(conf, (status & NVME_SC_MASK) != NVME_SC_SUCCESS || value == 0,
               "a reserved property reads %llx", (unsigned long long)value);
    rc_close(rc);
}

static void attrib_reserved(struct conf *conf)
{
    struct rc *rc = open_admin(conf);
    struct property_command command = {.size_bytes = 4, .offset = PROPERTY_VS};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_GET};

    property_command_build(&sqe, &command);
    sqe.cdw10 |= 7; /* A reserved size in ATTRIB. */
    conf_status(conf, "Property Get with a reserved size",
                rc_command(rc, &sqe, NULL, NULL, 0, NULL),
                NVME_SC_INVALID_FIELD);
    rc_close(rc);
}

static void on_io_queue(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});
    uint64_t value;

    conf_check(conf,
               (nvmf_get(pair.io, PROPERTY_VS, 4, &value) & NVME_SC_MASK) !=
                   NVME_SC_SUCCESS,
               "Property Get was accepted on an I/O queue");
    nvmf_close_pair(&pair);
}

static void fctype_unknown(struct conf *conf)
{
    struct rc *rc = open_admin(conf);
    struct nvme_sqe sqe = {.opcode = NVME_FABRICS, .fctype = 0x3f};

    conf_status(conf, "an unknown Fabrics command",
                rc_command(rc, &sqe, NULL, NULL, 0, NULL),
                NVME_SC_INVALID_OPCODE);
    rc_close(rc);
}

/*
 * A reset ends all associations, but it is answered first, so that the one on
 * which NSSR was written works for a while: another one shows the reset.
 */
static void property_nssr(struct conf *conf)
{
    struct rc *other = open_admin(conf);
    struct rc *rc = open_admin(conf);
    uint64_t cap = get_property(rc, PROPERTY_CAP, 8);

    if (!(cap >> 36 & 1)) {
        conf_not_applicable(conf, "CAP.NSSRS is 0");
    }
    conf_equal(conf, "the value of NSSR", get_property(rc, PROPERTY_NSSR, 4),
               0);
    conf_status(conf, "a value other than \"NVMe\"",
                nvmf_set(rc, PROPERTY_NSSR, 4, 0x12345678), NVME_SC_SUCCESS);
    nvmf_expect_works(other);
    nvmf_expect_works(rc);
    rc_close(rc);
    rc_close(other);
}

/* Nobody has to prove anything to a discovery controller. */
static void nssr_on_discovery(struct conf *conf)
{
    struct rc *other = open_admin(conf);
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){.host = 1});
    uint64_t cap = get_property(rc, PROPERTY_CAP, 8);

    conf_equal(conf, "CAP.NSSRS of a discovery controller", cap >> 36 & 1, 0);
    conf_check(conf,
               (nvmf_set(rc, PROPERTY_NSSR, 4, NSSR_RESET) & NVME_SC_MASK) !=
                   NVME_SC_SUCCESS,
               "a subsystem reset by a discovery controller was accepted");
    conf_pass(conf, NVMF_QUIET_US);
    nvmf_expect_works(other);
    nvmf_expect_works(rc);
    rc_close(rc);
    rc_close(other);
}

/* @return an admin queue that is connected after a subsystem reset */
static struct rc *reset_subsystem(struct conf *conf)
{
    struct rc *rc = open_admin(conf);

    if (!(get_property(rc, PROPERTY_CAP, 8) >> 36 & 1)) {
        conf_not_applicable(conf, "CAP.NSSRS is 0");
    }
    conf_status(conf, "NSSR", nvmf_set(rc, PROPERTY_NSSR, 4, NSSR_RESET),
                NVME_SC_SUCCESS);
    rc_close(rc);
    return open_admin(conf);
}

static void expect_nssro(struct rc *rc, const char *what, bool is_set)
{
    conf_equal(rc->conf, what,
               (get_property(rc, PROPERTY_CSTS, 4) & CSTS_NSSRO) != 0, is_set);
}

static void property_nssro(struct conf *conf)
{
    struct rc *rc = reset_subsystem(conf);
    struct rc *other = open_admin(conf);

    expect_nssro(rc, "CSTS.NSSRO after a subsystem reset", true);
    conf_status(conf, "a write of 1 to CSTS.NSSRO",
                nvmf_set(rc, PROPERTY_CSTS, 4, CSTS_NSSRO), NVME_SC_SUCCESS);
    expect_nssro(rc, "CSTS.NSSRO after it was cleared", false);
    expect_nssro(other, "CSTS.NSSRO of another controller", true);
    rc_close(rc);
    rc_close(other);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST(id, "NVMe-oF 1.1 " clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("property.cap", "3.5, NVMe 1.4 3.1.1",
         "CAP has the values that fabrics need", property_cap),
    TEST("property.vs", "3.5, NVMe 1.4 3.1.2", "VS is 1.2.1 or later",
         property_version),
    TEST("property.start", "4.4", "a new controller is not enabled",
         cc_at_start),
    TEST("property.cc", "3.6, NVMe 1.4 3.1.5", "CC reads as written", cc_kept),
    TEST("property.enable", "4.4", "CSTS.RDY follows CC.EN", enable_disable),
    TEST("property.reset", "4.4",
         "CC.EN 0 ends the I/O queues, but not the admin queue", reset_ends_io),
    TEST("property.shutdown", "4.6, NVMe 1.4 7.6.2",
         "CC.SHN 1 makes CSTS.SHST 2", shutdown_normal),
    TEST("property.shutdown-abrupt", "4.6, NVMe 1.4 7.6.2",
         "CC.SHN 2 makes CSTS.SHST 2", shutdown_abrupt),
    TEST("property.set-cap", "3.6", "CAP cannot be written", set_cap),
    TEST("property.set-vs", "3.6", "VS cannot be written", set_vs),
    TEST("property.set-csts", "3.6", "CSTS cannot be written, but for NSSRO",
         set_csts),
    TEST("property.cap-half", "3.5",
         "4 bytes of an 8-byte property are refused", get_cap_half),
    TEST("property.vs-eight", "3.5", "8 bytes of a 4-byte property are refused",
         get_vs_eight),
    TEST("property.inside", "3.5", "an offset inside a property is refused",
         get_inside),
    TEST("property.set-reserved", "3.6",
         "a write to a property that does not exist is refused",
         set_nothing_there),
    TEST("property.get-reserved", "3.5", "reserved properties read zero",
         get_reserved),
    TEST("property.attrib", "3.5",
         "a reserved size is refused with Invalid Field", attrib_reserved),
    TEST("property.io-queue", "3.5", "properties are refused on I/O queues",
         on_io_queue),
    TEST("property.fctype", "3",
         "an unknown FCTYPE is refused with Invalid Opcode", fctype_unknown),
    TEST("property.nssr", "3.6, NVMe 1.4 3.1.7",
         "NSSR with any value but \"NVMe\" resets nothing", property_nssr),
    TEST("property.nssr-discovery", "3.6, NVMe 1.4 3.1.7",
         "a discovery controller resets no subsystem", nssr_on_discovery),
    TEST("property.nssro", "3.6, NVMe 1.4 3.1.6",
         "CSTS.NSSRO is set after a subsystem reset until it is cleared",
         property_nssro),
};
CONF_TESTS(conf_tests_nvmf_property, "nvmf", tests);
