/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a conformance test can use: the drive under test at the other end of one
 * or two wires, and everything that a peer may do to it.
 *
 * A test can be a peer in three ways, which it may combine, from the bottom up:
 *
 * + frames: packet.h builds and parses them, conf_send_frame() and conf_take()
 *   move them; only the test answers frames, except ARP and ND for the peers of
 *   conf_peer();
 * + a reliable connection made by hand: in rc.h the test decides on every
 *   packet number, opcode and CM message;
 * + a well-behaved host: conf_host() is an RNIC, CM and NVMe-oF host of this
 *   project (nvmeof/host/host.h), for everything that the test is not about.
 *
 * A test fails in a conf_...() function that does not return, and that logs
 * what was sent, expected and received, decoded. A test passes by returning.
 * When a test does not apply to the target, it calls conf_not_applicable() with
 * the bit or setting that is the reason. Nothing is retried, and no test sleeps
 * where it can wait for something: time is the drive's own, and virtual when
 * the drive is native.
 *
 * Every test begins with a drive that remembers nothing of earlier tests:
 * freshly started when it is native, and without connections otherwise.
 */
#ifndef ESSD_CONFORM_H
#define ESSD_CONFORM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"
#include "nvmeof/host/host.h"
#include "packet.h"

enum {
    CONF_PORTS = 2,
    CONF_PEERS = 8,
    CONF_BLOCK = 512,
    /* How long an answer may take, before --slow. The specifications limit few
     * answers; this is a limit for a drive that has nothing else to do. */
    CONF_ANSWER_US = 2000000,
    /* The same in real time, on a machine that may do much else. */
    CONF_ANSWER_REAL_US = 10000000,
    /* When nothing has come for this time, nothing will come. */
    CONF_SILENCE_US = 100000,
};

struct conf;
struct native_drive;
struct native_host;

/* ---- What a test is. */

enum conf_needs {
    CONF_NEEDS_CONTROL = 0x01, /* Power, reset, link partner, console. */
    /* Frames with a bad FCS, runts: native links only. */
    CONF_NEEDS_FLAGS = 0x02,
    CONF_NEEDS_TWO_PORTS = 0x04,
    CONF_NEEDS_ECHO = 0x08, /* The diagnostic echo service, port 7174. */
    CONF_LONG = 0x10,       /* Run only with --all. */
    /* NVMe/TCP, which a drive of this project has if its setting is on. */
    CONF_NEEDS_NVME_TCP = 0x20,
};

struct conf_test {
    const char *id;      /* Follows the chapter's name: "responder.psn-gap". */
    const char *clause;  /* "IBTA Vol 1 9.7.5.2.3", "NVMe 1.4 5.15.2" */
    const char *purpose; /* What the drive must do, in one line. */
    void (*run)(struct conf *conf);
    uint32_t needs; /* enum conf_needs */
    /* The test sends packets that are wrong on purpose: its capture is not
     * checked with Wireshark's dissectors. */
    bool is_malformed;
    /* The test judges how much time passes.  In QEMU that is real time, so a
     * machine that stands still can change its result; other tests only wait
     * until something has happened.  --list says so. */
    bool judges_time;
    const char *text; /* For a run() that reads it: see conf_text(). */
};

/* The tests of a file; a chapter is a list of these, in chapters.c. */
struct conf_tests {
    const char *chapter; /* "roce" */
    const struct conf_test *tests;
    size_t count;
};

/*
 * A row of a file's table; more fields may follow, as in ".needs = CONF_LONG".
 */
#define CONF_TEST(test_id, test_clause, test_purpose, ...)                     \
    {.id = test_id,                                                            \
     .clause = test_clause,                                                    \
     .purpose = test_purpose,                                                  \
     .run = __VA_ARGS__}

#define CONF_TESTS(name, chapter_name, table)                                  \
    const struct conf_tests name = {chapter_name, table, ARRAY_LEN(table)}

/** The text of the test's row, for tests that are scripts. */
const char *conf_text(const struct conf *conf);

/* ---- Verdicts. All except conf_note() end the test. */

