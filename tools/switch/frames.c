/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that take and give single frames: tap devices and packet sockets on
 * network interfaces.  Reference: packet(7), Linux's tuntap.rst.
 *
 * Linux takes the outer VLAN tag out of a frame before a packet socket sees it;
 * the tag comes beside the frame and is put back.
 *
 * Left out: checksums that a sender on the same machine leaves to its card.
 * They are wrong, as they would be on a wire; a line says so.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/bytes.h"
#include "program.h"

enum {
    EVERY_PROTOCOL = 3, /* ETH_P_ALL: its header clashes with ours */
    BATCH = 32,
    MACS_LEN = 12,
    TAG_LEN = 4,
    TPID_VLAN = 0x8100,
    RECEIVE_BUFFER = 4 * 1024 * 1024,
};

struct frame_device {
    bool told_long, told_checksum, told_mtu;
    uint32_t slot_len; /* the longest frame, without tag */
    uint8_t *slots;    /* BATCH of them */
    struct mmsghdr messages[BATCH];
    struct sockaddr_ll from[BATCH];
    struct iovec iov[BATCH][2];
    union {
        struct cmsghdr align;
        uint8_t data[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control[BATCH];
};

/* ---- Opening */

static bool ask_interface(int fd, unsigned long what, const char *name,
                          struct ifreq *ifreq)
{
    memset(ifreq, 0, sizeof(*ifreq));
    memcpy(ifreq->ifr_name, name, strlen(name) + 1);
    return ioctl(fd, what, ifreq) == 0;
}

/* @return the length of the interface's longest frame; 0 with a complaint */
static uint32_t interface_frame_len(int fd, const char *name,
                                    struct complaint *complaint)
{
    struct ifreq ifreq;

    if (!ask_interface(fd, SIOCGIFHWADDR, name, &ifreq) ||
        ifreq.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
        (void)complain(complaint, "%s: is no Ethernet interface", name);
        return 0;
    }
    if (!ask_interface(fd, SIOCGIFFLAGS, name, &ifreq) ||
        !(ifreq.ifr_flags & IFF_UP)) {
        (void)complain(complaint,
                       "%s: the interface is down: ip link set %s up", name,
                       name);
        return 0;
    }
    if (!ask_interface(fd, SIOCGIFMTU, name, &ifreq)) {
        (void)complain(complaint, "%s: %s", name, strerror(errno));
        return 0;
    }
    return MIN((uint32_t)ifreq.ifr_mtu + ETH_LEN,
               (uint32_t)SWITCH_FRAME_MAX - TAG_LEN);
}

static bool iface_bind(int fd, const char *name)
{
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(EVERY_PROTOCOL),
        .sll_ifindex = (int)if_nametoindex(name),
    };
    struct packet_mreq all = {
        .mr_ifindex = address.sll_ifindex,
        .mr_type =
            PACKET_MR_PROMISC, /* the stations' MACs are not the card's */
    };
    int yes = 1, bytes = RECEIVE_BUFFER;

    /* These two are improvements. */
    (void)setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) !=
        0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    }
    return setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &yes, sizeof(yes)) == 0 &&
           setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all,
                      sizeof(all)) == 0 &&
           bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

static int iface_open(const char *name, uint32_t *frame_len,
                      struct complaint *complaint)
{
    int fd;

    if (if_nametoindex(name) == 0) {
        (void)complain(complaint, "iface=%s: there is no such interface", name);
        return -1;
    }
    /* No protocol: nothing of other interfaces comes before bind(). */
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        (void)complain(complaint,
                       "iface=%s: needs CAP_NET_RAW: run as root, or "
                       "setcap cap_net_raw+ep essd-switch (%s)",
                       name, strerror(errno));
        return -1;
    }
    *frame_len = interface_frame_len(fd, name, complaint);
    if (*frame_len != 0 && !iface_bind(fd, name)) {
        *frame_len = 0;
        (void)complain(complaint, "iface=%s: %s", name, strerror(errno));
    }
    if (*frame_len == 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static int tap_open(const char *name, uint32_t *frame_len,
                    struct complaint *complaint)
{
    struct ifreq ifreq = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        (void)complain(complaint, "tap=%s: /dev/net/tun: %s", name,
                       strerror(errno));
        return -1;
    }
    memcpy(ifreq.ifr_name, name, strlen(name) + 1);
    if (ioctl(fd, TUNSETIFF, &ifreq) != 0) {
        (void)complain(complaint,
                       errno == EPERM
                           ? "tap=%s: needs CAP_NET_ADMIN, or a device that is "
                             "yours: ip tuntap add %s mode tap user $USER (%s)"
                           : "tap=%s: cannot open %s: %s",
                       name, name, strerror(errno));
        (void)close(fd);
        return -1;
    }
    *frame_len = SWITCH_FRAME_MAX;
    return fd;
}

/* A tap device is read into the switch directly, and needs no slots. */
static struct frame_device *device_make(uint32_t frame_len, bool needs_slots)
{
    struct frame_device *device = calloc(1, sizeof(*device));

