/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases in which fabrics targets easily go wrong: the last byte of an
 * identifier, a controller that is gone, a queue on another port, a byte that
 * was not sent, traffic that keeps an association alive, a discovery log that
 * changes.
 *
 * Spec: NVMe over Fabrics 1.1 3.3, 3.5, 4.5, 5.3; NVM Express 1.4 5.21.1.15,
 * 7.12.
 */
#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/identify.h"
#include "nvmf_lib.h"

enum {
    KATO_MS = 1000,
    LBA = 64,
    BLOCK = 512,
    SETTLE_US = 100000,
    /* Last byte of the address that is added and removed. */
    EXTRA_ADDRESS = 222,
};

/* ---- Connect. */

/* The queue must be refused, by the CM or in Connect. */
static void expect_refused(struct rc *admin, const struct rc_config *config,
                           const char *what)
{
    struct conf *conf = admin->conf;
    struct rc *io = rc_new(conf, config);
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct nvmf_attempt *attempt;
    struct nvme_cqe cqe;
    struct cm_req req;

    rc_make_req(io, &req, private_data);
    rc_send_req(io, &req);
    if (rc_take_cm_within(io, CM_REJ, NVMF_QUIET_US) != NULL) {
        return;
    }
    rc_take_rep(io);
    rc_send_rtu(io);
    rc_close(io);
    attempt = nvmf_attempt_new(conf, config);
    conf_check(conf,
               (nvmf_attempt_run(attempt, &cqe) & NVME_SC_MASK) !=
                   NVME_SC_SUCCESS,
               "%s was accepted", what);
    rc_close(attempt->rc);
}

static void hostid_last_byte(struct conf *conf)
{
    struct rc *admin = rc_open_controller(conf, &(struct rc_config){0});
    struct nvmf_attempt *attempt = nvmf_attempt_io(admin, 1);

    attempt->data.hostid[NVME_HOSTID_LEN - 1] ^= 1;
    nvmf_expect_invalid(attempt, CONNECT_IATTR_DATA | CONNECT_DATA_HOSTID);
    nvmf_expect_works(admin);
    rc_close(admin);
}

/* The CNTLID of an association that has ended belongs to nobody, even if
 * another one has taken its place. */
static void cntlid_gone(struct conf *conf)
{
    struct rc *first = rc_open_controller(conf, &(struct rc_config){0});
    struct rc_config config = first->config;
    struct rc *second;

    rc_close(first);
    conf_pass(conf, SETTLE_US);
    second = rc_open_controller(conf, &(struct rc_config){0});
    if (second->config.cntlid == config.cntlid) {
        conf_not_applicable(conf, "CNTLID %04xh was used again at once",
                            config.cntlid);
    }
    config.qid = 1;
    expect_refused(second, &config, "a queue of a controller that is gone");
    nvmf_expect_works(second);
    rc_close(second);
}

static void io_other_port(struct conf *conf)
{
    struct rc *admin = rc_open_controller(conf, &(struct rc_config){0});
    struct rc_config config = admin->config;

    config.qid = 1;
    config.port = 1;
    expect_refused(admin, &config, "a queue on another port");
    nvmf_expect_works(admin);
    rc_close(admin);
}

/* Whichever subsystem it names. */
static void io_of_discovery(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});

    rc->config.qid = 1;
    expect_refused(rc, &rc->config, "an I/O queue of a discovery controller");
    nvmf_expect_works(rc);
    rc_close(rc);
}

/* ---- Properties. */

static void property_inside(struct conf *conf)
{
    static const struct {
        uint32_t offset;
        uint8_t size_bytes;
    } inside[] = {
        {PROPERTY_CAP + 4, 8}, {PROPERTY_CAP + 4, 4},  {PROPERTY_VS + 2, 4},
        {PROPERTY_CC + 1, 4},  {PROPERTY_CSTS + 3, 4},
    };
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    uint64_t value;

    for (unsigned int i = 0; i < ARRAY_LEN(inside); i++) {
        conf_note(conf, "reading %u bytes at offset %u", inside[i].size_bytes,
                  inside[i].offset);
        conf_status(
            conf, "Property Get",
            nvmf_get(rc, inside[i].offset, inside[i].size_bytes, &value),
            NVME_SC_INVALID_FIELD);
    }
    rc_close(rc);
}

/* ---- Capsules. */

static void capsule_byte_less(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, LBA, 1);
    struct sgl whole = {.kind = SGL_IN_CAPSULE, .len_bytes = BLOCK};
    uint16_t status =
        rc_command(pair.io, &write, &whole, pair.io->mem, BLOCK - 1, NULL);

    conf_status(conf, "Write of 512 bytes from a capsule with 511", status,
                NVME_SC_SGL_INVALID_LENGTH);
    nvmf_close_pair(&pair);
}

