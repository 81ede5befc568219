/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that takes its time: it sends commands up to its queue's depth, and
 * acknowledges nothing for a while.
 * Spec: IBTA Vol 1 9.7.5.1 (acknowledgements, retries); NVMe over Fabrics 1.1
 * 2.2 (one response for each command).
 */
#include "nvmf_lib.h"

enum {
    DEPTH = 4,
    ROUNDS =
        2, /* a command's entry is free with its response, unacknowledged */
    BLOCKS = 8,
    BLOCK = 512,
    READ_LEN = BLOCKS * BLOCK,
    PAUSE_US = 20000, /* below any acknowledgement timeout of ours */
};

static void slow_to_acknowledge(struct conf *conf)
{
    struct nvmf_pair pair =
        nvmf_open_pair(conf, &(struct rc_config){.hsqsize = DEPTH - 1});
    struct nvme_sqe read = nvmf_io(conf, NVM_READ, 0, BLOCKS);
    bool is_answered[ROUNDS * DEPTH] = {0};
    uint16_t first = 0;

    conf_note(conf, "nothing is acknowledged");
    pair.io->answers = false;
    for (unsigned int i = 0; i < ROUNDS * DEPTH; i++) {
        struct sgl sgl = rc_keyed(pair.io, i * READ_LEN, READ_LEN);
        uint16_t cid = rc_send_capsule(pair.io, &read, &sgl, NULL, 0);

        first = i == 0 ? cid : first;
        if (i % DEPTH == DEPTH - 1) {
            conf_pass(conf, PAUSE_US);
        }
    }
    conf_note(conf, "everything is");
    pair.io->answers = true;
    for (unsigned int i = 0; i < ROUNDS * DEPTH; i++) {
        const struct rc_message *message =
            rc_take_message(pair.io, "a response");
        struct nvme_cqe cqe;
        unsigned int index;

        nvme_cqe_parse(&cqe, message->data);
        index = (uint16_t)(cqe.cid - first);
        conf_status(conf, "Read", cqe.status, NVME_SC_SUCCESS);
        conf_check(conf, index < ROUNDS * DEPTH && !is_answered[index],
                   "CID %04xh is answered twice, or was never sent", cqe.cid);
        is_answered[index] = true;
    }
    conf_check(conf, rc_take_message_within(pair.io, PAUSE_US) == NULL,
               "a response too many");
    nvmf_close_pair(&pair);
    conf_expect_alive(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("host.slow-acks", "IBTA Vol 1 9.7.5.1; NVMe-oF 1.1 2.2",
              "two queues' worth unacknowledged: each is answered once",
              slow_to_acknowledge),
};

CONF_TESTS(conf_tests_robust_more, "robust", tests);
