/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A conformance test's view of the world: the drive under test at the other end
 * of one or two wires, and everything that a peer may do to it.
 *
 * Three ways to be a peer, from the bottom up, in one test if need be:
 *
 *  + frames: packet.h builds and reads them, conf_send_frame() and conf_take()
 *    move them; nothing is answered that the test does not answer, except ARP
 *    and ND for the peers that are told to (conf_peer());
 *  + a reliable connection made by hand: rc.h, with every packet number, opcode
 *    and CM message in the test's hand;
 *  + a well-behaved host: conf_host(), an RNIC, CM and NVMe-oF host of ours
 *    (nvmeof/host/host.h), for what is not the point of the test.
 *
 * A test fails by a conf_...() function that does not return, with what was
 * sent, expected and received, decoded.  It passes by returning.  A test that
 * cannot be applied says so by conf_not_applicable(), with the bit or setting
 * that makes it so.  Nothing is retried; no test sleeps where it can wait for
 * something: time is the drive's own, virtual when the drive is native.
 *
 * Every test begins with a drive that knows nothing of earlier ones: freshly
 * started when native, and otherwise without connections.
 */
#ifndef ESSD_CONFORM_H
#define ESSD_CONFORM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/native/native.h"
#include "packet.h"

enum {
    CONF_PORTS = 2,
    CONF_PEERS = 8,
    CONF_BLOCK = 512,
    /* How long an answer may take, before --slow.  The specifications bound
     * few of them: this is "a drive that has nothing else to do". */
    CONF_ANSWER_US = 2000000,
    /* How long nothing must come before silence is believed. */
    CONF_SILENCE_US = 100000,
};

struct conf;

/* ---- What a test is. */

enum conf_needs {
    CONF_NEEDS_CONTROL = 0x01, /* power, reset, link partner, console */
    CONF_NEEDS_FLAGS = 0x02, /* frames with bad FCS, runts: native links only */
    CONF_NEEDS_TWO_PORTS = 0x04,
    CONF_NEEDS_ECHO = 0x08, /* the diagnostic echo service, port 7174 */
    CONF_LONG = 0x10,       /* only with --all */
};

struct conf_test {
    const char *id;      /* behind the chapter's name: "responder.psn-gap" */
    const char *clause;  /* "IBTA Vol 1 9.7.5.2.3", "NVMe 1.4 5.15.2" */
    const char *purpose; /* one line: what the drive must do */
    void (*run)(struct conf *conf);
    uint32_t needs; /* enum conf_needs */
    /* Packets that are wrong on purpose are sent: its capture is not held
     * against Wireshark's dissectors. */
    bool is_malformed;
};

/* A file's tests: chapters are lists of these, in main.c. */
struct conf_tests {
    const char *chapter; /* "roce" */
    const struct conf_test *tests;
    size_t count;
};

/* A row of a file's table; more fields, as ".needs = CONF_LONG", may follow. */
#define CONF_TEST(test_id, test_clause, test_purpose, ...)                     \
    {.id = test_id,                                                            \
     .clause = test_clause,                                                    \
     .purpose = test_purpose,                                                  \
     .run = __VA_ARGS__}

#define CONF_TESTS(name, chapter_name, table)                                  \
    const struct conf_tests name = {chapter_name, table, ARRAY_LEN(table)}

/* ---- Verdicts.  All of them end the test, but for conf_note(). */