/* ---- Keep-alive. */

static uint16_t set_kato(struct rc *rc, uint32_t kato_ms)
{
    struct nvme_sqe set = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_KEEP_ALIVE_TIMER,
                           .cdw11 = kato_ms};

    return rc_command(rc, &set, NULL, NULL, 0, NULL);
}

static uint32_t kato_in_force(struct rc *rc)
{
    struct nvme_sqe get = {.opcode = ADMIN_GET_FEATURES,
                           .cdw10 = FEATURE_KEEP_ALIVE_TIMER};
    struct nvme_cqe cqe;

    conf_status(rc->conf, "Get Features (KATO)",
                rc_command(rc, &get, NULL, NULL, 0, &cqe), NVME_SC_SUCCESS);
    return cqe.dw0;
}

/* Read Identify Controller into rc->mem. */
static const uint8_t *identify_controller(struct rc *rc)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY, .cdw10 = CNS_CONTROLLER};
    struct sgl sgl = rc_keyed(rc, 0, NVME_IDENTIFY_LEN);

    conf_status(rc->conf, "Identify", rc_command(rc, &sqe, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    return rc->mem;
}

static void read_block(struct rc *io)
{
    struct nvme_sqe read = nvmf_io(io->conf, NVM_READ, LBA, 1);
    struct sgl sgl = rc_keyed(io, 0, BLOCK);

    conf_status(io->conf, "Read", rc_command(io, &read, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
}

static bool traffic_keeps_in_time(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});
    uint64_t since_us;
    uint32_t kato_ms;

    if (!(get_le32(identify_controller(pair.admin) + ID_CTRL_CTRATT) &
          CTRATT_TBKAS)) {
        conf_not_applicable(conf,
                            "CTRATT has no TBKAS (traffic based Keep Alive)");
    }
    since_us = conf_now_us(conf);
    conf_status(conf, "Set Features (KATO)", set_kato(pair.admin, KATO_MS),
                NVME_SC_SUCCESS);
    kato_ms = kato_in_force(pair.admin);
    for (unsigned int i = 0; i < 3; i++) {
        if (!nvmf_pass_in_time(conf, kato_ms * 600ull, since_us, kato_ms)) {
            return false;
        }
        since_us = conf_now_us(conf);
        read_block(pair.io);
    }
    nvmf_expect_works(pair.admin);
    nvmf_close_pair(&pair);
    return true;
}

static void traffic_keeps(struct conf *conf)
{
    conf_repeat_in_time(conf, traffic_keeps_in_time);
}

static bool kato_is_not_short(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});
    uint64_t since_us;
    uint32_t kato_ms;
    uint32_t unit_ms =
        get_le16(identify_controller(pair.admin) + ID_CTRL_KAS) * 100u;

    if (unit_ms < 2) {
        conf_not_applicable(conf, "KAS is %u ms", unit_ms);
    }
    since_us = conf_now_us(conf);
    conf_status(conf, "Set Features (KATO)", set_kato(pair.admin, unit_ms + 1),
                NVME_SC_SUCCESS);
    kato_ms = kato_in_force(pair.admin);
    conf_check(conf, kato_ms > unit_ms, "KATO %u ms was rounded to %u ms",
               unit_ms + 1, kato_ms);
    conf_note(conf, "the timer of %u ms must not expire in %u ms", unit_ms + 1,
              unit_ms + 1);
    if (!nvmf_pass_in_time(conf, (unit_ms + 1) * 1000ull - SETTLE_US / 4,
                           since_us, kato_ms)) {
        return false;
    }
    nvmf_expect_works(pair.admin);
    nvmf_close_pair(&pair);
    return true;
}

static void kato_in_time(struct conf *conf)
{
    conf_repeat_in_time(conf, kato_is_not_short);
}

/* ---- The discovery log. */

/* Each record that NUMREC counts exists. */
static void log_count(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint64_t records = nvmf_discovery_log(rc);

    for (uint64_t i = 0; i < records; i++) {
        conf_check(conf,
                   nvmf_record(rc, i)[DISCOVERY_TRTYPE] != 0 &&
                       nvmf_record(rc, i)[DISCOVERY_TRADDR] != '\0',
                   "record %llu of %llu is empty", (unsigned long long)i,
                   (unsigned long long)records);
    }
    rc_close(rc);
}

