/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receiver on one port that takes no frames: the cable pushes back, and the
 * link stays up. Frames that wait for that port must not block the other port,
 * and the hosts' buffers are released.
 */
#include "bed_fixture.h"

#include <stdlib.h>

#include "hw-model/regs/port.h"
#include "tests/test_fixture.h"

#define MS_NS UINT64_C(1000000)
#define S_NS  (1000 * MS_NS)

enum {
    HOSTS = 40,
    BUSY_HOSTS = 6,
    COMMANDS = 63,
    BLOCKS = 128 * 1024 / BED_BLOCK,
    KATO_MS = 8000,
    TIMEOUT_MS = 2000, /* PORT_TX_TIMEOUT after a reset. */
    RETRIES_MS = 1000, /* Eight ACK time-outs of 67 ms are half of it. */
};

static void let_pass(uint64_t ns)
{
    bed.host->sleep.is_asleep = false;
    native_world_pass(&bed.world, ns);
}

static uint32_t buf_bytes(void)
{
    return buf_pool_used_bytes(bed.drive->drive.bufs);
}

static unsigned int cm_buffers(void)
{
    return (unsigned int)(CM_SEND_BUFFERS -
                          bed.drive->drive.net.cm.send_free_count);
}

static uint64_t port_count(unsigned int port, enum port_counter counter)
{
    return bed.drive->machine.ports[port].counters[counter];
}

static void ignore_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
}

static void submit_commands(struct nvme_host *host, uint8_t opcode)
{
    for (uint32_t i = 0; i < COMMANDS; i++) {
        const struct host_io io = {
            .qid = 1,
            .opcode = opcode,
            .kind = HOST_DATA_KEYED,
            .nsid = BED_NSID,
            .lba = (uint64_t)i * BLOCKS,
            .blocks = BLOCKS,
            .offset = i * BLOCKS * BED_BLOCK,
            .len_bytes = BLOCKS * BED_BLOCK,
            .done = ignore_result,
        };

        assert_true(host_io_submit(host, &io));
    }
    verbs_flush(&bed.host->net.verbs);
}

/* Connect 40 associations on port 0, six of them with many commands
 * outstanding; then stall the port. */
static struct nvme_host *stall_port_0(void)
{
    struct nvme_host *hosts = calloc(HOSTS, sizeof(*hosts));

    bed_prepare_deafness(&bed, 0);
    for (unsigned int i = 0; i < HOSTS; i++) {
        bed_connect_more(&bed, &hosts[i], 0, i < BUSY_HOSTS ? 1 : 0, KATO_MS);
    }
    bed.cables[0].lane[0].is_held = true;
    for (unsigned int i = 0; i < BUSY_HOSTS; i++) {
        submit_commands(&hosts[i], i % 2 == 0 ? NVM_READ : NVM_WRITE);
    }
    let_pass(100 * MS_NS);
    /* The fair shares of the six hosts. */
    assert_true(buf_bytes() > 20 * 1000 * 1000);
    bed.host_is_deaf = true;
    return hosts;
}

static void expect_connects_on_port_1(void)
{
    struct nvme_host *other = calloc(1, sizeof(*other));
    uint64_t start_ns = bed.world.now_ns;

    bed_connect_more(&bed, other, 1, 0, KATO_MS);
    assert_true(bed.world.now_ns - start_ns < 100 * MS_NS);
    host_disconnect(other);
    free(other);
}

static void test_a_stalled_port_does_not_stop_connections_on_the_other(
    void **state)
{
    struct nvme_host *hosts = stall_port_0();
    unsigned int most_buffers = 0;
    uint64_t start_ns = bed.world.now_ns;

    (void)state;
    bed_provokes(&bed, BED_GONE);
    for (unsigned int i = 0; i < 20; i++) {
        let_pass(S_NS);
        expect_connects_on_port_1();
        most_buffers = MAX(most_buffers, cm_buffers());
        if (bed.world.now_ns - start_ns > (TIMEOUT_MS + RETRIES_MS) * MS_NS) {
            /* Long before Keep Alive expires. */
            assert_int_equal(buf_bytes(), 0);
        }
    }
    assert_true(most_buffers <= HOSTS + BUSY_HOSTS);
    assert_int_equal(cm_buffers(), 0);
    assert_true(port_count(0, PORT_COUNT_TX_DROPPED_TIMEOUT) > 1000);
    assert_int_equal(port_count(1, PORT_COUNT_TX_DROPPED_TIMEOUT), 0);
    assert_true(bed.drive->machine.ports[0].link_up);
    /* The receiver accepts frames again, and the hosts come back. */
    bed.cables[0].lane[0].is_held = false;
    bed.host_is_deaf = false;
    for (unsigned int i = 0; i < HOSTS; i++) {
        host_vanish(&hosts[i]);
    }
    let_pass(60 * S_NS);
    bed_expect_idle(&bed);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 0, 8, HOST_DATA_KEYED, 1);
    host_disconnect(&bed.host->host);
    free(hosts);
}

TEST_FIXTURE(setup, teardown)
