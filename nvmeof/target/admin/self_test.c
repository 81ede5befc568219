/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device Self-test: the command, its log page, and what aborts a test.  The
 * drive runs one test at a time (DSTO bit 0), which the owner of the operations
 * seam does.
 * Spec: NVM Express Base 1.4 sections 5.8, 5.14.1.6 and 8.11.
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/admin/admin.h"
#include "nvmeof/wire/log.h"

enum {
    STC_MASK = 0xf, /* of dword 10 */
    STC_ABORT = 0xf,
};

static enum nvmf_self_test_code self_test_running(
    const struct nvmf_target *target, struct nvmf_self_test *test)
{
    const struct nvmf_operations *operations = &target->config.operations;

    *test = (struct nvmf_self_test){.code = NVMF_SELF_TEST_NONE};
    if (self_test_exists(target)) {
        (void)operations->self_test_now(operations->ctx, test);
    }
    return test->code;
}

static void self_test_end(struct nvmf_target *target,
                          enum nvmf_self_test_end end)
{
    const struct nvmf_operations *operations = &target->config.operations;

    operations->end_self_test(operations->ctx, end);
}

/* ---- What aborts a test. */

/* A reset ends a short test of that controller; an extended one goes on. */
void self_test_ctrl_reset(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl)
{
    struct nvmf_self_test test;

    if (!ctrl->is_discovery && target->self_test_cntlid == ctrl->cntlid &&
        self_test_running(target, &test) == NVMF_SELF_TEST_SHORT) {
        self_test_end(target, NVMF_SELF_TEST_BY_RESET);
    }
}

/*
 * Format NVM of one namespace, or of all (FFFFFFFFh), begins.  A test of all
 * namespaces goes on when one of them is formatted.
 * Spec: Base 1.4 8.11, figure "Format NVM command Aborting a Device Self-Test"
 */
void self_test_formatting(struct nvmf_target *target, uint32_t nsid)
{
    struct nvmf_self_test test;

    if (self_test_running(target, &test) != NVMF_SELF_TEST_NONE &&
        test.nsid != 0 && (nsid == NVME_NSID_ALL || nsid == test.nsid)) {
        self_test_end(target, NVMF_SELF_TEST_BY_FORMAT);
    }
}

void self_test_sanitizing(struct nvmf_target *target)
{
    struct nvmf_self_test test;

    if (self_test_running(target, &test) != NVMF_SELF_TEST_NONE) {
        self_test_end(target, NVMF_SELF_TEST_BY_SANITIZE);
    }
}

void self_test_ns_removed(struct nvmf_target *target, uint32_t nsid)
{
    struct nvmf_self_test test;

    if (self_test_running(target, &test) != NVMF_SELF_TEST_NONE &&
        test.nsid == nsid) {
        self_test_end(target, NVMF_SELF_TEST_NS_REMOVED);
    }
}

/* ---- The command. */

static uint16_t check_nsid(struct nvmf_target *target, struct nvmf_request *req)
{
    uint32_t nsid = req->sqe.nsid;

    if (nsid == 0 || nsid == NVME_NSID_ALL) {
        return NVME_SC_SUCCESS;
    }
    if (nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    if (!ns_is_active(request_ctrl(target, req), nsid)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    return NVME_SC_SUCCESS;
}

uint16_t self_test_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint32_t stc = req->sqe.cdw10 & STC_MASK;

    if (!self_test_exists(target)) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_OPCODE, 0);
    }
    if (stc == STC_ABORT) {
        return NVME_SC_SUCCESS; /* the test in progress, whatever it reads */
    }
    if (stc != NVMF_SELF_TEST_SHORT && stc != NVMF_SELF_TEST_EXTENDED) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    return check_nsid(target, req);
}

uint16_t self_test_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_operations *operations = &target->config.operations;
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint32_t stc = req->sqe.cdw10 & STC_MASK;
    uint32_t nsid = req->sqe.nsid;
    struct nvmf_self_test test;

    if (self_test_running(target, &test) != NVMF_SELF_TEST_NONE) {
        if (stc != STC_ABORT) {
            return NVME_SC_SELF_TEST_IN_PROGRESS; /* the host may try again */
        }
        self_test_end(target, NVMF_SELF_TEST_BY_COMMAND);
        return NVME_SC_SUCCESS;
    }
    if (stc == STC_ABORT) {
        return NVME_SC_SUCCESS; /* there is nothing to abort */
    }
    test = (struct nvmf_self_test){.code = (enum nvmf_self_test_code)stc,
                                   .nsid = nsid};
    if (nsid == NVME_NSID_ALL) {
        memcpy(test.namespaces, ctrl->active_ns, sizeof(test.namespaces));
    } else if (nsid != 0) {
        test.namespaces[(nsid - 1) / 32] = BIT((nsid - 1) % 32);
    }
    target->self_test_cntlid = ctrl->cntlid;
    operations->start_self_test(operations->ctx, &test);
    return NVME_SC_SUCCESS;
}

/* ---- The log page. */

static void emit_result(uint8_t *entry,
                        const struct nvmf_self_test_result *result)
{
    entry[SELF_TEST_RESULT_STATUS] = (uint8_t)(result->code << 4 | result->end);
    entry[SELF_TEST_RESULT_SEGMENT] = result->segment;
    put_le64(entry + SELF_TEST_RESULT_HOURS, result->power_on_hours);
    if (result->has_lba) {
        entry[SELF_TEST_RESULT_VALID] |=
            SELF_TEST_VALID_NSID | SELF_TEST_VALID_LBA;
        put_le32(entry + SELF_TEST_RESULT_NSID, result->nsid);
        put_le64(entry + SELF_TEST_RESULT_LBA, result->lba);
    }
    if (result->has_status) {
        entry[SELF_TEST_RESULT_VALID] |=
            SELF_TEST_VALID_SCT | SELF_TEST_VALID_SC;
        entry[SELF_TEST_RESULT_SCT] = (uint8_t)(result->status >> 8 & 7);
        entry[SELF_TEST_RESULT_SC] = (uint8_t)result->status;
    }
}

void log_build_self_test(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part)
{
    const struct nvmf_operations *operations = &target->config.operations;
    struct nvmf_self_test_result result;
    struct nvmf_self_test test;
    uint8_t *page = target->page;
    uint8_t percent = operations->self_test_now(operations->ctx, &test);

    (void)ctrl;
    (void)part;
    memset(page, 0, LOG_SELF_TEST_LEN);
    page[SELF_TEST_CURRENT] = (uint8_t)test.code;
    page[SELF_TEST_PERCENT] = test.code != NVMF_SELF_TEST_NONE ? percent : 0;
    for (unsigned int i = 0; i < NVMF_SELF_TEST_RESULTS; i++) {
        uint8_t *entry = page + SELF_TEST_RESULTS + i * SELF_TEST_RESULT_LEN;

        if (operations->self_test_result(operations->ctx, i, &result)) {
            emit_result(entry, &result);
        } else {
            entry[SELF_TEST_RESULT_STATUS] = NVMF_SELF_TEST_UNUSED;
        }
    }
}
