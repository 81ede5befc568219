/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/discovery.h"
#include "tests/test_fixture.h"

enum { RAE = 1 << 15 };

/* Read a log page into fake->data, which is filled with a pattern before. */
static struct nvme_cqe get_log(struct fake *fake, uint16_t admin, uint32_t lid,
                               uint64_t offset, uint32_t len)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_GET_LOG_PAGE,
                           .cdw10 = (len / 4 - 1) << 16 | lid,
                           .cdw11 = (len / 4 - 1) >> 16,
                           .cdw12 = (uint32_t)offset,
                           .cdw13 = (uint32_t)(offset >> 32)};

    memset(fake->data, 0xa5, sizeof(fake->data));
    return fake_exec(fake, admin, &sqe, fake->data, len);
}

static void test_the_error_log_starts_with_the_newest_entry(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 2);
    struct nvme_sqe read = fake_rw(NVM_READ, 0x123456789, 1);
    struct nvme_sqe bad = {.opcode = 0xc1};
    const uint8_t *entry = fake->data;

    fake_exec(fake, io, &read, fake->data, 512);
    fake_exec(fake, admin, &bad, NULL, 0);
    assert_int_equal(get_log(fake, admin, LOG_ERROR, 0, 4096).status, 0);
    assert_int_equal(get_le64(entry), 2);
    assert_int_equal(get_le16(entry + 8), 0); /* SQID */
    assert_int_equal(get_le16(entry + 12), (0x001 | DNR) << 1);
    assert_int_equal(get_le16(entry + 14), 0); /* opcode */
    entry += 64;
    assert_int_equal(get_le64(entry), 1);
    assert_int_equal(get_le16(entry + 8), 2);
    assert_int_equal(get_le16(entry + 12), (0x080 | DNR) << 1);
    assert_int_equal(get_le16(entry + 14), 40);
    assert_int_equal(get_le64(entry + 16), 0x123456789);
    assert_int_equal(get_le32(entry + 24), 1);
    entry += 64;
    assert_int_equal(get_le64(entry), 0);
}

/* In other commands, dwords 10 and 11 are not an LBA. */
static void test_only_commands_with_an_lba_have_one_in_the_error_log(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 2);
    static const struct {
        uint8_t opcode;
        bool has_lba;
    } rows[] = {
        {NVM_WRITE, true},
        {NVM_READ, true},
        {NVM_WRITE_ZEROES, true},
        {NVM_FLUSH, false},
        {NVM_DATASET_MANAGEMENT, false},
        {NVM_COMPARE, true},
        {NVM_VERIFY, true},
        {NVM_COPY, true},
        {0x7e, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nvme_sqe sqe = fake_rw(rows[i].opcode, 0x123456789, 1);

        sqe.nsid = 200; /* refused for every opcode */
        fake_exec(fake, io, &sqe, fake->data, 512);
        get_log(fake, admin, LOG_ERROR, 0, 64);
        assert_int_equal(get_le64(fake->data), i + 1);
        assert_int_equal(get_le64(fake->data + 16),
                         rows[i].has_lba ? 0x123456789 : 0);
    }
}

static void test_the_error_log_keeps_the_last_64_entries(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    for (uint32_t i = 0; i < 100; i++) {
        nvmf_target_log_error(fake->target, NVME_SC_INTERNAL, i, 1000 + i);
    }
    get_log(fake, admin, LOG_ERROR, 0, 4096);
    for (uint32_t i = 0; i < 64; i++) {
        const uint8_t *entry = fake->data + 64 * i;

        assert_int_equal(get_le64(entry), 100 - i);
        assert_int_equal(get_le16(entry + 8), 0xffff);
        assert_int_equal(get_le64(entry + 16), 1099 - i);
    }
}

static void test_smart_counts_commands_and_data_units(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 256);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    const uint8_t *smart = fake->data;

    for (unsigned int i = 0; i < 5; i++) { /* 1280 blocks: two data units */
        fake_exec(fake, io, &read, fake->data, 256 * 512);
    }
    fake_exec(fake, io, &write, fake->data, 512);
    fake->media_status = MEDIA_READ_ERROR;
    fake_exec(fake, io, &read, fake->data, 256 * 512);
    assert_int_equal(get_log(fake, admin, LOG_SMART, 0, 512).status, 0);
    assert_int_equal(smart[0], 0);
    assert_int_equal(get_le16(smart + 1), 313);
    assert_int_equal(smart[3], 100);
    assert_int_equal(smart[4], 10);
    assert_int_equal(get_le64(smart + 32), 2);
    assert_int_equal(get_le64(smart + 48), 1);
    assert_int_equal(get_le64(smart + 64), 5);
    assert_int_equal(get_le64(smart + 80), 1);
    assert_int_equal(get_le64(smart + 112), 7);
    assert_int_equal(get_le64(smart + 128), 8);
    assert_int_equal(get_le64(smart + 144), 9);
    assert_int_equal(get_le64(smart + 160), 1);
    assert_int_equal(get_le64(smart + 176), 1);
}