/* ADRFAM agrees with the address. */
static void log_families(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint64_t records = nvmf_discovery_log(rc);

    for (uint64_t i = 0; i < records; i++) {
        const uint8_t *r = nvmf_record(rc, i);
        bool is_v6 = memchr(r + DISCOVERY_TRADDR, ':', 40) != NULL;

        conf_equal(conf, "ADRFAM of a record", r[DISCOVERY_ADRFAM],
                   is_v6 ? 2 : 1);
    }
    rc_close(rc);
}

/*
 * @return PORTID of the record with this IPv4 address; fails when there is none
 */
static uint16_t portid_of(struct rc *rc, const struct ip_addr *ip)
{
    uint64_t records = nvmf_discovery_log(rc);
    char text[40];

    snprintf(text, sizeof(text), "%u.%u.%u.%u", ip->bytes[12], ip->bytes[13],
             ip->bytes[14], ip->bytes[15]);
    for (uint64_t i = 0; i < records; i++) {
        const uint8_t *r = nvmf_record(rc, i);

        if (memcmp(r + DISCOVERY_TRADDR, text, strlen(text) + 1) == 0 ||
            memcmp(r + DISCOVERY_TRADDR, text, strlen(text)) == 0) {
            return get_le16(r + DISCOVERY_PORTID);
        }
    }
    conf_fail(rc->conf, "the log has no record with %s", text);
}

static void log_portids(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint16_t portid[CONF_PORTS];

    for (unsigned int port = 0; port < CONF_PORTS; port++) {
        const struct ip_addr *ip = conf_target_ip(conf, port, false);

        if (ip_addr_is_unspecified(ip)) {
            conf_not_applicable(conf, "port %u has no IPv4 address", port);
        }
        portid[port] = portid_of(rc, ip);
    }
    conf_check(conf, portid[0] != portid[1], "both ports have the PORTID %u",
               portid[0]);
    rc_close(rc);
}

static void set_extra(struct conf *conf, const struct ip_addr *ip)
{
    char line[80];

    conf_console(conf, "config discard");
    if (ip == NULL) {
        snprintf(line, sizeof(line), "config set address.3.ip none");
    } else {
        snprintf(line, sizeof(line), "config set address.3.ip %u.%u.%u.%u/24",
                 ip->bytes[12], ip->bytes[13], ip->bytes[14], ip->bytes[15]);
    }
    conf_console(conf, line);
    conf_console(conf, "config save");
    conf_pass(conf, SETTLE_US);
}

/* Each time an address is added or removed, GENCTR changes, and so do the
 * records. */
static void log_generations(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint64_t records = nvmf_discovery_log(rc);
    uint64_t first = get_le64(rc->mem + DISCOVERY_GENCTR), second;
    struct ip_addr ip = *conf_target_ip(conf, 0, false);
    uint64_t with;

    ip.bytes[15] = EXTRA_ADDRESS;
    set_extra(conf, &ip);
    with = nvmf_discovery_log(rc);
    second = get_le64(rc->mem + DISCOVERY_GENCTR);
    if (with > records) {
        portid_of(rc, &ip);
    }
    set_extra(conf, NULL);
    conf_check(conf, with > records,
               "the log has %llu records, and %llu with one more address",
               (unsigned long long)records, (unsigned long long)with);
    conf_check(conf, second != first, "GENCTR is still %llu",
               (unsigned long long)first);
    conf_equal(conf, "NUMREC after the address was removed",
               nvmf_discovery_log(rc), records);
    conf_check(conf, get_le64(rc->mem + DISCOVERY_GENCTR) != second,
               "GENCTR is still %llu", (unsigned long long)second);
    rc_close(rc);
}

/* Setting what is set already does not change the log. */
static void log_generation_still(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    struct ip_addr ip = *conf_target_ip(conf, 0, false);
    uint64_t with, again;

    ip.bytes[15] = EXTRA_ADDRESS;
    set_extra(conf, &ip);
    nvmf_discovery_log(rc);
    with = get_le64(rc->mem + DISCOVERY_GENCTR);
    set_extra(conf, &ip);
    nvmf_discovery_log(rc);
    again = get_le64(rc->mem + DISCOVERY_GENCTR);
    set_extra(conf, NULL);
    conf_check(conf, with == again, "GENCTR went from %llu to %llu",
               (unsigned long long)with, (unsigned long long)again);
    rc_close(rc);
}

