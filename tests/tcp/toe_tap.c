/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive, firmware and hardware models, with a TAP device at each port, so
 * that the kernel of this computer talks to its TCP offload engine: echo at
 * port 7, discard at port 9.
 *
 *   toe_tap TAP0 TAP1
 *
 * Port 0 has 10.77.0.2 and fd00:0:0:1::1, port 1 has 10.78.0.2 and
 * fd00:0:0:2::1.  It runs in real time.  It prints "ready", runs until its
 * input ends, and then prints the engine's counters as JSON.
 * tests/tcp/toe_peer.py runs it.
 *
 * TOE_TAP_SAID in its environment names a file for all that the drive says: its
 * trace records, its answers to requests, and its console.  TOE_TAP_KEYS names
 * one for the key log of TLS, which is kept only then.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "firmware/native/native.h"
#include "hw-model/regs/toe.h"
#include "net/tcp/tcp.h"

enum {
    BURST = 64,
    FRAME_MAX = 2048,
    NS_A_MS = 1000000,
    MEDIUM_BYTES = 16 << 20,
    POLL_MS = 100,
    STEPS = 50,
};

/* For the connections, once standard input has ended. */
#define ENDING_NS UINT64_C(20000000000)

struct tap {
    int fd;
    struct machine *machine;
    unsigned int port;
    uint64_t dropped; /* its queue in the kernel was full */
};

static uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned int tap_send(void *ctx, const struct frame_tx *burst,
                             unsigned int count)
{
    struct tap *tap = ctx;

    for (unsigned int i = 0; i < count; i++) {
        uint8_t data[FRAME_MAX];
        uint32_t len = frame_tx_len(&burst[i]);

        if (len > sizeof(data)) {
            tap->dropped++;
            continue;
        }
        (void)frame_tx_copy(data, &burst[i]);
        if (write(tap->fd, data, len) != (ssize_t)len) {
            tap->dropped++;
        }
    }
    return count;
}

static bool tap_receive(struct tap *tap)
{
    static uint8_t data[BURST][FRAME_MAX];
    struct frame_rx frames[BURST];
    unsigned int n = 0;
    ssize_t len;

    while (n < BURST && (len = read(tap->fd, data[n], sizeof(data[n]))) > 0) {
        frames[n] =
            (struct frame_rx){.data = data[n], .len_bytes = (uint32_t)len};
        n++;
    }
    if (n != 0) {
        hw_port_rx(&tap->machine->ports[tap->port], frames, n);
    }
    return n != 0;
}

static void tap_open(struct tap *tap, const char *name, struct machine *machine,
                     unsigned int port)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};

    *tap = (struct tap){.machine = machine, .port = port};
    tap->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    (void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (tap->fd < 0 || ioctl(tap->fd, TUNSETIFF, &request) != 0) {
        perror("toe_tap: /dev/net/tun");
        exit(1);
    }
    machine_link(machine, port,
                 &(struct frame_sink){.ctx = tap, .send = tap_send});
}

static int wait_ms(const struct native_world *world)
{
    uint64_t due_ns = native_world_deadline(world);
    uint64_t now_ns = clock_ns();

    if (due_ns <= now_ns) {
        return 0;
    }
    return (int)MIN((due_ns - now_ns + NS_A_MS - 1) / NS_A_MS,
                    (uint64_t)POLL_MS);
}

static bool is_served(const struct native_drive *drive)
{
    return tcp_usage(drive->machine.toe->tcp).connections != 0 ||
           drive->drive.tcp.echo.used != 0;
}

/* Append the trace records that have come. */
static void keep_trace(struct machine *machine, FILE *said)
{
    if (said != NULL && machine->trace_len != 0) {
        (void)fwrite(machine->trace, 1, machine->trace_len, said);
        machine->trace_len = 0;
        hw_mgmt_room(&machine->mgmt, HW_MGMT_TRACE);
    }
}

/* Until standard input ends, and every connection has. */
static void run_world(struct native_world *world, struct tap *taps,
                      struct native_drive *drive, FILE *said)
{
    struct pollfd fds[] = {{.fd = taps[0].fd, .events = POLLIN},
                           {.fd = taps[1].fd, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};

    uint64_t until_ns = 0;

    while (until_ns == 0 || (is_served(drive) && world->now_ns < until_ns)) {
        uint64_t now_ns;
        bool is_busy;

        if (until_ns == 0 && fds[2].revents != 0) {
            until_ns = clock_ns() + ENDING_NS;
        }
        now_ns = clock_ns();
        world->now_ns = MAX(world->now_ns, now_ns);
        is_busy = tap_receive(&taps[0]);
        is_busy |= tap_receive(&taps[1]);
        is_busy |= native_world_step(world);
        keep_trace(&drive->machine, said);
        (void)poll(fds, until_ns == 0 ? 3 : 2, is_busy ? 0 : wait_ms(world));
    }
}

static void print_counters(const struct native_drive *drive)
{
    const struct hw_toe *toe = drive->machine.toe;
    const struct tcp_echo *echo = &drive->drive.tcp.echo;
    struct tcp_usage usage = tcp_usage(toe->tcp);
    unsigned int slots = 0;

    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        slots += toe->state.conns[i].state != TOE_SLOT_FREE;
    }
    printf("{\"connections\": %u, \"half_open\": %u, \"pages\": %u, "
           "\"slots\": %u, \"served\": %u, \"echoed\": %llu, "
           "\"discarded\": %llu, \"refused_commands\": %llu",
           usage.connections, usage.half_open, usage.pages, slots, echo->used,
           (unsigned long long)echo->counters.echoed_bytes,
           (unsigned long long)echo->counters.discarded_bytes,
           (unsigned long long)toe->state.counters[TOE_COUNT_REFUSED]);
    for (int i = 0; i < TCP_COUNTERS; i++) {
        printf(", \"%s\": %llu", tcp_counter_name[i],
               (unsigned long long)tcp_counter(toe->tcp, (enum tcp_counter)i));
    }
    printf("}\n");
}

