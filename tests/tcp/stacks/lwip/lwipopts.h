/* SPDX-License-Identifier: BSD-2-Clause */
/* How lwIP is built for the tests: TCP over IPv4, without threads. */
#ifndef ESSD_TESTS_LWIPOPTS_H
#define ESSD_TESTS_LWIPOPTS_H

#define NO_SYS                    1
#define SYS_LIGHTWEIGHT_PROT      0
#define LWIP_SOCKET               0
#define LWIP_NETCONN              0
#define MEM_LIBC_MALLOC           1
#define MEMP_MEM_MALLOC           1
#define LWIP_STATS                0

#define LWIP_IPV6                 0
#define LWIP_ARP                  0
#define LWIP_ETHERNET             0
#define LWIP_UDP                  0
#define LWIP_RAW                  0
#define LWIP_NETIF_TX_SINGLE_PBUF 1

#define TCP_MSS                   1460
#define TCP_WND                   65535
#define TCP_SND_BUF               65535
#define TCP_SND_QUEUELEN          128
#define MEMP_NUM_TCP_SEG          128
#define LWIP_TCP_TIMESTAMPS       1
#define LWIP_TCP_SACK_OUT         1

/* Functions whose names the engine has, too. */
#define tcp_abandon lwip_tcp_abandon
#define tcp_abort   lwip_tcp_abort
#define tcp_accept  lwip_tcp_accept
#define tcp_close   lwip_tcp_close
#define tcp_connect lwip_tcp_connect
#define tcp_init    lwip_tcp_init
#define tcp_input   lwip_tcp_input

#endif