/** Add a line to the test's log: what the test does now. */
void conf_note(struct conf *conf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void conf_fail(struct conf *conf, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/*
 * At the end of a test, the counters of the drive's RNIC for retransmissions,
 * time-outs, NAKs and bad packets are 0, if the drive is native.  A test that
 * provokes some declares them, as BIT(RNIC_COUNT_...).  Tests of the chapters
 * roce and robust need not declare any but RNR NAKs: their peers are wrong or
 * silent, or frames are lost.
 */
enum {
    CONF_LOSS = BIT(RNIC_COUNT_TIMEOUTS) | BIT(RNIC_COUNT_RETRANSMITTED),
};
void conf_provokes(struct conf *conf, uint32_t counters);

/**
 * The test does not apply: name the Identify bit, setting or ability that the
 * target lacks.
 */
void conf_not_applicable(struct conf *conf, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** The test applies but cannot be run: the run does not count as conforming. */
void conf_not_run(struct conf *conf, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** Fail with the text unless `is_true`. */
void conf_check(struct conf *conf, bool is_true, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Fail with "what: expected .., got .." unless they are equal. */
void conf_equal(struct conf *conf, const char *what, uint64_t got,
                uint64_t expected);

/** The same for bytes; names the first byte that differs. */
void conf_same(struct conf *conf, const char *what, const void *got,
               const void *expected, size_t len_bytes);

/**
 * Compare NVMe statuses and name them; `got` is without DNR and MORE. HOST_LOST
 * is reported as a lost connection.
 */
void conf_status(struct conf *conf, const char *what, uint16_t got,
                 uint16_t expected);

/* ---- The target. */

struct conf_port {
    struct mac_addr mac;
    struct ip_addr ip4, ip6; /* All zero: none. */
};

struct conf_target {
    unsigned int num_ports;
    struct conf_port ports[CONF_PORTS];
    /* The tester's first address on port 0; all zero: see conf_own_ip(). */
    struct ip_addr own;
    uint16_t mtu_bytes;
    uint8_t path_mtu; /* enum ib_mtu that fits mtu_bytes. */
    char nqn[NVME_NQN_FIELD];
    uint32_t nsid;
    uint32_t block_bytes; /* Block size of the namespace; 0: CONF_BLOCK. */
    uint32_t max_bytes;   /* Most data of a command, by MDTS; 0: not limited. */
    /* The target is the drive of this project, with its console. */
    bool is_ours;
    bool has_echo;   /* The target's diagnostic service is on. */
    bool has_iwarp;  /* Another target than ours serves NVMe over iWARP. */
    bool is_virtual; /* The target's time is virtual: waiting costs nothing. */
};

const struct conf_target *conf_target(const struct conf *conf);

/**
 * The IPv4 address of the tester's peer `index`, or of its host when `index` is
 * CONF_PEERS. The addresses are consecutive from target->own on. Without
 * target->own they are in the target's /24: 100 and following for peers, and 2
 * for the host.
 */
struct ip_addr conf_own_ip(const struct conf_target *target, unsigned int index,
                           unsigned int port);

/** The test is not applicable when the target has no address of that family. */
void conf_needs_ip(struct conf *conf, unsigned int port, bool is_v6);

/* The target's address on a port; IPv4 unless is_v6. */
const struct ip_addr *conf_target_ip(const struct conf *conf, unsigned int port,
                                     bool is_v6);

/* ---- Time. */

uint64_t conf_now_us(const struct conf *conf);

/**
 * Let time pass; frames are received meanwhile.  From half a second on, a drive
 * in QEMU has also done what became due in that time, although its machine may
 * have stood still: see late.h.
 */
void conf_pass(struct conf *conf, uint64_t us);

/**
 * Let time pass, for something that must not have become due meanwhile.  The
 * drive is not waited for, because that takes time, too.  A machine that stands
 * still may make it longer: see conf_repeat_in_time().
 */
void conf_pass_only(struct conf *conf, uint64_t us);

/**
 * Do something for which the tester has to be in time, again and again until it
 * was.  The test is not applicable if it was late each time.
 *
 * @param attempt returns false when the tester was late, and so has nothing to
 *                judge; it leaves its connections behind
 */
void conf_repeat_in_time(struct conf *conf, bool (*attempt)(struct conf *conf));

/**
 * Look until is_done(ctx), which need not become true. @param timeout_us before
 * --slow @return false when the time is up
 */
bool conf_look(struct conf *conf, bool (*is_done)(void *ctx), void *ctx,
               uint64_t timeout_us);

/**
 * The same for something that must come.  The time that a drive in QEMU has for
 * it does not depend on its machine alone, which may stand still: see late.h.
 */
bool conf_wait(struct conf *conf, bool (*is_done)(void *ctx), void *ctx,
               uint64_t timeout_us);

/**
 * How much later the second packet came than the first: the least and the most
 * that is possible. In virtual time both are the same. In real time a tester
 * that waited for a processor knows only between which two looks at the link a
 * packet came.  Only a test with judges_time may ask.
 */
uint64_t conf_later_least_us(struct conf *conf, const struct packet *first,
                             const struct packet *second);
uint64_t conf_later_most_us(struct conf *conf, const struct packet *first,
                            const struct packet *second);

/**
 * Time-outs that a test chooses for the target also run while the tester waits
 * for a processor, so that they are longer in real time.
 *
 * @return what to add to the code of a time-out, which is a power of two
 */
uint8_t conf_patience(const struct conf *conf);

/** @return how long to wait for an answer that must come */
uint64_t conf_answer_us(const struct conf *conf);

/**
 * Zeroed memory that is freed when the test ends, because failing tests do not
 * return.
 */
void *conf_alloc(struct conf *conf, size_t bytes);

/** The number of the test in this run, from 1; always 1 in virtual time, in
 * which each test has a new drive. */
unsigned int conf_number(const struct conf *conf);

/** A random number that depends only on --seed and on the test. */
uint64_t conf_random(struct conf *conf);

/* ---- Frames. */

/* Send a frame as it is; the FCS is added. @param flags  enum frame_flags */
void conf_send_frame(struct conf *conf, unsigned int port, const uint8_t *frame,
                     size_t len_bytes, uint8_t flags);

/* Does the packet fit? */
typedef bool conf_match(const struct packet *packet, const void *ctx);

/**
 * Take the first packet that fits, of those that were received but not taken
 * yet; if there is none, wait for one.
 *
 * @return NULL when time is up; the packet lives until the test ends
 */
const struct packet *conf_take_within(struct conf *conf, conf_match *match,
                                      const void *ctx, uint64_t timeout_us);

/**
 * The same with conf_answer_us(); the test fails, naming `what`, when none
 * comes.
 */
const struct packet *conf_take(struct conf *conf, const char *what,
                               conf_match *match, const void *ctx);

/** Fail when such a packet was received or comes within that time. */
void conf_expect_none(struct conf *conf, const char *what, conf_match *match,
                      const void *ctx, uint64_t for_us);

/** Discard what was received so far. */
void conf_flush(struct conf *conf);

/**
 * How many packets that fit were received in this test, whether taken or not.
 */
unsigned int conf_count(const struct conf *conf, conf_match *match,
                        const void *ctx);

/* A filter on the wire: it is called for every frame, and may change it. */
enum conf_verdict {
    CONF_PASS,
    CONF_DROP,
    CONF_TWICE,
    CONF_LATER, /* Deliver it after the next frame, or after a millisecond. */
};

struct conf_frame { /* A frame on its way. */
    unsigned int port;
    bool is_from_target; /* Otherwise it is from the host of conf_host(). */
    /* Counts the test's frames in both directions, from 0. */
    uint64_t number;
    uint8_t *data;
    uint32_t *len_bytes; /* The filter may make it smaller. */
};

typedef enum conf_verdict conf_filter_fn(void *ctx,
                                         const struct conf_frame *frame);

/**
 * Set the filter; NULL removes it. Frames that tests send by hand do not pass
 * it.
 */
void conf_set_filter(struct conf *conf, conf_filter_fn *filter, void *ctx);

/* ---- Peers: addresses from which tests send. */

struct conf_peer {
    unsigned int port;
    struct mac_addr mac;
    struct ip_addr ip4, ip6;
    uint16_t vlan;    /* 0: untagged. */
    uint8_t priority; /* 802.1p priority, with a VLAN. */
    bool answers;     /* ARP and ND for it are answered automatically. */
};

/**
 * Peer `index` (0..CONF_PEERS - 1) on a port: its IP addresses are in the
 * target's subnet, and ARP and ND for it are answered. The test may change it.
 */
struct conf_peer *conf_peer(struct conf *conf, unsigned int index,
                            unsigned int port);

/**
 * One of any number of addresses, for tests with many sources; ARP and ND for
 * it are not answered.
 */
struct conf_peer conf_stranger(struct conf *conf, unsigned int number,
                               unsigned int port);

/* An ARP reply for the address *ctx. */
bool conf_is_arp_reply(const struct packet *packet, const void *ctx);

/**
 * Ask for the MAC address of the target's IPv4 address on a port, up to `tries`
 * times.
 *
 * @param peer  the peer that asks, on that port
 * @return the reply, or NULL when nobody answers
 */
const struct packet *conf_arp(struct conf *conf, const struct conf_peer *peer,
                              unsigned int tries, uint64_t each_us);

/* ---- A well-behaved host. */

/**
 * The node: RNIC model, stack, CM, two ports on the wires. The first call in a
 * test makes it.
 */
struct native_host *conf_host(struct conf *conf);

struct conf_session { /* All zero: the defaults. */
    unsigned int port;
    bool is_v6;
    struct ip_addr target_ip; /* All zero: the address of the port. */
    /* NULL: the target's NQN; a name of the test's own. */
    const char *subnqn, *hostnqn;
    /* Hosts with different numbers have different HOSTIDs and HOSTNQNs. */
    uint8_t host_number;
    uint16_t io_queues; /* 0: none. */
    uint16_t depth;     /* 0: 32. */
    uint32_t kato_ms;
    struct nvme_host *on; /* NULL: &conf_host()->host; see native_host_add(). */
};

/**
 * Resolve the target's MAC address and fill in *target; fails when nobody
 * answers.
 */
void conf_resolve(struct conf *conf, const struct conf_session *session,
                  struct host_target *target);

/**
 * Connect all queues and enable the controller; fails unless all of it works.
 */
struct nvme_host *conf_connect(struct conf *conf,
                               const struct conf_session *session);

/** The same for a discovery controller. */
struct nvme_host *conf_connect_discovery(struct conf *conf,
                                         const struct conf_session *session);

/**
 * Fill `data` with the contents of `blocks` blocks at `lba` in version
 * `version`.
 */
void conf_fill(uint8_t *data, uint64_t lba, uint32_t blocks, uint32_t version);

/* In this file, blocks are those of the namespace, whatever their size; only
 * conf_fill() always uses CONF_BLOCK bytes. */

/**
 * A test whose data is made for blocks of CONF_BLOCK bytes does not apply to
 * other block sizes.
 */
void conf_needs_block(struct conf *conf);

/* Do verified I/O through the host's data area; fails unless it works and the
 * data is correct. */
void conf_write(struct conf *conf, struct nvme_host *host, uint16_t qid,
                uint64_t lba, uint32_t blocks, uint32_t version);
void conf_verify(struct conf *conf, struct nvme_host *host, uint16_t qid,
                 uint64_t lba, uint32_t blocks, uint32_t version);

/**
 * Check that the target still works: a second host connects, does verified I/O
 * and disconnects. Used at the end of tests that stress the target.
 */
void conf_expect_alive(struct conf *conf);

/* ---- Control over the target (CONF_NEEDS_CONTROL). Each function fails the
 * test when it does not work. */

/**
 * Set a property of the link partner: "speed", "fec", "ber", "present",
 * "fault".
 */
void conf_partner(struct conf *conf, unsigned int port, const char *key,
                  const char *value);

/** Cut the power and switch it on again; peers are not told. */
void conf_power_cut(struct conf *conf);

/** Reset the drive without a power cut. */
void conf_reset(struct conf *conf);

/**
 * Type a line on the drive's console.
 *
 * @return the answer without echo and prompt, valid until the next call
 */
const char *conf_console(struct conf *conf, const char *line);

/**
 * Let reads of these blocks of 512 bytes of the medium fail, until the next
 * call; 0: of none.  A test that calls this does not apply to other than native
 * targets.
 */
void conf_break_medium(struct conf *conf, uint64_t first, uint32_t count);

/**
 * The native drive, for a test that must look inside; NULL when the target is
 * not native. Such a test does not apply to other targets, so that the console
 * is preferred.
 */
struct native_drive *conf_native_drive(struct conf *conf);

#endif