/* Let the drive work for a while. */
static void pass_time(struct native_world *world, struct native_drive *drive,
                      FILE *said)
{
    for (unsigned int i = 0; i < STEPS; i++) {
        world->now_ns += NS_A_MS;
        while (native_world_step(world)) {
        }
        keep_trace(&drive->machine, said);
    }
}

/* Ask the drive for all that it says about hosts and connections. */
static void keep_answers(struct native_world *world, struct native_drive *drive,
                         FILE *said)
{
    static const char *const requests[] = {
        "hosts",       "authentication", "config",    "counters",
        "controllers", "status",         "pools",     "tcp-connections",
        "queue-pairs", "requests",       "addresses", "crashes",
    };

    machine_type(&drive->machine, "host\nconfig\naddresses\npools\n");
    pass_time(world, drive, said);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        char line[64];

        (void)snprintf(line, sizeof(line),
                       "{\"v\":1,\"id\":%zu,\"request\":\"%s\"}\n", i,
                       requests[i]);
        machine_request(&drive->machine, line);
        pass_time(world, drive, said);
        (void)fprintf(said, "%s", machine_reply(&drive->machine));
    }
    (void)fprintf(said, "%s", machine_console(&drive->machine));
    (void)fclose(said);
}

/* ---- The key log. */

static bool has_file(void *ctx)
{
    return ctx != NULL;
}

static void put_line(void *ctx, const char *line)
{
    (void)fprintf(ctx, "%s", line);
    (void)fflush(ctx);
}

/* @return the file that an environment variable names; NULL: none */
static FILE *open_wanted(const char *variable)
{
    const char *name = getenv(variable);
    FILE *file = name != NULL ? fopen(name, "wb") : NULL;

    if (name != NULL && file == NULL) {
        perror(name);
        exit(1);
    }
    return file;
}

/* Native drives have no system controller, whose key log this replaces. */
static void keep_keys(struct native_drive *drive)
{
    FILE *keys = open_wanted("TOE_TAP_KEYS");

    if (drive->drive.tcp.tls != NULL) {
        drive->drive.tcp.tls->config.key_log =
            (struct tls_key_log){has_file, put_line, keys};
    }
}

/* With TOE_TAP_TLS "allowed" or "required", a host has a key: TOE_TAP_HOST is
 * its NQN, TOE_TAP_KEY the key as `nvme gen-tls-key` prints it; or it has a
 * secret: TOE_TAP_SECRET, as `nvme gen-dhchap-key` prints it. */
static void want_tls(struct native_drive_config *config,
                     struct host_list *hosts)
{
    const char *tls = getenv("TOE_TAP_TLS");
    const char *nqn = getenv("TOE_TAP_HOST");
    const char *key = getenv("TOE_TAP_KEY");
    const char *secret = getenv("TOE_TAP_SECRET");

    if (tls == NULL || nqn == NULL) {
        return;
    }
    config->tls =
        strcmp(tls, "required") == 0 ? CONFIG_TLS_REQUIRED : CONFIG_TLS_ALLOWED;
    config->has_nvme_iwarp = strcmp(tls, "beside-iwarp") == 0;
    hosts->count = 1;
    hosts->entry[0].least_hash = AUTH_SHA256;
    (void)snprintf(hosts->entry[0].nqn, sizeof(hosts->entry[0].nqn), "%s", nqn);
    if ((key != NULL && !auth_psk_parse(&hosts->entry[0].tls_key, key)) ||
        (secret != NULL &&
         !auth_key_parse(&hosts->entry[0].host_key, secret))) {
        fprintf(stderr, "toe_tap: TOE_TAP_KEY or TOE_TAP_SECRET is no key\n");
        exit(1);
    }
    config->hosts = hosts;
}

int main(int argc, char **argv)
{
    static struct native_world world;
    static struct medium medium;
    struct native_drive_config config = {
        .node =
            {
                .number = 1,
                .ipv4 = {0x0a4d0002, 0x0a4e0002},
                .has_ipv6 = true,
            },
        .medium = &medium,
        .has_echo = true,
        .has_tcp_echo = true,
        .has_nvme_tcp = true,
        .has_nvme_iwarp = true,
    };
    static struct host_list hosts;
    FILE *said = open_wanted("TOE_TAP_SAID");
    struct native_drive *drive;
    struct tap taps[SOC_PORTS];

    want_tls(&config, &hosts);
    if (argc != 1 + SOC_PORTS) {
        fprintf(stderr, "usage: toe_tap TAP0 TAP1\n");
        return 1;
    }
    native_world_init(&world);
    world.now_ns = clock_ns();
    medium_init(&medium, MEDIUM_BYTES);
    drive = native_drive_create(&world, &config);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        tap_open(&taps[i], argv[1 + i], &drive->machine, i);
    }
    keep_keys(drive);
    if (said != NULL) {
        machine_trace(&drive->machine, BIT(TRACE_GROUPS) - 1);
    }
    printf("ready\n");
    (void)fflush(stdout);
    run_world(&world, taps, drive, said);
    print_counters(drive);
    if (said != NULL) {
        keep_answers(&world, drive, said);
    }
    if (getenv("TOE_TAP_CONSOLE") != NULL) {
        fprintf(stderr, "%s", machine_console(&drive->machine));
    }
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        machine_link(&drive->machine, i, NULL);
        close(taps[i].fd);
    }
    native_drive_destroy(drive);
    medium_end(&medium);
    native_world_end(&world);
    return 0;
}