/* The unique name is in Identify and in the log, and can be connected to. */
static void log_unique_name(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    struct sgl sgl = rc_keyed(rc, 0, NVME_IDENTIFY_LEN);
    struct nvmf_attempt *attempt;
    char name[NVME_NQN_FIELD] = {0};
    unsigned int found = 0;
    struct nvme_cqe cqe;

    conf_status(conf, "Identify",
                rc_command(rc, &identify, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    memcpy(name, rc->mem + ID_CTRL_SUBNQN, NVME_NQN_MAX);
    if (strcmp(name, NVME_DISCOVERY_NQN) == 0) {
        conf_not_applicable(conf, "the discovery subsystem has no unique NQN");
    }
    for (uint64_t i = 0, records = nvmf_discovery_log(rc); i < records; i++) {
        const uint8_t *r = nvmf_record(rc, i);

        if (r[DISCOVERY_SUBTYPE] == SUBTYPE_CURRENT_DISCOVERY) {
            conf_same(conf, "SUBNQN of the discovery subsystem",
                      r + DISCOVERY_SUBNQN, (const uint8_t *)name,
                      strlen(name) + 1);
            found++;
        }
    }
    conf_check(conf, found != 0, "the log has no current discovery subsystem");
    rc_close(rc);
    attempt = nvmf_attempt_new(conf, &(struct rc_config){0});
    memcpy(attempt->data.subnqn, name, sizeof(name));
    conf_status(conf, "Connect to the unique NQN",
                nvmf_attempt_run(attempt, &cqe), NVME_SC_SUCCESS);
    attempt->rc->config.cntlid = (uint16_t)cqe.dw0;
    rc_close(attempt->rc);
}

/* ---- The end. */

/* When an association ends, its number and its queues can be used again, even
 * with event requests outstanding and I/O queues open. */
static void end_of_many(struct conf *conf)
{
    for (unsigned int i = 0; i < 10; i++) {
        struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});
        struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};

        rc_send_capsule(pair.admin, &aer, NULL, NULL, 0);
        read_block(pair.io);
        rc_close(pair.admin);
        conf_pass(conf, NVMF_QUIET_US);
    }
    conf_expect_alive(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("connect.io-hostid-end", "NVMe-oF 1.1 3.3",
              "an I/O queue whose HOSTID differs in the last byte is refused",
              hostid_last_byte),
    CONF_TEST("connect.io-gone", "NVMe-oF 1.1 3.3, 4.2",
              "an I/O queue of a controller that is gone is refused",
              cntlid_gone),
    CONF_TEST("connect.io-port", "NVMe-oF 1.1 4.5",
              "an I/O queue on another port than the admin queue is refused",
              io_other_port, .needs = CONF_NEEDS_TWO_PORTS),
    CONF_TEST(
        "discovery.io-queue-nvm", "NVMe-oF 1.1 5.2",
        "a discovery controller has no I/O queue, whichever subsystem it names",
        io_of_discovery),
    CONF_TEST("property.inside-any", "NVMe-oF 1.1 3.5",
              "an offset inside a property is refused with Invalid Field",
              property_inside),
    CONF_TEST("capsule.byte-less", "NVMe-oF 1.1 2.3.1",
              "a Write of one byte more than the capsule has is refused with "
              "Length Invalid",
              capsule_byte_less, .is_malformed = true),
    CONF_TEST("kato.traffic", "NVMe 1.4 7.12.2",
              "I/O commands keep the association alive with TBKAS",
              traffic_keeps),
    CONF_TEST("kato.granularity", "NVMe 1.4 5.21.1.15",
              "KATO is rounded up to KAS, never down", kato_in_time),
    CONF_TEST("discovery.count", "NVMe-oF 1.1 5.3",
              "each record that NUMREC counts exists", log_count),
    CONF_TEST("discovery.families", "NVMe-oF 1.1 5.3, 7.3.6",
              "ADRFAM agrees with the address", log_families),
    CONF_TEST("discovery.portid", "NVMe-oF 1.1 5.3",
              "PORTID differs between ports", log_portids,
              .needs = CONF_NEEDS_TWO_PORTS),
    CONF_TEST("discovery.generation", "NVMe-oF 1.1 5.3",
              "GENCTR changes when an address is added or removed",
              log_generations, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("discovery.generation-still", "NVMe-oF 1.1 5.3",
              "GENCTR stays when the same address is set again",
              log_generation_still, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("discovery.unique-name", "NVMe Base 2.0 3.1.2.3",
              "a unique discovery NQN is in Identify and the log, and works",
              log_unique_name),
    CONF_TEST("end.many", "NVMe-oF 1.1 4.5",
              "ten associations with I/O queues and event requests end cleanly",
              end_of_many),
};

CONF_TESTS(conf_tests_nvmf_more, "nvmf", tests);