    if (device == NULL) {
        return NULL;
    }
    device->slot_len = frame_len;
    device->slots = needs_slots ? malloc((size_t)BATCH * frame_len) : NULL;
    if (needs_slots && device->slots == NULL) {
        free(device);
        return NULL;
    }
    return device;
}

int frames_open(struct program *program, uint8_t number,
                struct complaint *complaint)
{
    struct port *port = &program->ports[number];
    const char *name = port->options.address;
    bool is_tap = port->options.kind == PORT_TAP;
    uint32_t frame_len = 0;
    int fd;

    if (strlen(name) >= IFNAMSIZ) {
        (void)complain(complaint,
                       "%s: the name of an interface has at most %d "
                       "characters",
                       name, IFNAMSIZ - 1);
        return -1;
    }
    fd = is_tap ? tap_open(name, &frame_len, complaint)
                : iface_open(name, &frame_len, complaint);
    if (fd < 0) {
        return -1;
    }
    port->frames = device_make(frame_len, !is_tap);
    if (port->frames == NULL) {
        (void)complain(complaint, "%s: no memory", name);
        (void)close(fd);
        return -1;
    }
    return fd;
}

void frames_close(struct port *port)
{
    if (port->frames != NULL) {
        free(port->frames->slots);
        free(port->frames);
        port->frames = NULL;
    }
}

/* ---- Received frames */

static void device_failed(struct program *program, uint8_t number)
{
    if (errno == EAGAIN || errno == ENOBUFS) {
        program->ports[number].readable = false;
    } else if (errno != EINTR) {
        port_detach(program, number, strerror(errno));
    }
}

static void device_tell_long(struct program *program, uint8_t number,
                             uint32_t len)
{
    struct port *port = &program->ports[number];

    switch_count(program->core, number, SWITCH_RX_OFFLOADED);
    if (!port->frames->told_long) {
        port->frames->told_long = true;
        log_port(program, number,
                 "a frame of %u bytes came, longer than the interface's MTU "
                 "allows, and was dropped: switch receive offloads off "
                 "(ethtool -K %s gro off lro off)",
                 len, port->options.address);
    }
}

static void device_tell_checksum(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];

    if (!port->frames->told_checksum) {
        port->frames->told_checksum = true;
        log_port(program, number,
                 "a sender on this machine leaves checksums to the card, so "
                 "they are wrong: switch that off at the sender's end "
                 "(ethtool -K %s tx off; on a veth, at its other end)",
                 port->options.address);
    }
}

static const struct tpacket_auxdata *message_auxdata(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL;
         c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
            return (const void *)CMSG_DATA(c);
        }
    }
    return NULL;
}

/* Hand one frame to the switch, with its tag; there is room for it. */
static void device_take_frame(struct program *program, uint8_t number,
                              const uint8_t *frame, uint32_t len,
                              const struct tpacket_auxdata *aux)
{
    bool tagged = aux != NULL && (aux->tp_status & TP_STATUS_VLAN_VALID);
    uint32_t tag_len = tagged ? TAG_LEN : 0;
    uint8_t *at;
    uint32_t room = switch_rx_room(program->core, number, &at);

    ASSERT(room >= SWITCH_PREFIX + tag_len + len);
    put_be32(at, len + tag_len);
    memcpy(at + SWITCH_PREFIX, frame, MIN(len, MACS_LEN));
    if (tagged) {
        uint8_t *tag = at + SWITCH_PREFIX + MACS_LEN;

        put_be16(tag, (aux->tp_status & TP_STATUS_VLAN_TPID_VALID)
                          ? aux->tp_vlan_tpid
                          : TPID_VLAN);
        put_be16(tag + 2, aux->tp_vlan_tci);
    }
    if (len > MACS_LEN) {
        memcpy(at + SWITCH_PREFIX + MACS_LEN + tag_len, frame + MACS_LEN,
               len - MACS_LEN);
    }
    ASSERT(switch_rx_commit(program->core, number,
                            SWITCH_PREFIX + tag_len + len, program->now_ns));
}

static void iface_take_message(struct program *program, uint8_t number, int i)
{
    struct frame_device *device = program->ports[number].frames;
    struct msghdr *message = &device->messages[i].msg_hdr;
    const struct tpacket_auxdata *aux = message_auxdata(message);
    uint32_t len = device->messages[i].msg_len;

    if (device->from[i].sll_pkttype == PACKET_OUTGOING || len < MACS_LEN) {
        return;
    }
    /* With MSG_TRUNC, len is that of the frame, not of its part that fits. */
    if (len > device->slot_len) {
        device_tell_long(program, number, len);
        return;
    }
    if (aux != NULL && (aux->tp_status & TP_STATUS_CSUMNOTREADY)) {
        device_tell_checksum(program, number);
    }
    device_take_frame(program, number,
                      device->slots + (size_t)i * device->slot_len, len, aux);
}

/*
 * How many of the longest frames the switch can take.  SWITCH_RX_WORTH is left
 * over, because switch_rx_room() returns 0 when there is less room than that.
 */
