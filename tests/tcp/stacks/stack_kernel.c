/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel of this computer as a stack, behind a TUN device.  It takes each
 * packet while it is written to the device, so that nothing is waited for; its
 * time is real, and pass() does not wait either.
 */
#include "tests/tcp/stacks/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int device = -1, listener = -1, connection = -1;
static struct stack_state state;

static void program_end(bool resets)
{
    struct linger linger = {.l_onoff = 1};

    if (connection < 0) {
        return;
    }
    if (resets) {
        (void)setsockopt(connection, SOL_SOCKET, SO_LINGER, &linger,
                         sizeof(linger));
    }
    (void)close(connection);
    connection = -1;
}

/* Accept, and read all that there is. */
static void program_run(void)
{
    uint8_t data[STACK_SEGMENT_MAX];
    ssize_t len;

    if (connection < 0) {
        connection = accept(listener, NULL, NULL);
        if (connection >= 0) {
            (void)fcntl(connection, F_SETFL, O_NONBLOCK);
        }
    }
    while (connection >= 0) {
        len = read(connection, data, sizeof(data));
        if (len > 0) {
            stack_read(&state, data, (size_t)len);
        } else if (len == 0) {
            state.has_fin = true;
            program_end(false);
        } else if (errno == ECONNRESET) {
            state.is_reset = true;
            program_end(false);
        } else {
            break;
        }
    }
}

static void kernel_input(const uint8_t *segment, size_t len)
{
    uint8_t packet[STACK_SEGMENT_MAX];
    size_t total = stack_packet(packet, segment, len);

    if (write(device, packet, total) != (ssize_t)total) {
        abort();
    }
    if (!state.has_fin && !state.is_reset) {
        program_run();
    }
}

static size_t kernel_output(uint8_t *segment)
{
    uint8_t packet[STACK_SEGMENT_MAX];
    ssize_t got;

    while ((got = read(device, packet, sizeof(packet))) > 0) {
        size_t len = (size_t)got;
        const uint8_t *found = stack_segment(packet, &len);

        if (found != NULL) { /* and not IPv6, which looks for routers */
            memcpy(segment, found, len);
            return len;
        }
    }
    return 0;
}

static void kernel_pass(uint32_t ms)
{
    (void)ms;
}

static struct stack_state kernel_state(void)
{
    return state;
}

static void listen_begin(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(STACK_PORT),
                             .sin_addr = {htonl(STACK_ADDRESS)}};
    int on = 1; /* urgent bytes stay where they are in the stream */

    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (listener < 0 ||
        setsockopt(listener, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)) != 0 ||
        bind(listener, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(listener, 4) != 0) {
        abort();
    }
}

static void kernel_renew(void)
{
    uint8_t rest[STACK_SEGMENT_MAX];

    if (listener < 0) {
        listen_begin();
    }
    program_end(true);
    while (kernel_output(rest) != 0) {
        continue;
    }
    state = (struct stack_state){0};
}

const struct stack *stack_kernel(const char *tun)
{
    static const struct stack kernel = {
        "Linux",       false,       false,        kernel_input,
        kernel_output, kernel_pass, kernel_state, kernel_renew};
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};

    strncpy(request.ifr_name, tun, sizeof(request.ifr_name) - 1);
    device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0) {
        return NULL;
    }
    return &kernel;
}
