/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference: packet(7). Linux removes the outer VLAN tag before a packet socket
 * gets the frame; the tag comes as auxiliary data, and this file inserts it
 * again.
 *
 * Left out: checksums that a sender on the same machine leaves to its network
 * card (TP_STATUS_CSUMNOTREADY); they are wrong, as they would be on a wire.
 */
#include "raw_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/bytes.h"

enum {
    EVERY_PROTOCOL = 3, /* ETH_P_ALL, whose header conflicts with ours. */
    MACS_LEN = 12,
    TAG_LEN = 4,
    TPID_VLAN = 0x8100,
    RECEIVE_BUFFER = 16 * 1024 * 1024,
};

static bool refuse_link(struct raw_link *link, const char *why)
{
    fprintf(stderr, "essd_conform: %s: %s\n", link->name, why);
    raw_link_close(link);
    return false;
}

static bool ask_interface(struct raw_link *link, unsigned long what,
                          struct ifreq *ifreq)
{
    memset(ifreq, 0, sizeof(*ifreq));
    memcpy(ifreq->ifr_name, link->name, sizeof(link->name));
    return ioctl(link->fd, what, ifreq) == 0;
}

static bool is_fit(struct raw_link *link)
{
    struct ifreq ifreq;

    if (!ask_interface(link, SIOCGIFHWADDR, &ifreq) ||
        ifreq.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
        return refuse_link(link, "it is not an Ethernet interface");
    }
    if (!ask_interface(link, SIOCGIFFLAGS, &ifreq) ||
        !(ifreq.ifr_flags & IFF_UP)) {
        return refuse_link(
            link, "the interface is down: set it up with ip link set ... up");
    }
    if (!ask_interface(link, SIOCGIFMTU, &ifreq)) {
        return refuse_link(link, strerror(errno));
    }
    link->mtu_bytes = (uint32_t)ifreq.ifr_mtu;
    return true;
}

/* All these options are optional: without them more frames have to be skipped,
 * or are lost. */
static void set_helpful(int fd)
{
    int yes = 1, size = RECEIVE_BUFFER;

    (void)setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
}

static bool attach_socket(struct raw_link *link, int index)
{
    struct sockaddr_ll addr = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(EVERY_PROTOCOL),
        .sll_ifindex = index,
    };
    struct packet_mreq all = {
        .mr_ifindex = index,
        /* Our MAC addresses are not those of the card. */
        .mr_type = PACKET_MR_PROMISC,
    };
    int yes = 1;

    set_helpful(link->fd);
    return setsockopt(link->fd, SOL_PACKET, PACKET_AUXDATA, &yes,
                      sizeof(yes)) == 0 &&
           setsockopt(link->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all,
                      sizeof(all)) == 0 &&
           bind(link->fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0;
}

bool raw_link_open(struct raw_link *link, const char *name)
{
    int index = (int)if_nametoindex(name);

    *link = (struct raw_link){.fd = -1};
    snprintf(link->name, sizeof(link->name), "%s", name);
    if (index == 0) {
        fprintf(stderr, "essd_conform: there is no interface %s\n", name);
        return false;
    }
    /* Without a protocol the socket gets no frames of other interfaces before
     * bind(). */
    link->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd < 0) {
        fprintf(stderr,
                "essd_conform: raw frames on %s need CAP_NET_RAW: run as root, "
                "or grant it with setcap cap_net_raw+ep (%s)\n",
                name, strerror(errno));
        return false;
    }
    if (!is_fit(link)) {
        return false;
    }
    return attach_socket(link, index) || refuse_link(link, strerror(errno));
}

/* Frames that the kernel had to drop may explain a failed test. */
static void tell_drops(const struct raw_link *link)
{
    struct tpacket_stats stats;
    socklen_t len = sizeof(stats);

    if (getsockopt(link->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) ==
            0 &&
        stats.tp_drops != 0) {
        fprintf(stderr,
                "essd_conform: %s: this machine is too slow and has lost %u "
                "received frames\n",
                link->name, stats.tp_drops);
    }
}

void raw_link_close(struct raw_link *link)
{
    if (link->fd >= 0) {
        tell_drops(link);
        close(link->fd);
        link->fd = -1;
    }
}

static enum raw_result result_of_error(const struct raw_link *link)
{
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) {
        return RAW_LATER;
    }
    fprintf(stderr, "essd_conform: %s: %s\n", link->name, strerror(errno));
    return RAW_GONE;
}

enum raw_result raw_link_send(struct raw_link *link, const uint8_t *frame,
                              size_t len_bytes)
{
    return send(link->fd, frame, len_bytes, 0) >= 0 ? RAW_DONE
                                                    : result_of_error(link);
}

static const struct tpacket_auxdata *find_auxdata(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL;
         c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
            return (const void *)CMSG_DATA(c);
        }
    }
    return NULL;
}

/* There is room for TAG_LEN bytes before the frame. */
static uint8_t *put_tag_back(uint8_t *frame, const struct tpacket_auxdata *aux)
{
    uint8_t *tagged = frame - TAG_LEN;

    memmove(tagged, frame, MACS_LEN);
    put_be16(tagged + MACS_LEN, (aux->tp_status & TP_STATUS_VLAN_TPID_VALID)
                                    ? aux->tp_vlan_tpid
                                    : TPID_VLAN);
    put_be16(tagged + MACS_LEN + 2, aux->tp_vlan_tci);
    return tagged;
}

static void tell_long(struct raw_link *link, size_t len)
{
    if (!link->has_told) {
        link->has_told = true;
        fprintf(stderr,
                "essd_conform: %s: received a frame of %zu bytes, which is "
                "longer than any on a wire: switch receive offloads off "
                "(ethtool -K %s gro off lro off)\n",
                link->name, len, link->name);
    }
}

enum raw_result raw_link_receive(struct raw_link *link, uint8_t *buf,
                                 size_t room, uint8_t **frame,
                                 size_t *len_bytes)
{
    union {
        struct cmsghdr align;
        uint8_t data[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control;
    struct sockaddr_ll from;
    struct iovec piece = {buf + TAG_LEN, room - TAG_LEN};
    const struct tpacket_auxdata *aux;
    ssize_t n;

    for (;;) {
        struct msghdr message = {
            .msg_name = &from,
            .msg_namelen = sizeof(from),
            .msg_iov = &piece,
            .msg_iovlen = 1,
            .msg_control = &control,
            .msg_controllen = sizeof(control),
        };

        n = recvmsg(link->fd, &message, MSG_TRUNC);
        if (n < 0) {
            return result_of_error(link);
        }
        aux = find_auxdata(&message);
        if (from.sll_pkttype == PACKET_OUTGOING || n < MACS_LEN) {
            continue;
        }
        if ((size_t)n <= piece.iov_len) {
            break;
        }
        tell_long(link, (size_t)n);
    }
    *frame = buf + TAG_LEN;
    *len_bytes = (size_t)n;
    if (aux != NULL && (aux->tp_status & TP_STATUS_VLAN_VALID)) {
        *frame = put_tag_back(*frame, aux);
        *len_bytes += TAG_LEN;
    }
    return RAW_DONE;
}

bool raw_link_kernel_has(const struct ip_addr *ip)
{
    struct ifaddrs *all = NULL;
    bool is_found = false;

    if (getifaddrs(&all) != 0) {
        return false;
    }
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        struct sockaddr_in v4;

        if (at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET) {
            memcpy(&v4, at->ifa_addr, sizeof(v4));
            is_found |= ntohl(v4.sin_addr.s_addr) == ip_addr_to_v4(ip);
        }
    }
    freeifaddrs(all);
    return is_found;
}
