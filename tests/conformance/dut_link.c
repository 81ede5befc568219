/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target on a link, in real time: QEMU's stream sockets (each frame follows
 * its length in 4 big-endian bytes) or a network interface (raw_link.c).
 *
 * The drive in QEMU is controlled through a UNIX socket, with one line for each
 * request and answer: docs/conformance.md, "Control".
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "dut.h"
#include "firmware/native/socket_link.h"
#include "internal.h"
#include "lib/bytes.h"
#include "raw_link.h"
#include "target_info.h"

enum {
    PREFIX = 4,
    BUFFER = 1024 * 1024,
    BURST = 64,
    MS = 1000000,
    REPLY_LEN = 65536,
    MAX_WAIT_MS = 2, /* The accuracy of the packets' times. */
    CONTROL_WORDS = 512,
};

struct dut_link {
    int fd;
    size_t in_len, out_at, out_len;
    bool was_full;
    uint64_t empty_ns; /* The last time when nothing was left to read. */
    uint8_t *in, *out;
};

struct link_dut {
    struct dut_link_config *config;
    struct native_world *world;
    struct dut_events events;
    struct dut_link links[CONF_PORTS];
    unsigned int num_links;
    struct raw_link raw; /* Used if is_interface. */
    bool is_interface, is_gone;
    int control; /* -1: none. */
    bool is_partner_changed[CONF_PORTS];
    char reply[REPLY_LEN];
};

/* ---- Links. */

static bool open_socket(struct dut_link *link, const char *path)
{
    link->fd = socket_link_connect(path);
    link->in_len = link->out_at = link->out_len = 0;
    return link->fd >= 0 &&
           fcntl(link->fd, F_SETFL, fcntl(link->fd, F_GETFL) | O_NONBLOCK) == 0;
}

static bool open_links(struct link_dut *dut)
{
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        const char *path = dut->config->sockets[i];

        if (path == NULL) {
            break;
        }
        if (!open_socket(&dut->links[i], path)) {
            fprintf(stderr, "essd_conform: %s: %s\n", path, strerror(errno));
            return false;
        }
        dut->num_links = i + 1;
    }
    return dut->num_links != 0;
}

static void close_links(struct link_dut *dut)
{
    if (dut->is_interface) {
        raw_link_close(&dut->raw);
        dut->num_links = 0;
    }
    for (unsigned int i = 0; i < dut->num_links; i++) {
        close(dut->links[i].fd);
        dut->links[i].in_len = 0;
        dut->links[i].out_at = dut->links[i].out_len = 0;
    }
    dut->num_links = 0;
}

/* No other host may have the addresses of the tests. */
static bool kernel_has_ours(const struct dut_link_config *config)
{
    for (unsigned int i = 0; i <= CONF_PEERS; i++) {
        struct ip_addr ip = conf_own_ip(&config->target, i, 0);
        const uint8_t *b = ip.bytes + 12;

        if (raw_link_kernel_has(&ip)) {
            fprintf(stderr,
                    "essd_conform: this machine has %u.%u.%u.%u, which the "
                    "tests need for themselves: give --ip one of %u addresses "
                    "in a row that nobody has\n",
                    b[0], b[1], b[2], b[3], CONF_PEERS + 1);
            return true;
        }
    }
    return false;
}

static bool open_interface(struct link_dut *dut)
{
    struct raw_link *raw = &dut->raw;

    if (kernel_has_ours(dut->config) ||
        !raw_link_open(raw, dut->config->interface)) {
        return false;
    }
    dut->is_interface = true;
    dut->links[0].fd = raw->fd;
    dut->num_links = 1;
    if (raw->mtu_bytes < dut->config->target.mtu_bytes) {
        fprintf(stderr,
                "essd_conform: %s has an MTU of %u, the target one of %u: ip "
                "link set %s mtu %u, or give --mtu\n",
                raw->name, raw->mtu_bytes, dut->config->target.mtu_bytes,
                raw->name, dut->config->target.mtu_bytes);
        return false;
    }
    return true;
}

