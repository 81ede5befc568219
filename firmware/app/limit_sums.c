/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums of limits that draw on the same pool.
 *
 * Whoever has shown little of itself (nvmeof/target/base/stage.c) has a limit
 * at each step.  The steps of a connection are counted apart, so strangers can
 * be at all limits at the same time.  Then the pool has to have something left
 * for a host, because a pool that is empty drops its first message: no later
 * step could make room for it.
 */
#include "firmware/echo/echo.h"
#include "firmware/tcp/tcp_echo.h"
#include "firmware/tcp/tls_socket.h"
#include "net/cm/cm.h"
#include "net/mpa_cm/mpa_cm.h"
#include "net/stack/limits.h"
#include "net/stack/router.h"
#include "net/verbs/objects.h"
#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/tcp/tcp_limits.h"

/*
 * Neighbours: one for each address that a queue pair of RoCE has.  A queue pair
 * that is confirmed goes over from the first term to the second one; while that
 * is full, a request ends others first, so their sum holds after all
 * confirmations, too.  Entries of connections that rest are forgotten when
 * there is no other one (net/cm).
 */
_Static_assert(
    (int)RDMA_HALF_OPEN_MAX + (int)NVMF_UNPROVEN_ADDRESSES + /* without proof */
            (int)NVMF_MAX_HOSTS + /* an address for each controller */
            (int)ECHO_CONNS +
            NET_PORTS * (NET_ROUTERS + 1) < /* IPv6's and IPv4's */
        (int)NET_NEIGHBOURS,
    "strangers leave a neighbour for a host");
_Static_assert((int)NET_NEIGHBOURS == (int)RDMA_NEIGHS, "the RNIC has as many");

/*
 * Connections of the TCP offload engine, apart from those of iWARP whose hosts
 * have proven their identity.  Half-open ones have places of their own in the
 * engine.  NVMe/TCP's places include connections behind TLS that have passed
 * the handshake, and those that are being ended.
 */
enum {
    BEFORE_TLS = TLS_CONNS - TLS_OPEN_MAX - TLS_OPENING_MAX,
    OF_MPA = MPA_CM_HALF_OPEN + MPA_CM_CLOSINGS, /* without a queue pair */
    TCP_OF_STRANGERS = NVME_TCP_QUEUES + BEFORE_TLS + TCP_ECHO_CONNS + OF_MPA +
                       NVMF_UNPROVEN_STREAMS,
    FOR_IWARP = 128, /* queue pairs at least, of hosts */
};
_Static_assert(TCP_OF_STRANGERS + FOR_IWARP <= (int)TOE_CONNECTIONS,
               "strangers leave connections for hosts of iWARP");
_Static_assert((int)NVME_TCP_HANDSHAKES >= (int)TOE_HALF_OPEN,
               "NVMe/TCP has a place for each connection that is half-open");

/* Entries of connection management: live connections, and a request.  Those
 * that rest make room. */
_Static_assert((int)NVMF_MAX_QPAIRS + (int)ECHO_CONNS < (int)CM_CONNS,
               "each queue pair has its connection");

/* QPs of the RNIC, with the one for MADs: one for each queue pair.  Nothing is
 * left for the echo service, which is off by default: each of its ECHO_CONNS
 * takes the place of one. */
_Static_assert((int)NVMF_MAX_QPAIRS + 2 <= (int)RDMA_QPS,
               "each queue pair of RoCE has its QP");

/* Admin queues of all controllers, each with its largest depth. */
_Static_assert(NVMF_MAX_HOSTS *NVMF_ADMIN_DEPTH < NVMF_TOTAL_DEPTH,
               "there is an admin queue for each controller");
