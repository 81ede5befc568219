/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmf_lib.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/discovery.h"

enum { TRIES = 200, PAUSE_US = 10000 };

struct nvmf_attempt *nvmf_attempt_new(struct conf *conf,
                                      const struct rc_config *config)
{
    struct nvmf_attempt *attempt = conf_alloc(conf, sizeof(*attempt));

    attempt->rc = rc_open(conf, config);
    rc_make_connect(attempt->rc, &attempt->command, &attempt->data);
    attempt->sgl = rc_keyed(attempt->rc, 0, CONNECT_DATA_LEN);
    return attempt;
}

uint16_t nvmf_attempt_run(struct nvmf_attempt *attempt, struct nvme_cqe *cqe)
{
    struct nvme_sqe sqe = {0};

    connect_data_emit(attempt->rc->mem, &attempt->data);
    connect_command_build(&sqe, &attempt->command);
    sqe.cdw10 |= attempt->command.recfmt;
    return rc_command(attempt->rc, &sqe, &attempt->sgl, NULL, 0, cqe);
}

void nvmf_expect_invalid(struct nvmf_attempt *attempt, uint32_t field)
{
    struct nvme_cqe cqe;

    conf_status(attempt->rc->conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_CONNECT_INVALID);
    conf_equal(attempt->rc->conf, "IATTR and IPO: the offending byte",
               cqe.dw0 & 0x1ffff, field);
    rc_close(attempt->rc);
}

struct nvmf_attempt *nvmf_attempt_io(struct rc *admin, uint16_t qid)
{
    struct rc_config config = admin->config;

    config.qid = qid;
    return nvmf_attempt_new(admin->conf, &config);
}

uint16_t nvmf_get(struct rc *rc, uint32_t offset, uint8_t size_bytes,
                  uint64_t *value)
{
    struct property_command get = {.size_bytes = size_bytes, .offset = offset};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_GET};
    struct nvme_cqe cqe;
    uint16_t status;

    property_command_build(&sqe, &get);
    status = rc_command(rc, &sqe, NULL, NULL, 0, &cqe);
    *value = (uint64_t)cqe.dw1 << 32 | cqe.dw0;
    return status;
}

uint16_t nvmf_set(struct rc *rc, uint32_t offset, uint8_t size_bytes,
                  uint64_t value)
{
    struct property_command set = {
        .size_bytes = size_bytes, .offset = offset, .value = value};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_SET};

    property_command_build(&sqe, &set);
    return rc_command(rc, &sqe, NULL, NULL, 0, NULL);
}

void nvmf_wait_csts(struct rc *rc, uint32_t mask, uint32_t value)
{
    uint64_t csts = 0;

    for (unsigned int i = 0; i < TRIES; i++) {
        conf_status(rc->conf, "Property Get CSTS",
                    nvmf_get(rc, PROPERTY_CSTS, 4, &csts), NVME_SC_SUCCESS);
        if ((csts & mask) == value) {
            return;
        }
        conf_pass(rc->conf, PAUSE_US);
    }
    conf_fail(rc->conf, "CSTS is %08x; its bits %08x should be %08x",
              (unsigned int)csts, mask, value);
}

uint16_t nvmf_keep_alive(struct rc *rc)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_KEEP_ALIVE};

    return rc_command(rc, &sqe, NULL, NULL, 0, NULL);
}

void nvmf_expect_works(struct rc *rc)
{
    uint64_t vs;

    conf_status(rc->conf, "Property Get VS", nvmf_get(rc, PROPERTY_VS, 4, &vs),
                NVME_SC_SUCCESS);
}

bool nvmf_pass_in_time(struct conf *conf, uint64_t us, uint64_t since_us,
                       uint32_t kato_ms)
{
    conf_pass_only(conf, us);
    return conf_now_us(conf) - since_us < kato_ms * UINT64_C(1000);
}

void nvmf_expect_gone(struct rc *rc)
{
    rc->answers = false;
    conf_flush(rc->conf);
    rc_send(rc, RC_SEND_ONLY, NULL, 64, true);
    rc_expect_silence(rc, NVMF_QUIET_US);
}