WITH_FIXTURE(NULL, NULL)
static void test_smart_counters_continue_after_a_restart(void **state)
{
    struct fake *fake = fake_new();
    uint16_t admin;

    (void)state;
    fake->config.counters = (struct nvmf_counters){
        .read_blocks_512 = 5000,
        .host_writes = 77,
        .error_log_entries = 1234,
    };
    fake_start(fake);
    admin = fake_host(fake, 0);
    get_log(fake, admin, LOG_SMART, 0, 512);
    assert_int_equal(get_le64(fake->data + 32), 5);
    assert_int_equal(get_le64(fake->data + 80), 77);
    assert_int_equal(get_le64(fake->data + 176), 1234);
    get_log(fake, admin, LOG_ERROR, 0, 64);
    assert_int_equal(get_le64(fake->data), 0); /* the entries are not kept */
    fake_free(fake);
}

static void test_the_firmware_slot_log_has_the_configured_revisions(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    get_log(fake, admin, LOG_FIRMWARE_SLOT, 0, 512);
    assert_int_equal(fake->data[0], 1);
    assert_memory_equal(fake->data + 8, "1.0     ", 8);
    assert_memory_equal(fake->data + 16, "0.9     ", 8);
    assert_int_equal(get_le64(fake->data + 24), 0);
}

static void test_the_commands_effects_log_matches_the_command_tables(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    static const uint8_t admin_supported[] = {0x02, 0x06, 0x08, 0x09, 0x0a,
                                              0x0c, 0x18, 0x7f, 0x86};
    unsigned int count = 0;

    get_log(fake, admin, LOG_COMMANDS_EFFECTS, 0, 4096);
    for (unsigned int i = 0; i < 256; i++) {
        count += get_le32(fake->data + 4 * i) != 0;
    }
    assert_int_equal(count, ARRAY_LEN(admin_supported));
    for (size_t i = 0; i < ARRAY_LEN(admin_supported); i++) {
        assert_int_equal(get_le32(fake->data + 4 * admin_supported[i]), 1);
    }
    assert_int_equal(get_le32(fake->data + 1024 + 4 * NVM_FLUSH), 1);
    assert_int_equal(get_le32(fake->data + 1024 + 4 * NVM_READ), 1);
    assert_int_equal(get_le32(fake->data + 1024 + 4 * NVM_WRITE), 3);
    assert_int_equal(get_le32(fake->data + 1024 + 4 * NVM_WRITE_ZEROES), 3);
    assert_int_equal(get_le32(fake->data + 1024 + 4 * NVM_COMPARE), 1);
    assert_int_equal(get_le32(fake->data + 1024 + 4 * NVM_VERIFY), 1);
    assert_int_equal(get_le32(fake->data + 1024 + 4 * NVM_COPY), 3);
    assert_int_equal(get_le32(fake->data + 1024 + 4 * NVM_WRITE_UNCORRECTABLE),
                     0);
}

static void test_logs_read_in_pieces_are_the_same(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t discovery = fake_discovery_host(fake);
    static const struct {
        uint32_t lid, len;
    } rows[] = {
        {LOG_SMART, 512},
        {LOG_FIRMWARE_SLOT, 512},
        {LOG_COMMANDS_EFFECTS, 4096},
        {LOG_DISCOVERY, 5 * 1024},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint16_t qpair = rows[i].lid == LOG_DISCOVERY ? discovery : admin;
        uint8_t whole[5 * 1024];

        get_log(fake, qpair, rows[i].lid, 0, rows[i].len);
        memcpy(whole, fake->data, rows[i].len);
        for (uint32_t at = 0; at < rows[i].len; at += 252) {
            uint32_t n = MIN(252u, rows[i].len - at);

            assert_int_equal(get_log(fake, qpair, rows[i].lid, at, n).status,
                             0);
            assert_memory_equal(fake->data, whole + at, n);
        }
        /* Bytes beyond the end of a page are zero, up to MDTS. */
        get_log(fake, qpair, rows[i].lid, 0, NVMF_MAX_TRANSFER);
        assert_memory_equal(fake->data, whole, rows[i].len);
        for (uint32_t at = rows[i].len; at < NVMF_MAX_TRANSFER; at++) {
            assert_int_equal(fake->data[at], 0);
        }
        assert_int_equal(
            get_log(fake, qpair, rows[i].lid, rows[i].len, 4).status, 0);
        assert_int_equal(get_le32(fake->data), 0);
    }
}

