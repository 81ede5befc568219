/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: discovery, identity, refusals, limits, connecting and
 * disconnecting. */
#include "bed_fixture.h"

#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/identify.h"
#include "tests/test_fixture.h"

static void test_discovery_lists_every_address(void **state)
{
    static const char *const traddr[] = {"10.0.0.1", "10.0.1.1",
                                         "fd00:0:0:1::1", "fd00:0:0:2::1"};
    struct nvme_host *host = &bed.host->host;
    uint8_t header[DISCOVERY_HEADER_LEN], entry[DISCOVERY_ENTRY_LEN];
    struct host_target target;
    unsigned int found = 0;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    strcpy(target.subnqn, NVME_DISCOVERY_NQN);
    target.io_queues = 0;
    assert_int_equal(host_connect(host, &target), 0);
    assert_int_equal(
        host_get_log(host, LOG_DISCOVERY, 0, header, sizeof(header)), 0);
    for (uint64_t i = 0; i < get_le64(header + DISCOVERY_NUMREC); i++) {
        assert_int_equal(
            host_get_log(host, LOG_DISCOVERY,
                         DISCOVERY_HEADER_LEN + i * DISCOVERY_ENTRY_LEN, entry,
                         sizeof(entry)),
            0);
        if (entry[DISCOVERY_SUBTYPE] != SUBTYPE_NVM) {
            continue;
        }
        assert_string_equal((const char *)entry + DISCOVERY_TRADDR,
                            traddr[found]);
        assert_int_equal(entry[DISCOVERY_ADRFAM], found < 2 ? 1 : 2);
        assert_int_equal(get_le16(entry + DISCOVERY_PORTID), found % 2 + 1);
        assert_string_equal((const char *)entry + DISCOVERY_TRSVCID, "4420");
        assert_string_equal((const char *)entry + DISCOVERY_SUBNQN,
                            bed.drive->identity.subsystem_nqn);
        found++;
    }
    assert_int_equal(found, ARRAY_LEN(traddr));
    host_disconnect(host);
    bed_expect_idle(&bed);
}

static void test_identify_returns_the_configured_identity(void **state)
{
    struct nvme_host *host = &bed.host->host;
    uint8_t id[NVME_IDENTIFY_LEN];

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(host_identify(host, CNS_CONTROLLER, 0, id), 0);
    assert_int_equal(get_le16(id + ID_CTRL_VID), 0x1b36);
    assert_int_equal(get_le16(id + ID_CTRL_SSVID), 0x1b36);
    assert_memory_equal(id + ID_CTRL_SN, "NATIVE0001          ", 20);
    assert_int_equal(get_le16(id + ID_CTRL_CNTLID), host->cntlid);
    assert_string_equal((const char *)id + ID_CTRL_SUBNQN,
                        bed.drive->identity.subsystem_nqn);
    assert_int_equal(host_identify(host, CNS_NAMESPACE, BED_NSID, id), 0);
    assert_int_equal(get_le64(id + ID_NS_NSZE), BED_MEDIUM_BYTES / BED_BLOCK);
    assert_int_equal(host_keep_alive(host), 0);
    host_disconnect(host);
    bed_expect_idle(&bed);
}

static void test_the_admin_queue_supports_invalidate(void **state)
{
    struct nvme_host *host = &bed.host->host;
    struct host_target target;
    uint8_t id[NVME_IDENTIFY_LEN];

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.invalidates = true;
    assert_int_equal(host_connect(host, &target), 0);
    assert_int_equal(host_identify(host, CNS_CONTROLLER, 0, id), 0);
    host_disconnect(host);
    bed_expect_idle(&bed);
}

static void expect_refused(const struct nvme_rdma_req *req, uint16_t status)
{
    struct nvme_host *host = &bed.host->host;

    assert_false(host_open_queue(host, 0, req));
    assert_int_equal(host->conn[0].state, HOST_CONN_REFUSED);
    assert_int_equal(host->conn[0].reject_reason, CM_REJ_CONSUMER);
    assert_int_equal(host->conn[0].reject_status, status);
    host_vanish(host);
    bed_expect_idle(&bed);
}

