/* SPDX-License-Identifier: BSD-2-Clause */
#include "tls_lib.h"

#include <stdio.h>
#include <string.h>

enum { IC_LEN = 128, LINE = 256 };

void tls_console(struct conf *conf, const char *line)
{
    const char *said = conf_console(conf, line);

    conf_check(conf, strstr(said, "error") == NULL, "%s: %s", line, said);
}

void tls_begin(struct conf *conf, const char *setting, const char *key)
{
    char line[LINE];

    if (!conf_target(conf)->is_virtual) {
        conf_not_applicable(conf, "the test changes nvme.tls: run natively");
    }
    snprintf(line, sizeof(line), "config set nvme.tls %s", setting);
    tls_console(conf, line);
    tls_console(conf, "config save");
    conf_reset(conf);
    if (key != NULL) {
        tls_console(conf, "host add " TLS_PEER_HOST);
        snprintf(line, sizeof(line), "host tls-key " TLS_PEER_HOST " %s", key);
        tls_console(conf, line);
    }
}

struct tls_peer *tls_connect(struct conf *conf, unsigned int index)
{
    struct stream *stream = conf_alloc(conf, sizeof(*stream));

    memset(stream, 0, sizeof(*stream));
    stream->peer.conf = conf;
    stream_open(stream, index, 0, false, nvme_tcp_own_port(conf, index),
                STREAM_PORT);
    return tls_peer_new(conf, stream);
}

struct tls_peer *tls_begin_open(struct conf *conf)
{
    struct tls_peer *peer;

    tls_begin(conf, "required", TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    tls_peer_shake(peer);
    return peer;
}

void tls_check_works(struct tls_peer *peer)
{
    const uint8_t request[IC_LEN] = {0, 0, 128, 0, 128};

    tls_peer_send(peer, request, sizeof(request));
    conf_same(peer->conf, "ICResp", tls_peer_take(peer, IC_LEN),
              "\1\0\x80\0\x80\0\0\0", 8);
}

void tls_expect_alive(struct conf *conf, unsigned int index)
{
    struct tls_peer *peer = tls_connect(conf, index);

    conf_note(conf, "another host makes its handshake");
    tls_peer_shake(peer);
    tls_check_works(peer);
}
