/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_lib.h"

#include "lib/bytes.h"

uint64_t cm_short_timeout_us(const struct conf *conf)
{
    return (uint64_t)CM_SHORT_TIMEOUT_US << conf_patience(conf);
}

struct cm_bent *cm_bent_new(struct conf *conf, const struct rc_config *config)
{
    struct cm_bent *bent = conf_alloc(conf, sizeof(*bent));

    bent->rc = rc_new(conf, config);
    rc_make_req(bent->rc, &bent->req, bent->private_data);
    bent->nvme = bent->private_data + RDMA_IP_CM_LEN;
    return bent;
}

void cm_expect_rej(struct cm_bent *bent, uint16_t reason, struct cm_rej *rej)
{
    struct conf *conf = bent->rc->conf;

    rc_send_req(bent->rc, &bent->req);
    rc_take_rej(bent->rc, rej);
    conf_equal(conf, "REJ reason", rej->reason, reason);
    conf_equal(conf, "message rejected (0: REQ)", rej->message, CM_ANSWERS_REQ);
    conf_equal(conf, "remote communication id", rej->remote_comm_id,
               bent->req.local_comm_id);
}

void cm_check_nvme_rej(struct cm_bent *bent, const struct cm_rej *rej,
                       enum nvme_rdma_status status)
{
    uint16_t got;

    conf_equal(bent->rc->conf, "reason of the REJ", rej->reason,
               CM_REJ_CONSUMER);
    conf_check(
        bent->rc->conf,
        nvme_rdma_rej_parse(&got, rej->private_data, rej->private_len),
        "the REJ's private data is not that of NVMe: its record format is %u",
        get_le16(rej->private_data));
    conf_equal(bent->rc->conf, "NVMe status in the REJ", got, status);
}

void cm_expect_nvme_rej(struct cm_bent *bent, enum nvme_rdma_status status)
{
    struct cm_rej rej;

    cm_expect_rej(bent, CM_REJ_CONSUMER, &rej);
    cm_check_nvme_rej(bent, &rej, status);
}

void cm_expect_accepted(struct cm_bent *bent)
{
    rc_send_req(bent->rc, &bent->req);
    rc_take_rep(bent->rc);
    rc_send_rtu(bent->rc);
    rc_close(bent->rc);
}