/* As when only small buffers are left. */
static void test_logs_in_pieces_of_memory_are_the_same(void **state)
{
    static const uint16_t piece_bytes[] = {512, 600, 1024, 1028, 3000, 4096};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t whole[4096];

    get_log(fake, admin, LOG_COMMANDS_EFFECTS, 0, 4096);
    memcpy(whole, fake->data, 4096);
    for (size_t i = 0; i < ARRAY_LEN(piece_bytes); i++) {
        fake->piece_bytes = piece_bytes[i];
        memset(fake->data, 0x5a, 4096);
        get_log(fake, admin, LOG_COMMANDS_EFFECTS, 0, 4096);
        assert_memory_equal(fake->data, whole, 4096);
        /* The zeroes beyond the end begin inside a piece. */
        memset(fake->data, 0x5a, 4096);
        get_log(fake, admin, LOG_COMMANDS_EFFECTS, 1000, 4096);
        assert_memory_equal(fake->data, whole + 1000, 3096);
        for (uint32_t at = 3096; at < 4096; at++) {
            assert_int_equal(fake->data[at], 0);
        }
    }
}

static void test_the_discovery_log_has_both_ports_and_the_discovery_subsystem(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_discovery_host(fake);
    const uint8_t *log = fake->data;

    get_log(fake, admin, LOG_DISCOVERY, 0, 5 * 1024);
    assert_int_equal(get_le64(log), 1);      /* GENCTR */
    assert_int_equal(get_le64(log + 8), 4);  /* NUMREC */
    assert_int_equal(get_le16(log + 16), 0); /* RECFMT */
    for (unsigned int i = 0; i < 4; i++) {
        const uint8_t *entry = log + 1024 * (i + 1);
        const struct nvmf_address *address = &fake->address[i % 2];
        bool is_nvm = i < 2;

        assert_int_equal(entry[0], 1);
        assert_int_equal(entry[1], address->adrfam);
        assert_int_equal(entry[2], is_nvm ? 2 : 3);
        assert_int_equal(get_le16(entry + 4), address->portid);
        assert_int_equal(get_le16(entry + 6), 0xffff);
        assert_int_equal(get_le16(entry + 8), 32);
        assert_int_equal(get_le16(entry + 10), is_nvm ? 0 : 3);
        assert_string_equal((const char *)entry + 32, "4420");
        assert_string_equal((const char *)entry + 256,
                            is_nvm ? FAKE_SUBNQN : NVME_DISCOVERY_NQN);
        assert_string_equal((const char *)entry + 512, address->traddr);
        assert_int_equal(entry[768], 1);
        assert_int_equal(entry[769], 4);
        assert_int_equal(entry[770], 1);
    }
}

/* Two ports with link-local addresses: a host of one link is not told of the
 * addresses of the other one. */
static void test_link_local_addresses_are_for_hosts_of_their_link(void **state)
{
    struct fake *fake = *state;
    const uint8_t *log = fake->data;

    for (unsigned int i = 2; i < 4; i++) {
        fake->address[i] = fake->address[0];
        fake->address[i].adrfam = 2;
        fake->address[i].link = i;
        strcpy(fake->address[i].traddr, i == 2 ? "fe80::10" : "fe80::20");
    }
    nvmf_target_set_addresses(fake->target, fake->address, 4);
    for (uint32_t link = 0; link < 5; link++) {
        bool knows_one = link == 2 || link == 3;
        unsigned int each = knows_one ? 3 : 2;
        uint16_t admin;

        fake->link = link;
        admin = fake_discovery_host(fake);
        memset(fake->data, 0xa5, sizeof(fake->data));
        get_log(fake, admin, LOG_DISCOVERY, 0, 8 * 1024);
        assert_int_equal(get_le64(log + 8), 2 * each);
        for (unsigned int i = 0; i < 2 * each; i++) {
            const uint8_t *entry = log + 1024 * (i + 1);
            const char *traddr = (const char *)entry + 512;
            bool is_own = i % each == 2;

            assert_int_equal(entry[2], i < each ? 2 : 3);
            assert_string_equal(traddr, !is_own ? fake->address[i % each].traddr
                                        : link == 2 ? "fe80::10"
                                                    : "fe80::20");
            /* Only the entries that all hosts see lead to the same log. */
            assert_int_equal(get_le16(entry + 10), i < each ? 0
                                                   : is_own ? 2
                                                            : 3);
        }
        for (uint32_t at = 1024 * (2 * each + 1); at < 8 * 1024; at++) {
            assert_int_equal(log[at], 0);
        }
        fake_close(fake, admin);
    }
}

