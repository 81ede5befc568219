/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_lib.h"

#include "lib/bytes.h"

uint64_t cm_short_timeout_us(const struct conf *conf)
{
    return (uint64_t)CM_SHORT_TIMEOUT_US << conf_patience(conf);
}

struct cm_attempt *cm_attempt_new(struct conf *conf,
                                  const struct rc_config *config)
{
    struct cm_attempt *attempt = conf_alloc(conf, sizeof(*attempt));

    attempt->rc = rc_new(conf, config);
    rc_make_req(attempt->rc, &attempt->req, attempt->private_data);
    attempt->nvme = attempt->private_data + RDMA_IP_CM_LEN;
    return attempt;
}

void cm_expect_rej(struct cm_attempt *attempt, uint16_t reason,
                   struct cm_rej *rej)
{
    struct conf *conf = attempt->rc->conf;

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rej(attempt->rc, rej);
    conf_equal(conf, "REJ reason", rej->reason, reason);
    conf_equal(conf, "message rejected (0: REQ)", rej->message, CM_ANSWERS_REQ);
    conf_equal(conf, "remote communication id", rej->remote_comm_id,
               attempt->req.local_comm_id);
}

void cm_check_nvme_rej(struct cm_attempt *attempt, const struct cm_rej *rej,
                       enum nvme_rdma_status status)
{
    uint16_t got;

    conf_equal(attempt->rc->conf, "reason of the REJ", rej->reason,
               CM_REJ_CONSUMER);
    conf_check(
        attempt->rc->conf,
        nvme_rdma_rej_parse(&got, rej->private_data, rej->private_len),
        "the REJ's private data is not that of NVMe: its record format is %u",
        get_le16(rej->private_data));
    conf_equal(attempt->rc->conf, "NVMe status in the REJ", got, status);
}

void cm_expect_nvme_rej(struct cm_attempt *attempt,
                        enum nvme_rdma_status status)
{
    struct cm_rej rej;

    cm_expect_rej(attempt, CM_REJ_CONSUMER, &rej);
    cm_check_nvme_rej(attempt, &rej, status);
}

void cm_expect_accepted(struct cm_attempt *attempt)
{
    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    rc_send_rtu(attempt->rc);
    rc_close(attempt->rc);
}