/** A line of the test's log: what it does, in the reader's words. */
void conf_note(struct conf *conf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void conf_fail(struct conf *conf, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** Say which Identify bit, setting or ability of the target is missing. */
void conf_not_applicable(struct conf *conf, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** Should be applied and cannot be: the run does not count as conforming. */
void conf_not_run(struct conf *conf, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** Fail, with the text, unless `is_true`. */
void conf_check(struct conf *conf, bool is_true, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Fail with "what: expected .., got .." unless they are equal. */
void conf_equal(struct conf *conf, const char *what, uint64_t got,
                uint64_t expected);

/** The same for bytes, naming the first that differs. */
void conf_same(struct conf *conf, const char *what, const void *got,
               const void *expected, size_t len_bytes);

/** NVMe status, by name: `got` without DNR and MORE.  HOST_LOST is a failure
 *  that says so. */
void conf_status(struct conf *conf, const char *what, uint16_t got,
                 uint16_t expected);

/* ---- The target. */

struct conf_port {
    struct mac_addr mac;
    struct ip_addr ip4, ip6; /* all zero: none */
};

struct conf_target {
    unsigned int num_ports;
    struct conf_port ports[CONF_PORTS];
    struct ip_addr own; /* the tester's first on port 0; all zero: see below */
    uint16_t mtu_bytes;
    uint8_t path_mtu; /* enum ib_mtu that goes with it */
    char nqn[NVME_NQN_FIELD];
    uint32_t nsid;
    uint32_t block_bytes; /* of the namespace; 0: CONF_BLOCK */
    uint32_t max_bytes;   /* of a command's data, by MDTS; 0: not limited */
    bool is_ours;         /* the drive of this project, with its console */
    bool has_echo;        /* the diagnostic service is on */
    bool is_virtual;      /* time is: waiting costs nothing */
};

const struct conf_target *conf_target(const struct conf *conf);

/**
 * The IPv4 address of the tester's peer `index`, or, CONF_PEERS, of its host:
 * in a row from target->own on; if that is not given, 100 and on, and 2, in the
 * target's /24.
 */
struct ip_addr conf_own_ip(const struct conf_target *target, unsigned int index,
                           unsigned int port);

/** The test is not applicable when the target has no such address. */
void conf_needs_ip(struct conf *conf, unsigned int port, bool is_v6);

/* The target's address on a port: IPv4 unless is_v6. */
const struct ip_addr *conf_target_ip(const struct conf *conf, unsigned int port,
                                     bool is_v6);

/* ---- Time. */

uint64_t conf_now_us(const struct conf *conf);

/** Let time pass; frames are received meanwhile. */
void conf_pass(struct conf *conf, uint64_t us);

/** Until is_done(ctx). @param timeout_us  before --slow @return false: time up
 */
bool conf_wait(struct conf *conf, bool (*is_done)(void *ctx), void *ctx,
               uint64_t timeout_us);

/**
 * How much later the second packet came than the first, at the least and at the
 * most.  In virtual time both are the same; in real time a tester that had to
 * wait for a processor knows only between which two looks each came.
 */
uint64_t conf_later_least_us(const struct packet *first,
                             const struct packet *second);
uint64_t conf_later_most_us(const struct packet *first,
                            const struct packet *second);

/**
 * Time-outs that a test chooses for the target end while the tester waits for a
 * processor, too: in real time they are longer.
 *
 * @return  what to add to a time-out's code, which is a power of two
 */
uint8_t conf_patience(const struct conf *conf);

/** Memory until the test's end, zeroed: failing tests do not return. */
void *conf_alloc(struct conf *conf, size_t bytes);

/** A number that depends on --seed and on the test, and nothing else. */
uint64_t conf_random(struct conf *conf);

/* ---- Frames. */

/* Send as it is, without FCS; @param flags  enum frame_flags. */
void conf_send_frame(struct conf *conf, unsigned int port, const uint8_t *frame,
                     size_t len_bytes, uint8_t flags);

/* Is this the packet? */
typedef bool conf_match(const struct packet *packet, const void *ctx);

/**
 * The first packet that fits among those that came and were not taken yet; if
 * there is none, wait for one.
 *
 * @return NULL when time is up.  Good until the test ends.
 */
const struct packet *conf_take_within(struct conf *conf, conf_match *match,
                                      const void *ctx, uint64_t timeout_us);

/** The same with CONF_ANSWER_US; fails the test with `what` when none comes. */
const struct packet *conf_take(struct conf *conf, const char *what,
                               conf_match *match, const void *ctx);

/** Fail when such a packet is there or comes within that time. */
void conf_expect_none(struct conf *conf, const char *what, conf_match *match,
                      const void *ctx, uint64_t for_us);

/** Forget what was received so far. */
void conf_flush(struct conf *conf);

/** How many packets that fit were received in this test, taken or not. */
unsigned int conf_count(const struct conf *conf, conf_match *match,
                        const void *ctx);

/* A hand on the wire: called for every frame, may change it. */
enum conf_verdict {
    CONF_PASS,
    CONF_DROP,
    CONF_TWICE,
    CONF_LATER, /* behind the next one, or after a millisecond */
};

struct conf_frame { /* on its way */
    unsigned int port;
    bool is_from_target; /* else from the host of conf_host() */
    uint64_t number;     /* of the test, both directions, from 0 */
    uint8_t *data;
    uint32_t *len_bytes; /* may shrink */
};

typedef enum conf_verdict conf_filter_fn(void *ctx,
                                         const struct conf_frame *frame);

/** NULL: none. What tests send by hand does not pass it. */
void conf_set_filter(struct conf *conf, conf_filter_fn *filter, void *ctx);

/* ---- Peers: addresses that tests speak from. */

struct conf_peer {
    unsigned int port;
    struct mac_addr mac;
    struct ip_addr ip4, ip6;
    uint16_t vlan;    /* 0: untagged */
    uint8_t priority; /* 802.1p, with a VLAN */
    bool answers;     /* ARP and ND, by itself */
};

/**
 * Peer `index` (0..CONF_PEERS - 1) on a port: in the target's subnet, its MAC
 * and addresses its own.  Answers ARP and ND.  It is the test's to change.
 */
struct conf_peer *conf_peer(struct conf *conf, unsigned int index,
                            unsigned int port);

/** Addresses of any number for tests with many sources; not answered for. */
struct conf_peer conf_stranger(struct conf *conf, unsigned int number,
                               unsigned int port);

/* An ARP reply of the address *ctx. */
bool conf_is_arp_reply(const struct packet *packet, const void *ctx);

/**
 * Ask who has the target's IPv4 address on a port, up to `tries` times.
 *
 * @param peer  who asks, on that port
 * @return the reply, or NULL when nobody answers
 */
const struct packet *conf_arp(struct conf *conf, const struct conf_peer *peer,
                              unsigned int tries, uint64_t each_us);

/* ---- A well-behaved host. */

/**
 * The node: RNIC model, stack, CM, two ports on the wires.  Made on the first
 * call of a test.
 */
struct native_host *conf_host(struct conf *conf);

struct conf_session { /* zeroes: defaults */
    unsigned int port;
    bool is_v6;
    struct ip_addr target_ip;     /* all zero: the port's */
    const char *subnqn, *hostnqn; /* NULL: the target's; one of the test's */
    uint8_t host_number;          /* makes HOSTID and HOSTNQN differ */
    uint16_t io_queues;           /* 0 for none */
    uint16_t depth;               /* 0: 32 */
    uint32_t kato_ms;
    struct nvme_host *on; /* NULL: &conf_host()->host; see native_host_add() */
};

/** Neighbour looked up, *target filled in. Fails when nobody answers. */
void conf_resolve(struct conf *conf, const struct conf_session *session,
                  struct host_target *target);

/** Connect all queues, controller enabled; fails unless all of it works. */
struct nvme_host *conf_connect(struct conf *conf,
                               const struct conf_session *session);

/** A discovery controller's. */
struct nvme_host *conf_connect_discovery(struct conf *conf,
                                         const struct conf_session *session);

/** The bytes of `blocks` blocks at `lba` in version `version`. */
void conf_fill(uint8_t *data, uint64_t lba, uint32_t blocks, uint32_t version);

/* Blocks, in this file, are the namespace's, whatever their size; only
 * conf_fill() has its own, of CONF_BLOCK bytes. */

/** A test whose data are made for blocks of CONF_BLOCK bytes is not run with
 *  others. */
void conf_needs_block(struct conf *conf);

/* Verified I/O through the host's data area; fails unless it works and the data
 * is right. */
void conf_write(struct conf *conf, struct nvme_host *host, uint16_t qid,
                uint64_t lba, uint32_t blocks, uint32_t version);
void conf_verify(struct conf *conf, struct nvme_host *host, uint16_t qid,
                 uint64_t lba, uint32_t blocks, uint32_t version);

/**
 * Proof of life: a second host connects to the target, does verified I/O and
 * goes.  For the end of tests that were rude.
 */
void conf_expect_alive(struct conf *conf);

/* ---- Control over the target (CONF_NEEDS_CONTROL).  Each fails the test when
 *      it does not work. */

/** What the link partner is: "speed", "fec", "ber", "present", "fault". */
void conf_partner(struct conf *conf, unsigned int port, const char *key,
                  const char *value);

/** As if the power had gone; and on again.  Peers are not told. */
void conf_power_cut(struct conf *conf);

/** Warm reset. */
void conf_reset(struct conf *conf);

/**
 * A line on the drive's console.
 *
 * @return what it said, without echo and prompt; good until the next call
 */
const char *conf_console(struct conf *conf, const char *line);

/** The native drive, for a test that must look inside; NULL when it is not.
 *  A test that depends on it is not applicable elsewhere: prefer the console.
 */
struct native_drive *conf_native_drive(struct conf *conf);

#endif