WITH_FIXTURE(NULL, NULL)
static void test_the_discovery_subsystem_has_a_unique_name_too(void **state)
{
    struct fake *fake = fake_new();
    uint16_t admin = 0;

    (void)state;
    strcpy(fake->config.discovery_nqn, FAKE_SUBNQN ":discovery");
    fake->config.genctr = 0x50000;
    fake_start(fake);
    fake_discovery_host(fake); /* the well-known name still works */
    admin = fake_open(fake, 0, 31);
    fake_connect(fake, admin, 0, 31, 0xffff, 0, FAKE_SUBNQN ":discovery");
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    get_log(fake, admin, LOG_DISCOVERY, 0, 4096);
    assert_int_equal(get_le64(fake->data), 0x50001);
    assert_string_equal((const char *)fake->data + 3 * 1024 + 256,
                        FAKE_SUBNQN ":discovery");
    fake_free(fake);
}

/* A Linux host refuses a unique name from a controller without CNTRLTYPE. */
WITH_FIXTURE(NULL, NULL)
static void test_the_data_sheets_level_has_only_the_well_known_name(
    void **state)
{
    struct fake *fake = fake_new();
    struct connect_command command = {.sqsize = 31};
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
    struct connect_data data;
    uint16_t admin = 0;

    (void)state;
    strcpy(fake->config.discovery_nqn, FAKE_SUBNQN ":discovery");
    fake->config.vs = NVMF_VS_1_2_1;
    fake_start(fake);
    fake_connect_data(&data, 0xffff, FAKE_SUBNQN ":discovery");
    assert_int_equal(
        fake_connect_with(fake, fake_open(fake, 0, 31), &command, &data).dw0,
        1u << 16 | 256); /* IATTR, and the offset of SUBNQN */
    admin = fake_discovery_host(fake);
    assert_int_equal(
        fake_exec(fake, admin, &identify, fake->data, NVME_IDENTIFY_LEN).status,
        0);
    assert_string_equal((const char *)fake->data + 768, NVME_DISCOVERY_NQN);
    get_log(fake, admin, LOG_DISCOVERY, 0, 4096);
    assert_string_equal((const char *)fake->data + 3 * 1024 + 256,
                        NVME_DISCOVERY_NQN);
    fake_free(fake);
}

static void test_a_change_of_the_discovery_log_changes_genctr(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_discovery_host(fake);
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_ASYNC_EVENT_CONFIG, 1u << 31);
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct fake_request *event;

    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
    event = fake_send(fake, admin, &aer, NULL, 0);
    get_log(fake, admin, LOG_DISCOVERY, 0, 1024);
    for (uint8_t i = 0; i < NVMF_MAX_LISTED; i++) {
        fake->address[i] = fake->address[0];
        fake->address[i].portid = i;
    }
    nvmf_target_set_addresses(fake->target, fake->address, NVMF_MAX_LISTED);
    get_log(fake, admin, LOG_DISCOVERY, 0, 1024);
    /* The changed GENCTR makes the host read again. */
    assert_int_equal(get_le64(fake->data), 2);
    assert_int_equal(get_le64(fake->data + 8), 2 * NVMF_MAX_LISTED);
    fake_run(fake);
    assert_true(event->is_answered);
    assert_int_equal(event->cqe.dw0, 0x70f002);
    get_log(fake, admin, LOG_DISCOVERY, 2 * NVMF_MAX_LISTED * 1024, 1024);
    assert_int_equal(get_le16(fake->data + 4), NVMF_MAX_LISTED - 1);
    assert_int_equal(fake->data[2], 3);

    nvmf_target_set_addresses(fake->target, NULL, 0);
    get_log(fake, admin, LOG_DISCOVERY, 0, 1024);
    assert_int_equal(get_le64(fake->data + 8), 0);
    assert_int_equal(get_log(fake, admin, LOG_DISCOVERY, 1028, 4).status,
                     NVME_SC_INVALID_FIELD | DNR);
}

static void test_genctr_moves_only_when_the_log_changes(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_discovery_host(fake);
    struct nvmf_referral referral = {.trtype = TRTYPE_RDMA,
                                     .tsas = {1, 4, 1, 0},
                                     .adrfam = 1,
                                     .traddr = "192.0.2.9",
                                     .trsvcid = "4420"};

    nvmf_target_set_addresses(fake->target, fake->address, 2); /* as before */
    get_log(fake, admin, LOG_DISCOVERY, 0, 1024);
    assert_int_equal(get_le64(fake->data), 1);
    assert_true(nvmf_target_add_referral(fake->target, &referral));
    assert_true(nvmf_target_add_referral(fake->target, &referral));
    get_log(fake, admin, LOG_DISCOVERY, 0, 1024);
    assert_int_equal(get_le64(fake->data), 2);
    assert_true(nvmf_target_remove_referral(fake->target, &referral));
    assert_false(nvmf_target_remove_referral(fake->target, &referral));
    get_log(fake, admin, LOG_DISCOVERY, 0, 1024);
    assert_int_equal(get_le64(fake->data), 3);
    fake->address[1].portid = 7;
    nvmf_target_set_addresses(fake->target, fake->address, 2);
    get_log(fake, admin, LOG_DISCOVERY, 0, 1024);
    assert_int_equal(get_le64(fake->data), 4);
}