static uint32_t device_room(struct program *program, uint8_t number)
{
    uint32_t frame_len = program->ports[number].frames->slot_len;
    uint8_t *at;
    uint32_t room = switch_rx_room(program->core, number, &at);

    room -= MIN(room, (uint32_t)SWITCH_RX_WORTH);
    return MIN(room / (SWITCH_PREFIX + TAG_LEN + frame_len), (uint32_t)BATCH);
}

bool frames_have_room(struct program *program, uint8_t number)
{
    return device_room(program, number) != 0;
}

static void iface_read(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];
    struct frame_device *device = port->frames;
    unsigned fit = device_room(program, number);
    int n;

    for (unsigned i = 0; i < fit; i++) {
        device->iov[i][0] = (struct iovec){
            device->slots + (size_t)i * device->slot_len, device->slot_len};
        device->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &device->from[i],
            .msg_namelen = sizeof(device->from[i]),
            .msg_iov = device->iov[i],
            .msg_iovlen = 1,
            .msg_control = &device->control[i],
            .msg_controllen = sizeof(device->control[i]),
        };
    }
    if (fit == 0) {
        return; /* until the switch has passed on what it has */
    }
    n = recvmmsg(port->device.fd, device->messages, fit,
                 MSG_DONTWAIT | MSG_TRUNC, NULL);
    if (n < 0) {
        device_failed(program, number);
        return;
    }
    for (int i = 0; i < n; i++) {
        iface_take_message(program, number, i);
    }
}

/* A tap device gives one frame for each read. */
static void tap_read(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];

    for (int i = 0; i < BATCH && frames_have_room(program, number); i++) {
        uint8_t *at;
        uint32_t room = switch_rx_room(program->core, number, &at);
        ssize_t n;

        ASSERT(room >= SWITCH_PREFIX + port->frames->slot_len);
        n = read(port->device.fd, at + SWITCH_PREFIX, port->frames->slot_len);
        if (n < 0) {
            device_failed(program, number);
            return;
        }
        put_be32(at, (uint32_t)n);
        ASSERT(switch_rx_commit(program->core, number,
                                SWITCH_PREFIX + (uint32_t)n, program->now_ns));
    }
}

void frames_read(struct program *program, uint8_t number)
{
    if (program->ports[number].options.kind == PORT_TAP) {
        tap_read(program, number);
    } else {
        iface_read(program, number);
    }
}

/* ---- Sent frames */

/*
 * Sending the first frame has failed, with the reason in errno.
 *
 * @return false when it has to be sent again later
 */
static bool device_refuses(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];

    switch (errno) {
    case EAGAIN:
        port->writable = false;
        return false;
    case EINTR:
        return false;
    case EMSGSIZE:
        if (!port->frames->told_mtu) {
            port->frames->told_mtu = true;
            log_port(program, number,
                     "a frame is longer than the interface's MTU allows and "
                     "was dropped: ip link set %s mtu N",
                     port->options.address);
        }
        switch_tx_refuse(program->core, number, SWITCH_TX_LONG);
        return true;
    case ENODEV:
    case ENXIO:
    case EBADFD:
        port->writable = false;
        port_detach(program, number, strerror(errno));
        return false;
    default: /* ENOBUFS: its queue is full; EIO, ENETDOWN: it is down */
        switch_tx_refuse(program->core, number, SWITCH_TX_REFUSED);
        return true;
    }
}

static uint32_t device_gather(struct program *program, uint8_t number,
                              uint32_t nth, struct iovec iov[2])
{
    struct tx_piece piece[2];
    uint32_t len = switch_tx_frame(program->core, number, nth, piece);

    for (int i = 0; i < 2; i++) {
        iov[i] = (struct iovec){(void *)(uintptr_t)piece[i].data, piece[i].len};
    }
    return len;
}

static void iface_write(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];
    struct frame_device *device = port->frames;
    uint32_t count =
        MIN(switch_tx_frames(program->core, number), (uint32_t)BATCH);
    uint32_t len[BATCH];
    int n;

    for (uint32_t i = 0; i < count; i++) {
        len[i] = device_gather(program, number, i, device->iov[i]);
        device->messages[i].msg_hdr =
            (struct msghdr){.msg_iov = device->iov[i], .msg_iovlen = 2};
    }
    n = sendmmsg(port->device.fd, device->messages, count, MSG_DONTWAIT);
    for (int i = 0; i < n; i++) {
        switch_tx_done(program->core, number, SWITCH_PREFIX + len[i]);
    }
    if (n < 0) {
        (void)device_refuses(program, number);
    }
}

static void tap_write(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];

    while (switch_tx_frames(program->core, number) != 0) {
        struct iovec iov[2];
        uint32_t len = device_gather(program, number, 0, iov);

        if (writev(port->device.fd, iov, 2) >= 0) {
            switch_tx_done(program->core, number, SWITCH_PREFIX + len);
        } else if (!device_refuses(program, number)) {
            return;
        }
    }
}

void frames_write(struct program *program, uint8_t number)
{
    if (program->ports[number].options.kind == PORT_TAP) {
        tap_write(program, number);
    } else {
        iface_write(program, number);
    }
}