struct nvme_sqe nvmf_io(struct conf *conf, uint8_t opcode, uint64_t lba,
                        uint16_t blocks)
{
    if (opcode != NVM_FLUSH) {
        conf_needs_block(conf);
    }
    return (struct nvme_sqe){
        .opcode = opcode,
        .nsid = conf_target(conf)->nsid,
        .cdw10 = (uint32_t)lba,
        .cdw11 = (uint32_t)(lba >> 32),
        .cdw12 = blocks - 1u,
    };
}

/* ---- Discovery. */

void nvmf_attempt_to_discovery(struct nvmf_attempt *attempt)
{
    memset(attempt->data.subnqn, 0, sizeof(attempt->data.subnqn));
    strcpy(attempt->data.subnqn, NVME_DISCOVERY_NQN);
}

struct rc *nvmf_connect_discovery(struct conf *conf,
                                  const struct rc_config *config)
{
    struct nvmf_attempt *attempt = nvmf_attempt_new(conf, config);
    struct nvme_cqe cqe;

    nvmf_attempt_to_discovery(attempt);
    conf_status(conf, "Connect to the discovery subsystem",
                nvmf_attempt_run(attempt, &cqe), NVME_SC_SUCCESS);
    attempt->rc->config.cntlid = (uint16_t)cqe.dw0;
    return attempt->rc;
}

struct rc *nvmf_open_discovery(struct conf *conf,
                               const struct rc_config *config)
{
    struct rc *rc = nvmf_connect_discovery(conf, config);

    conf_status(conf, "Property Set CC",
                nvmf_set(rc, PROPERTY_CC, 4, NVMF_CC_ENABLE), NVME_SC_SUCCESS);
    nvmf_wait_csts(rc, CSTS_RDY, CSTS_RDY);
    return rc;
}

uint16_t nvmf_read_discovery_log(struct rc *rc, uint64_t offset,
                                 uint32_t len_bytes)
{
    struct nvme_sqe get = {
        .opcode = ADMIN_GET_LOG_PAGE,
        .cdw10 = LOG_DISCOVERY | ((len_bytes / 4 - 1) & 0xffff) << 16,
        .cdw11 = (len_bytes / 4 - 1) >> 16,
        .cdw12 = (uint32_t)offset,
        .cdw13 = (uint32_t)(offset >> 32),
    };
    struct sgl sgl = rc_keyed(rc, 0, len_bytes);

    return rc_command(rc, &get, &sgl, NULL, 0, NULL);
}

uint64_t nvmf_discovery_log(struct rc *rc)
{
    uint64_t records;

    conf_status(rc->conf, "Get Log Page (discovery)",
                nvmf_read_discovery_log(rc, 0, DISCOVERY_HEADER_LEN),
                NVME_SC_SUCCESS);
    records = get_le64(rc->mem + DISCOVERY_NUMREC);
    conf_check(rc->conf, records <= NVMF_RECORDS_MAX, "NUMREC %llu",
               (unsigned long long)records);
    conf_status(
        rc->conf, "Get Log Page (discovery)",
        nvmf_read_discovery_log(
            rc, 0,
            (uint32_t)(DISCOVERY_HEADER_LEN + records * DISCOVERY_ENTRY_LEN)),
        NVME_SC_SUCCESS);
    return records;
}

const uint8_t *nvmf_record(const struct rc *rc, uint64_t i)
{
    return rc->mem + DISCOVERY_HEADER_LEN + i * DISCOVERY_ENTRY_LEN;
}

struct nvmf_pair nvmf_open_pair(struct conf *conf,
                                const struct rc_config *config)
{
    struct nvmf_pair pair;
    struct rc_config io = *config;

    pair.admin =
        rc_open_controller(conf, &(struct rc_config){.port = config->port,
                                                     .peer = config->peer,
                                                     .host = config->host,
                                                     .is_v6 = config->is_v6});
    io.qid = 1;
    io.cntlid = pair.admin->config.cntlid;
    pair.io = rc_open_nvme(conf, &io);
    return pair;
}

void nvmf_close_pair(struct nvmf_pair *pair)
{
    rc_close(pair->io);
    rc_close(pair->admin);
}