static void test_referrals_follow_the_drives_own_entries(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_discovery_host(fake);
    struct nvmf_referral referral = {.trtype = TRTYPE_RDMA,
                                     .tsas = {1, 4, 1, 0},
                                     .adrfam = 2,
                                     .traddr = "2001:db8::9",
                                     .trsvcid = "4421"};
    const uint8_t *entry = fake->data + 5 * 1024;

    for (uint8_t i = 0; i < NVMF_MAX_REFERRALS; i++) {
        assert_true(nvmf_target_add_referral(fake->target, &referral));
        referral.traddr[10]++;
    }
    assert_false(nvmf_target_add_referral(fake->target, &referral));
    get_log(fake, admin, LOG_DISCOVERY, 0, 21 * 1024);
    assert_int_equal(get_le64(fake->data + 8), 4 + NVMF_MAX_REFERRALS);
    assert_int_equal(entry[0], 1);
    assert_int_equal(entry[1], 2);
    assert_int_equal(entry[2], SUBTYPE_REFERRAL);
    assert_int_equal(get_le16(entry + 6), 0xffff);
    assert_int_equal(get_le16(entry + 8), 32);
    assert_string_equal((const char *)entry + 32, "4421");
    assert_string_equal((const char *)entry + 256, NVME_DISCOVERY_NQN);
    assert_string_equal((const char *)entry + 512, "2001:db8::9");
    /* Without an address of its own, the drive still refers to others. */
    nvmf_target_set_addresses(fake->target, NULL, 0);
    get_log(fake, admin, LOG_DISCOVERY, 0, 2048);
    assert_int_equal(fake->data[1024 + 2], SUBTYPE_REFERRAL);
}

static void configure_events(struct fake *fake, uint16_t admin, uint32_t config)
{
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_ASYNC_EVENT_CONFIG, config);

    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
}

static struct fake_request *post_aer(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct fake_request *request = fake_send(fake, admin, &aer, NULL, 0);

    fake_run(fake);
    return request;
}

static void test_a_namespace_change_is_reported_once_until_the_log_is_read(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *event;

    configure_events(fake, admin, 1 << 8);
    event = post_aer(fake, admin);
    nvmf_target_ns_changed(fake->target, 2);
    fake_run(fake);
    assert_true(event->is_answered);
    assert_int_equal(event->cqe.dw0, 0x040002);

    /* The event is masked: a further one waits until the log is read. */
    event = post_aer(fake, admin);
    nvmf_target_ns_changed(fake->target, 1);
    fake_run(fake);
    assert_false(event->is_answered);
    get_log(fake, admin, LOG_CHANGED_NS_LIST | RAE, 0, 4096);
    assert_int_equal(get_le32(fake->data), 1);
    assert_int_equal(get_le32(fake->data + 4), 2);
    assert_false(event->is_answered); /* Retain Asynchronous Event */
    get_log(fake, admin, LOG_CHANGED_NS_LIST, 0, 4096);
    assert_int_equal(get_le32(fake->data), 1);
    fake_run(fake);
    assert_true(event->is_answered);
    get_log(fake, admin, LOG_CHANGED_NS_LIST, 0, 4096);
    assert_int_equal(get_le32(fake->data), 0);
}

static void test_an_event_waits_for_its_request(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *event;

    /* The event is not enabled and is lost. */
    nvmf_target_ns_changed(fake->target, 1);
    configure_events(fake, admin, 1 << 8);
    event = post_aer(fake, admin);
    assert_false(event->is_answered);
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    configure_events(fake, admin, 1 << 8);
    nvmf_target_ns_changed(fake->target, 1);
    event = post_aer(fake, admin);
    assert_true(event->is_answered);
    assert_int_equal(event->cqe.status, 0);
}