static bool would_block(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS);
}

/* @return false when the other end is gone */
static bool flush_out(struct link_dut *dut, unsigned int port)
{
    struct dut_link *link = &dut->links[port];
    ssize_t n;

    if (link->out_at == link->out_len) {
        return true;
    }
    n = send(link->fd, link->out + link->out_at, link->out_len - link->out_at,
             MSG_NOSIGNAL);
    if (n <= 0) {
        return would_block(n);
    }
    link->out_at += (size_t)n;
    if (link->out_at == link->out_len) {
        link->out_at = link->out_len = 0;
        if (link->was_full) {
            link->was_full = false;
            dut->events.room(dut->events.ctx, port);
        }
    }
    return true;
}

static bool send_frame(void *ctx, unsigned int port, const uint8_t *frame,
                       size_t len_bytes, uint8_t flags)
{
    struct link_dut *dut = ctx;
    struct dut_link *link = &dut->links[port];
    uint8_t *at = link->out + link->out_len;

    /* A link cannot carry such frames: see CONF_NEEDS_FLAGS in conform.h. */
    (void)flags;
    if (port >= dut->num_links) {
        return true; /* Nothing is connected there. */
    }
    if (dut->is_interface) {
        enum raw_result result = raw_link_send(&dut->raw, frame, len_bytes);

        dut->is_gone |= result == RAW_GONE;
        link->was_full |= result == RAW_LATER;
        return result != RAW_LATER;
    }
    if (link->out_len + PREFIX + len_bytes > BUFFER) {
        link->was_full = true;
        return false;
    }
    put_be32(at, (uint32_t)len_bytes);
    memcpy(at + PREFIX, frame, len_bytes);
    link->out_len += PREFIX + len_bytes;
    return true;
}

static bool take_frames(struct link_dut *dut, unsigned int port)
{
    struct dut_link *link = &dut->links[port];
    size_t at = 0;

    while (link->in_len - at >= PREFIX) {
        uint32_t len = get_be32(link->in + at);
        struct frame_rx frame = {.data = link->in + at + PREFIX,
                                 .len_bytes = len};

        if (len > FRAME_LEN_MAX) {
            return false; /* The stream is out of step, and cannot recover. */
        }
        if (link->in_len - at - PREFIX < len) {
            break;
        }
        at += PREFIX + len;
        dut->events.receive(dut->events.ctx, port, &frame, 1);
    }
    link->in_len -= at;
    memmove(link->in, link->in + at, link->in_len);
    return true;
}

/* @return false when the other end is gone */
static bool read_stream(struct link_dut *dut, unsigned int port, bool *is_busy)
{
    struct dut_link *link = &dut->links[port];
    ssize_t n =
        recv(link->fd, link->in + link->in_len, BUFFER - link->in_len, 0);

    if (n <= 0) {
        link->empty_ns = dut->world->now_ns;
        return would_block(n);
    }
    *is_busy = true;
    link->in_len += (size_t)n;
    return take_frames(dut, port);
}

static bool read_interface(struct link_dut *dut, bool *is_busy)
{
    for (unsigned int i = 0; i < BURST; i++) {
        uint8_t *data = NULL;
        size_t len = 0;
        struct frame_rx frame;

        switch (raw_link_receive(&dut->raw, dut->links[0].in, FRAME_LEN_MAX,
                                 &data, &len)) {
        case RAW_GONE:
            return false;
        case RAW_LATER:
            dut->links[0].empty_ns = dut->world->now_ns;
            return true;
        case RAW_DONE:
            break;
        }
        *is_busy = true;
        frame = (struct frame_rx){.data = data, .len_bytes = (uint32_t)len};
        dut->events.receive(dut->events.ctx, 0, &frame, 1);
    }
    return true;
}