static void test_a_bad_request_is_refused_with_its_status(void **state)
{
    struct nvme_host *host = &bed.host->host;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &host->target));
    expect_refused(&(struct nvme_rdma_req){.hrqsize = 32, .hsqsize = 32},
                   NVME_RDMA_INVALID_HSQSIZE);
    expect_refused(&(struct nvme_rdma_req){.hrqsize = 0, .hsqsize = 31},
                   NVME_RDMA_INVALID_HRQSIZE);
    expect_refused(
        &(struct nvme_rdma_req){.qid = 999, .hrqsize = 32, .hsqsize = 31},
        NVME_RDMA_INVALID_QID);
    expect_refused(
        &(struct nvme_rdma_req){
            .qid = 1, .hrqsize = 32, .hsqsize = 31, .cntlid = 0x1234},
        NVME_RDMA_INVALID_CNTLID);
}

static void test_an_unknown_service_is_refused_at_once(void **state)
{
    struct nvme_host *host = &bed.host->host;
    struct nvme_rdma_req req = {.hrqsize = 32, .hsqsize = 31};
    uint64_t start_ns = bed.world.now_ns;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &host->target));
    host->target.service_port = 4421;
    assert_false(host_open_queue(host, 0, &req));
    assert_int_equal(host->conn[0].reject_reason, CM_REJ_INVALID_SERVICE_ID);
    assert_true(bed.world.now_ns - start_ns < 100000000);
    host_vanish(host);
}

static void test_a_wrong_subsystem_is_refused(void **state)
{
    struct nvme_host *host = &bed.host->host;
    struct host_target target;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    strcpy(target.subnqn, "nqn.2026-01.net.example:another");
    assert_int_equal(host_connect(host, &target) & NVME_SC_MASK,
                     NVME_SC_CONNECT_INVALID);
    host_disconnect(host);
    bed_expect_idle(&bed);
}

static void test_a_host_connects_two_hundred_times(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 200; i++) {
        uint8_t local = (uint8_t)(i % 4);

        bed_connect(&bed, local, (uint16_t)(1 + i % 3), 64);
        assert_int_equal(bed_write(&bed, 1, i, 1, HOST_DATA_KEYED, false, i),
                         0);
        bed_expect(&bed, 1, i, 1, HOST_DATA_KEYED, i);
        host_disconnect(&bed.host->host);
        bed_expect_idle(&bed);
    }
}

static void test_a_host_that_vanishes_frees_everything(void **state)
{
    struct nvme_host *host = &bed.host->host;
    struct host_target target;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.kato_ms = 5000;
    target.io_queues = 2;
    assert_int_equal(host_connect(host, &target), 0);
    /* Pull the cable first, so that no DREQ arrives. */
    bed.cables[0].is_cut = true;
    host_vanish(host);
    native_world_pass(&bed.world, UINT64_C(120000000000));
    bed_expect_idle(&bed);
    bed.cables[0].is_cut = false;
    bed_connect(&bed, 0, 2, 64);
    host_disconnect(host);
    bed_expect_idle(&bed);
}

/*
 * The host still has two associations with the drive as it was before the
 * reset: no new number may be one of theirs.
 */
static void test_a_host_connects_within_a_second_after_a_reset(void **state)
{
    struct nvme_host second, third;
    uint64_t start_ns;
    uint8_t id[NVME_IDENTIFY_LEN];

    (void)state;
    bed_connect(&bed, 0, 2, 64);
    bed_connect_more(&bed, &second, 1, 2, 0);
    assert_int_equal(bed_write(&bed, 1, 5, 1, HOST_DATA_KEYED, true, 3), 0);
    bed_power_cycle(&bed);
    start_ns = bed.world.now_ns;
    bed_connect_more(&bed, &third, 1, 2, 0);
    assert_true(bed.world.now_ns - start_ns < 1000000000);
    assert_int_equal(host_identify(&third, CNS_CONTROLLER, 0, id), 0);
    /* The old associations end without further messages. */
    host_disconnect(&bed.host->host);
    host_disconnect(&second);
    assert_int_equal(host_identify(&third, CNS_CONTROLLER, 0, id), 0);
    host_disconnect(&third);
    bed_expect_idle(&bed);
    bed_connect(&bed, 0, 1, 64);
    bed_expect(&bed, 1, 5, 1, HOST_DATA_KEYED, 3);
    host_disconnect(&bed.host->host);
}