static void test_a_health_event_is_raised_for_each_new_warning(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvmf_health health = fake->config.health;
    struct fake_request *first, *second;

    configure_events(fake, admin, 0x1f);
    first = post_aer(fake, admin);
    second = post_aer(fake, admin);
    health.temperature_k = 343;
    nvmf_target_set_health(fake->target, &health);
    fake_run(fake);
    assert_int_not_equal(first->is_answered, second->is_answered);
    assert_int_equal(second->cqe.dw0 | first->cqe.dw0, 0x020101);
    nvmf_target_set_health(fake->target, &health); /* no new warning */
    health.available_spare_percent = 9;
    nvmf_target_set_health(fake->target, &health);
    fake_run(fake);
    assert_true(first->is_answered && second->is_answered);
    assert_int_equal(first->cqe.dw0, 0x020201);
    get_log(fake, admin, LOG_SMART, 0, 512);
    assert_int_equal(fake->data[0], 3);

    /* The warning ends and comes back. */
    health.temperature_k = 300;
    nvmf_target_set_health(fake->target, &health);
    first = post_aer(fake, admin);
    assert_false(first->is_answered);
    health.temperature_k = 350;
    nvmf_target_set_health(fake->target, &health);
    fake_run(fake);
    assert_int_equal(first->cqe.dw0, 0x020101);

    health.critical_warning = SMART_WARN_READ_ONLY;
    nvmf_target_set_health(fake->target, &health);
    first = post_aer(fake, admin);
    assert_int_equal(first->cqe.dw0, 0x020001);
}

static void build_vendor(void *ctx, uint32_t part, uint8_t *page)
{
    memset(page, (int)part + *(int *)ctx, 100);
}

WITH_FIXTURE(NULL, NULL)
static void test_vendor_logs_are_built_part_by_part(void **state)
{
    static int first = 1;
    static const struct nvmf_vendor_log vendor = {
        .lid = 0xc5,
        .len_bytes = 300,
        .part_bytes = 100,
        .build = build_vendor,
    };
    struct fake *fake = fake_new();
    uint16_t admin, discovery;

    (void)state;
    fake->config.vendor_logs = &vendor;
    fake->config.vendor_log_count = 1;
    fake->config.vendor_log_ctx = &first;
    fake_start(fake);
    admin = fake_host(fake, 0);
    discovery = fake_discovery_host(fake);
    assert_int_equal(get_log(fake, admin, 0xc5, 196, 112).status, 0);
    assert_int_equal(fake->data[3], 2);
    assert_int_equal(fake->data[4], 3);
    assert_int_equal(fake->data[103], 3);
    assert_int_equal(fake->data[104], 0); /* beyond its end */
    fake->piece_bytes = 60; /* some parts begin after the first piece */
    memset(fake->data, 0x5a, 304);
    assert_int_equal(get_log(fake, admin, 0xc5, 0, 304).status, 0);
    for (uint32_t at = 0; at < 304; at++) {
        assert_int_equal(fake->data[at], at < 300 ? 1 + at / 100 : 0);
    }
    assert_int_equal(get_log(fake, admin, 0xc6, 0, 4).status, 0x109 | DNR);
    assert_int_equal(get_log(fake, discovery, 0xc5, 0, 4).status, 0x109 | DNR);
    fake_free(fake);
}

static struct nvme_cqe exec_timestamp(struct fake *fake, uint16_t admin,
                                      bool is_set, uint32_t select)
{
    const struct nvme_sqe sqe = {
        .opcode = is_set ? ADMIN_SET_FEATURES : ADMIN_GET_FEATURES,
        .cdw10 = select << 8 | 0x0e,
    };

    return fake_exec(fake, admin, &sqe, fake->data, 8);
}

static void test_timestamp_counts_from_reset_until_it_is_set(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    fake->now_us += 5000000;
    memset(fake->data, 0xa5, 8);
    assert_int_equal(exec_timestamp(fake, admin, false, 0).status, 0);
    assert_in_range(get_le64(fake->data), 5000, 5010); /* origin 0 */
    /* Bits that are not part of the time are ignored. */
    put_le64(fake->data, 0xff00018f00000000);
    assert_int_equal(exec_timestamp(fake, admin, true, 0).status, 0);
    fake->now_us += 2500000;
    assert_int_equal(exec_timestamp(fake, admin, false, 0).status, 0);
    assert_in_range(get_le64(fake->data) - 0x0002000000000000,
                    0x018f00000000 + 2500, 0x018f00000000 + 2510);
    assert_int_equal(exec_timestamp(fake, admin, false, 1).status, 0);
    assert_int_equal(get_le64(fake->data), 0);
}

/* Set or not, the clock also counts the time in which the drive could not run.
 */