static uint64_t real_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void wait_for_work(struct link_dut *dut,
                          const struct native_world *world)
{
    struct pollfd fds[CONF_PORTS];
    uint64_t deadline_ns = native_world_deadline(world), now_ns = real_ns();
    int timeout_ms = MAX_WAIT_MS;

    for (unsigned int i = 0; i < dut->num_links; i++) {
        bool has_out = dut->links[i].out_at != dut->links[i].out_len ||
                       (dut->is_interface && dut->links[i].was_full);

        fds[i] = (struct pollfd){
            .fd = dut->links[i].fd,
            .events = (short)(POLLIN | (has_out ? POLLOUT : 0)),
        };
    }
    if (deadline_ns <= now_ns) {
        timeout_ms = 0;
    } else if (deadline_ns - now_ns < (uint64_t)MAX_WAIT_MS * MS) {
        timeout_ms = (int)((deadline_ns - now_ns + MS - 1) / MS);
    }
    poll(fds, dut->num_links, timeout_ms);
    if (dut->is_interface && dut->links[0].was_full) {
        dut->links[0].was_full = false;
        dut->events.room(dut->events.ctx, 0);
    }
}

static bool run_once(void *ctx, struct native_world *world)
{
    struct link_dut *dut = ctx;
    bool is_busy = false, is_ok = !dut->is_gone;
    uint64_t now_ns = real_ns();

    world->now_ns = MAX(world->now_ns, now_ns);
    for (unsigned int i = 0; i < dut->num_links; i++) {
        is_ok &= dut->is_interface ? read_interface(dut, &is_busy)
                                   : read_stream(dut, i, &is_busy);
    }
    is_busy |= native_world_step(world);
    for (unsigned int i = 0; i < dut->num_links; i++) {
        is_ok &= dut->is_interface || flush_out(dut, i);
    }
    if (!is_busy && is_ok) {
        wait_for_work(dut, world);
    }
    return is_ok;
}

static uint64_t empty_ns(void *ctx, unsigned int port)
{
    const struct link_dut *dut = ctx;

    return dut->links[port].empty_ns;
}

/* ---- Control. */

static bool read_reply(struct link_dut *dut)
{
    size_t len = 0;

    while (len + 1 < REPLY_LEN) {
        ssize_t n = recv(dut->control, dut->reply + len, 1, 0);

        if (n <= 0) {
            return false;
        }
        if (dut->reply[len] == '\n') {
            dut->reply[len] = '\0';
            return strncmp(dut->reply, "ok", 2) == 0;
        }
        len++;
    }
    return false;
}

static bool ask_control(struct link_dut *dut, const char *request)
{
    char line[CONTROL_WORDS];
    int len = snprintf(line, sizeof(line), "%s\n", request);

    return len > 0 && (size_t)len < sizeof(line) &&
           send(dut->control, line, (size_t)len, MSG_NOSIGNAL) == len &&
           read_reply(dut);
}

static bool link_partner(void *ctx, unsigned int port, const char *key,
                         const char *value)
{
    struct link_dut *dut = ctx;
    char request[CONTROL_WORDS];

    dut->is_partner_changed[port] = true;
    snprintf(request, sizeof(request), "partner %u %s %s", port, key, value);
    return ask_control(dut, request);
}

/* Restore the partner that the machine has when it starts. */
static void restore_partner(struct link_dut *dut, unsigned int port)
{
    static const char *const usual[][2] = {
        {"speed", "25"},  {"fec", "auto"}, {"ber", "0"},
        {"present", "1"}, {"fault", "0"},
    };

    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        (void)link_partner(dut, port, usual[i][0], usual[i][1]);
    }
    dut->is_partner_changed[port] = false;
}

static bool power_cut(void *ctx)
{
    struct link_dut *dut = ctx;

    close_links(dut);
    return ask_control(dut, "power-cut") && open_links(dut);
}

static bool link_reset(void *ctx)
{
    return ask_control(ctx, "reset");
}

static bool link_turn(void *ctx)
{
    return ask_control(ctx, "turn");
}

static unsigned int parse_hex4(const char *text)
{
    char digits[5] = {0};

    memcpy(digits, text, 4);
    return (unsigned int)strtoul(digits, NULL, 16);
}