static void test_a_queue_without_a_connect_command_is_ended(void **state)
{
    struct nvme_host *host = &bed.host->host;
    struct nvme_rdma_req req = {.hrqsize = 32, .hsqsize = 31};

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &host->target));
    assert_true(host_open_queue(host, 0, &req));
    native_world_pass(&bed.world, UINT64_C(20000000000));
    assert_int_equal(host->conn[0].state, HOST_CONN_LIVE);
    native_world_pass(&bed.world, UINT64_C(40000000000));
    assert_int_equal(host->conn[0].state, HOST_CONN_ENDED);
    host_vanish(host);
    bed_expect_idle(&bed);
}

static void test_an_association_without_keep_alive_ends(void **state)
{
    struct nvme_host *host = &bed.host->host;
    struct host_target target;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.kato_ms = 5000;
    target.io_queues = 2;
    assert_int_equal(host_connect(host, &target), 0);
    for (unsigned int i = 0; i < 10; i++) {
        native_world_pass(&bed.world, UINT64_C(4000000000));
        assert_int_equal(host_keep_alive(host), 0);
    }
    native_world_pass(&bed.world, UINT64_C(20000000000));
    assert_true(host_is_broken(host));
    host_vanish(host);
    bed_expect_idle(&bed);
}

/*
 * A computer that stops everything for longer than the host's time-out: the
 * host was not silent, because nobody could hear it.
 */
static void test_a_pause_of_the_computer_ends_no_association(void **state)
{
    const uint64_t pauses_ns[] = {UINT64_C(300000000), UINT64_C(3000000000),
                                  UINT64_C(30000000000)};
    struct nvme_host *host = &bed.host->host;
    struct host_target target;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.kato_ms = 5000;
    target.io_queues = 2;
    assert_int_equal(host_connect(host, &target), 0);
    for (unsigned int i = 0; i < 10 * ARRAY_LEN(pauses_ns); i++) {
        native_world_stop(&bed.world, pauses_ns[i % ARRAY_LEN(pauses_ns)]);
        native_world_pass(&bed.world, UINT64_C(3500000000));
        assert_false(host_is_broken(host));
        assert_int_equal(host_keep_alive(host), 0);
        assert_int_equal(bed_write(&bed, 1, i, 1, HOST_DATA_KEYED, false, i),
                         0);
    }
    /* Silence counts as before. */
    native_world_pass(&bed.world, UINT64_C(20000000000));
    assert_true(host_is_broken(host));
    host_vanish(host);
    bed_expect_idle(&bed);
}

/* The clock of the drive goes on, also if no time server corrects it. */
static void test_the_clock_goes_on_in_a_pause_of_the_computer(void **state)
{
    struct nvmf_target *target = bed.drive->drive.target;
    const uint64_t set_ms = UINT64_C(1700000000000);
    uint64_t start_ns = bed.world.now_ns;
    uint64_t ms;

    (void)state;
    nvmf_target_set_time(target, set_ms, bed.drive->drive.now_us);
    for (unsigned int i = 0; i < 20; i++) {
        native_world_stop(&bed.world, UINT64_C(30000000000));
        native_world_pass(&bed.world, UINT64_C(1000000000));
    }
    assert_true(nvmf_target_time(target, &ms));
    assert_in_range(ms - set_ms, (bed.world.now_ns - start_ns) / 1000000 - 1000,
                    (bed.world.now_ns - start_ns) / 1000000 + 1000);
}

TEST_FIXTURE(setup, teardown)