static void test_timestamp_counts_what_the_times_leave_out(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint64_t before_ms, ms;

    assert_false(nvmf_target_time(fake->target, &before_ms));
    nvmf_target_held_back(fake->target, 7000500);
    nvmf_target_held_back(fake->target, 2000500);
    assert_false(nvmf_target_time(fake->target, &ms));
    assert_in_range(ms, before_ms + 9001, before_ms + 9002);
    put_le64(fake->data, 0x018f00000000);
    assert_int_equal(exec_timestamp(fake, admin, true, 0).status, 0);
    nvmf_target_held_back(fake->target, 30000000);
    assert_int_equal(exec_timestamp(fake, admin, false, 0).status, 0);
    assert_in_range(get_le64(fake->data) - 0x0002000000000000,
                    0x018f00000000 + 30000, 0x018f00000000 + 30010);
}

/* Entries of an earlier power cycle are restored; one of them was lost. */
static void test_the_error_log_continues_after_restored_entries(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct log_error error = {.count = 7, .lba = 107};
    static const uint64_t counts[] = {10, 9, 7, 0};

    nvmf_target_restore_error(fake->target, &error);
    error = (struct log_error){.count = 9, .lba = 109};
    nvmf_target_restore_error(fake->target, &error);
    error = (struct log_error){.count = 0, .lba = 1}; /* not an entry */
    nvmf_target_restore_error(fake->target, &error);
    nvmf_target_log_error(fake->target, NVME_SC_INTERNAL, 0, 110);
    get_log(fake, admin, LOG_ERROR, 0, 4096);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        assert_int_equal(get_le64(fake->data + 64 * i), counts[i]);
        assert_int_equal(get_le64(fake->data + 64 * i + 16),
                         counts[i] != 0 ? 100 + counts[i] : 0);
    }
    assert_true(nvmf_target_error(fake->target, 9, &error));
    assert_int_equal(error.lba, 109);
    assert_false(nvmf_target_error(fake->target, 8, &error));
    assert_false(nvmf_target_error(fake->target, 0, &error));
    assert_false(nvmf_target_error(fake->target, 7 + 64, &error));

    /* An older entry does not replace a newer one. */
    for (uint32_t i = 0; i < 64; i++) {
        nvmf_target_log_error(fake->target, NVME_SC_INTERNAL, 0, i);
    }
    error = (struct log_error){.count = 9, .lba = 109};
    nvmf_target_restore_error(fake->target, &error);
    assert_false(nvmf_target_error(fake->target, 9, &error));
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries, 74);
}

/* How many entries of the error log page have this NSID. */
static unsigned int errors_with_nsid(struct fake *fake, uint16_t admin,
                                     uint32_t nsid)
{
    unsigned int count = 0;

    get_log(fake, admin, LOG_ERROR, 0, 4096);
    for (size_t i = 0; i < 64; i++) {
        if (get_le64(fake->data + 64 * i) != 0) {
            count += get_le32(fake->data + 64 * i + 24) == nsid;
        }
    }
    return count;
}

static void test_a_host_keeps_its_errors_beside_a_noisy_one(void **state)
{
    struct fake *fake = *state;
    uint16_t quiet = fake_host(fake, 0), noisy;
    struct nvme_sqe bad = fake_admin(0x7e, 7, 0, 0);
    uint64_t last = 0;

    fake->peer = 1; /* another address: the names are on no list */
    fake->host_letter = 'N';
    fake->hostid = 0x43;
    noisy = fake_host(fake, 0);
    for (unsigned int i = 0; i < 3; i++) {
        fake_exec(fake, quiet, &bad, NULL, 0);
    }
    nvmf_target_log_error(fake->target, NVME_SC_INTERNAL, 6, 0);
    bad.nsid = 8;
    for (unsigned int i = 0; i < 1000; i++) {
        fake_exec(fake, noisy, &bad, NULL, 0);
    }
    assert_int_equal(errors_with_nsid(fake, quiet, 7), 3);
    assert_int_equal(errors_with_nsid(fake, quiet, 6), 1);
    assert_int_equal(errors_with_nsid(fake, quiet, 8), 60);
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries,
                     1004);
    bad.nsid = 7; /* The newest entries are first, and none twice. */
    for (unsigned int i = 0; i < 100; i++) {
        fake_exec(fake, quiet, &bad, NULL, 0);
    }
    assert_in_range(errors_with_nsid(fake, quiet, 7), 31, 32);
    assert_in_range(errors_with_nsid(fake, quiet, 8), 31, 32);
    assert_int_equal(errors_with_nsid(fake, quiet, 6), 1);
    for (size_t i = 0; i < 64; i++) {
        uint64_t count = get_le64(fake->data + 64 * i);
        struct log_error error;

        assert_true(i == 0 || count < last);
        last = count;
        assert_true(nvmf_target_error(fake->target, count, &error));
        assert_true(nvmf_target_error_after(fake->target, count - 1, &error));
        assert_int_equal(error.count, count);
    }
}