/* Decode a JSON string. @return false when it is no string, or too long */
static bool unquote_json(const char *from, char *to, size_t room)
{
    size_t len = 0;

    if (*from++ != '"') {
        return false;
    }
    while (*from != '"' && *from != '\0' && len + 1 < room) {
        char c = *from++;

        if (c == '\\') {
            c = *from++;
            if (c == 'n') {
                c = '\n';
            } else if (c == 'r') {
                c = '\r';
            } else if (c == 't') {
                c = '\t';
            } else if (c == 'u') {
                c = (char)parse_hex4(from);
                from += 4;
            }
        }
        to[len++] = c;
    }
    to[len] = '\0';
    return *from == '"';
}

static bool link_console(void *ctx, const char *line, char *text, size_t room)
{
    struct link_dut *dut = ctx;
    char request[CONTROL_WORDS];

    snprintf(request, sizeof(request), "console %s", line);
    return ask_control(dut, request) && strlen(dut->reply) > 3 &&
           unquote_json(dut->reply + 3, text, room);
}

/* ---- A test's start and end. */

static bool link_begin(void *ctx, struct native_world *world,
                       const struct dut_events *events)
{
    struct link_dut *dut = ctx;
    uint64_t now_ns = real_ns();

    dut->world = world;
    dut->events = *events;
    world->now_ns = MAX(world->now_ns, now_ns);
    return dut->num_links != 0;
}

static void end_test(void *ctx)
{
    struct link_dut *dut = ctx;

    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        if (dut->is_partner_changed[i]) {
            restore_partner(dut, i);
        }
    }
}

static void link_describe(void *ctx, struct conf_target *target)
{
    const struct link_dut *dut = ctx;

    *target = dut->config->target;
    target->num_ports = dut->num_links;
}

static void link_end(void *ctx)
{
    struct link_dut *dut = ctx;

    close_links(dut);
    if (dut->control >= 0) {
        close(dut->control);
    }
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        free(dut->links[i].in);
        free(dut->links[i].out);
    }
    free(dut);
}

static bool open_control(struct link_dut *dut)
{
    struct dut_link_config *config = dut->config;

    dut->control = socket_link_connect(config->control);
    if (dut->control < 0) {
        fprintf(stderr, "essd_conform: %s: %s\n", config->control,
                strerror(errno));
        return false;
    }
    if (!ask_control(dut, "info") ||
        !target_read_info(dut->reply, &config->target)) {
        fprintf(stderr, "essd_conform: control: no answer to \"info\": %s\n",
                dut->reply);
        return false;
    }
    return true;
}

static bool reach_target(struct link_dut *dut)
{
    if (dut->config->control != NULL && !open_control(dut)) {
        return false;
    }
    return dut->config->interface != NULL ? open_interface(dut)
                                          : open_links(dut);
}

struct dut dut_link_create(struct dut_link_config *config)
{
    struct link_dut *dut = calloc(1, sizeof(*dut));
    struct dut made = {
        .ctx = dut,
        .kind = config->control != NULL ? "qemu" : "link",
        .has_control = config->control != NULL,
        .begin = link_begin,
        .end_test = end_test,
        .end = link_end,
        .describe = link_describe,
        .send = send_frame,
        .run_once = run_once,
        .empty_ns = empty_ns,
        .partner = link_partner,
        .power_cut = power_cut,
        .reset = link_reset,
        .turn = config->control != NULL ? link_turn : NULL,
        .console = link_console,
    };

    ASSERT(dut != NULL);
    dut->config = config;
    dut->control = -1;
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        dut->links[i].in = malloc(BUFFER);
        dut->links[i].out = malloc(BUFFER);
        ASSERT(dut->links[i].in != NULL && dut->links[i].out != NULL);
    }
    if (!reach_target(dut)) {
        link_end(dut);
        made.kind = NULL;
        return made;
    }
    made.mtu_bytes = dut->raw.mtu_bytes;
    return made;
}
