/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the chapter `tls` share. */
#ifndef ESSD_CONFORM_TLS_LIB_H
#define ESSD_CONFORM_TLS_LIB_H

#include "nvme_tcp_script.h"
#include "tls_peer.h"

/** Restart the drive with this value of nvme.tls, and give it a key of
 * TLS_PEER_HOST; NULL: none.  The test does not apply to other than native
 * drives, which forget both at its end. */
void tls_begin(struct conf *conf, const char *setting, const char *key);

/** Type a line on the console, which has to be taken. */
void tls_console(struct conf *conf, const char *line);

/** Connect by TCP to port 4420.
 * @param index  of the peer and of its port, 0..7 */
struct tls_peer *tls_connect(struct conf *conf, unsigned int index);

/** Begin with TLS required and the key of TLS_PEER_HOST, connect as peer 0, and
 * finish a handshake. */
struct tls_peer *tls_begin_open(struct conf *conf);

/** Connect as peer `index`, and finish a handshake: nobody else has noticed. */
void tls_expect_alive(struct conf *conf, unsigned int index);

/** ICReq and ICResp. */
void tls_check_works(struct tls_peer *peer);

/* A row of such a test. */
#define TLS_TEST(test_id, clause, purpose, ...)                                \
    CONF_TEST(test_id, clause, purpose, __VA_ARGS__,                           \
              .needs = CONF_NEEDS_NVME_TCP, .is_malformed = true)

#endif