/* A peer may say as many names as the log has entries: without a proof they all
 * count as its address. */
static void test_many_names_of_one_address_have_one_share(void **state)
{
    struct fake *fake = *state;
    uint16_t quiet = fake_host(fake, 0);
    struct nvme_sqe bad = fake_admin(0x7e, 7, 0, 0);

    for (unsigned int i = 0; i < 30; i++) {
        fake_exec(fake, quiet, &bad, NULL, 0);
    }
    bad.nsid = 8;
    fake->peer = 1;
    for (unsigned int i = 0; i < 2 * 64; i++) {
        uint16_t noisy;

        fake->host_letter = (char)('0' + i % 64);
        fake->hostid = (uint8_t)(0x80 + i % 64);
        noisy = fake_host(fake, 0);
        fake_exec(fake, noisy, &bad, NULL, 0);
        fake_exec(fake, noisy, &bad, NULL, 0);
        fake_close(fake, noisy);
    }
    assert_int_equal(errors_with_nsid(fake, quiet, 7), 30);
    assert_int_equal(errors_with_nsid(fake, quiet, 8), 34);
}

/* After a restart, with the records in any order and some of them twice. */
static void test_restored_errors_have_shares_too(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    for (unsigned int turn = 0; turn < 2; turn++) {
        for (uint64_t count = 300; count > 0; count -= 1) {
            struct log_error error = {
                .count = count,
                .nsid = count <= 4 ? 7 : 8,
                .owner = count <= 4 ? 7 : 8,
            };

            nvmf_target_restore_error(fake->target, &error);
        }
    }
    assert_int_equal(errors_with_nsid(fake, admin, 7), 4);
    assert_int_equal(errors_with_nsid(fake, admin, 8), 60);
    assert_int_equal(get_le64(fake->data), 300);
    assert_int_equal(get_le64(fake->data + 64 * 59), 241);
}

static void test_refusals_before_connect_and_of_discovery_leave_no_trace(
    void **state)
{
    struct fake *fake = *state;
    struct nvme_sqe bad = fake_admin(0x7e, 7, 0, 0);
    uint16_t discovery = fake_discovery_host(fake);
    uint16_t qpair;

    for (unsigned int i = 0; i < 64; i++) {
        struct connect_command connect = {.sqsize = 31};
        struct connect_data data;

        fake_connect_data(&data, 0xffff, "nqn.2014-08.org.example:another");
        qpair = fake_open(fake, 0, 31);
        assert_int_not_equal(
            fake_connect_with(fake, qpair, &connect, &data).status, 0);
        fake_close(fake, qpair);
        fake_exec(fake, discovery, &bad, NULL, 0);
    }
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries, 0);
}

static void test_the_error_times_log_has_a_time_for_each_error(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    nvmf_target_log_error(fake->target, NVME_SC_INTERNAL, 0, 0);
    nvmf_target_set_time(fake->target, 1700000000000, fake->now_us);
    fake->now_us += 3000000;
    get_log(fake, admin, LOG_SMART, 0, 4); /* lets the target see the time */
    nvmf_target_log_error(fake->target, NVME_SC_INTERNAL, 0, 0);
    get_log(fake, admin, LOG_ERROR, 0, 128);
    assert_int_equal(fake->data[28], LOG_ERROR_TIMES);
    assert_int_equal(get_log(fake, admin, LOG_ERROR_TIMES, 0, 1024).status, 0);
    assert_int_equal(get_le64(fake->data), 2);
    assert_in_range(get_le64(fake->data + 8) - 0x0002000000000000,
                    1700000003000, 1700000003010);
    assert_int_equal(get_le64(fake->data + 16), 1);
    assert_in_range(get_le64(fake->data + 24), 0, 100); /* since reset */
    assert_int_equal(get_le64(fake->data + 32), 0);
}

/* The buffer in which pages are built holds what other commands, of other hosts
 * too, have put there. */
static void test_no_log_page_shows_old_content_of_its_buffer(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t old[16] = {0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a,
                             0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a};
    unsigned int pages = 0;

    for (uint32_t lid = 0; lid <= UINT8_MAX; lid++) {
        memset(fake->target->page, old[0], sizeof(fake->target->page));
        if (get_log(fake, admin, lid, 0, 8192).status != 0) {
            continue;
        }
        pages++;
        for (uint32_t at = 0; at < 8192; at += 4) {
            if (memcmp(fake->data + at, old, sizeof(old)) == 0) {
                fail_msg("Log page %02xh shows old content at %u.", lid, at);
            }
        }
    }
    assert_in_range(pages, 10, UINT8_MAX);
}

TEST_FIXTURE(fake_setup, fake_teardown)
