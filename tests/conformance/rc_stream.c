/* SPDX-License-Identifier: BSD-2-Clause */
#include "rc_stream.h"

#include "internal.h"

enum { SLICE_US = 1000 };

void rc_stream_open(struct rc_stream *conn, struct rc *rc)
{
    struct conf *conf = rc->conf;

    conn->rc = rc;
    conn->stream.peer.conf = conf;
    stream_open(&conn->stream, rc->config.peer, rc->config.port,
                rc->config.is_v6, nvme_tcp_own_port(conf, conf->num_rcs),
                STREAM_PORT);
}

void rc_stream_serve(struct rc_stream *conn, const struct rc_over_ops *ops)
{
    struct conf *conf = conn->rc->conf;

    conn->next = conf->streams;
    conf->streams = conn;
    conn->rc->over = conn;
    conn->rc->over_ops = ops;
}

/* A test that does not want its data moved has cleared `answers`. */
static void conn_serve(struct rc_stream *conn)
{
    while (conn->rc->answers && !conn->stream.is_reset) {
        conn->take(conn);
        if (!stream_poll(&conn->stream, 1)) {
            break;
        }
    }
}

bool rc_stream_wait(struct rc *rc, uint64_t timeout_us)
{
    uint64_t since_us = conf_now_us(rc->conf);

    while (rc->get == rc->put) {
        for (struct rc_stream *conn = rc->conf->streams; conn != NULL;
             conn = conn->next) {
            conn_serve(conn);
        }
        if (rc->get != rc->put) {
            break;
        }
        if (conf_now_us(rc->conf) - since_us >= timeout_us) {
            return false;
        }
        conf_pass(rc->conf, SLICE_US);
    }
    return true;
}

void rc_stream_close(struct rc *rc)
{
    struct rc_stream *conn = rc->over;

    stream_send_flags(&conn->stream, SEG_FIN | SEG_ACK);
    while (!conn->stream.is_finished && !conn->stream.is_reset) {
        (void)stream_poll(&conn->stream, 0);
    }
}
