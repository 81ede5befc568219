/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake transport, media and buffer pool around one target, and a small host.
 *
 * Nothing completes by itself: fake_run() acts as the main loop until nothing
 * changes any more.  It does not complete what a test holds back.
 */
#ifndef TESTS_NVMEOF_TARGET_FAKE_H
#define TESTS_NVMEOF_TARGET_FAKE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "nvmeof/target/state.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/opcode.h"

#define FAKE_SUBNQN  "nqn.2014-08.org.example:drive"
#define FAKE_HOSTNQN "nqn.2014-08.org.example:host"

enum {
    FAKE_REQUESTS = 512,
    FAKE_BLOCKS = 2048, /* blocks of 512 bytes in each namespace */
    FAKE_NAMESPACES = 2,
    FAKE_OPS = 1024,
    FAKE_PIECE = 16 * 1024,
    FAKE_BUFFERS = 1024,
    DNR = NVME_STATUS_DNR,
    MORE = NVME_STATUS_MORE,
};

struct fake_request {
    struct nvmf_request req;
    uint8_t *host; /* the host's buffer */
    uint32_t host_len;
    bool is_done; /* its response is acknowledged */
    bool is_answered;
    struct nvme_cqe cqe;
    uint8_t *in_capsule; /* a copy of the host's buffer */
    uint8_t spare[4096]; /* of its capsule, with fake.has_spare */
};

struct fake {
    struct nvmf_target *target;
    struct nvmf_config config;
    struct nvmf_transport transport;
    struct nvmf_ns_config ns[FAKE_NAMESPACES];
    struct nvmf_address address[NVMF_MAX_LISTED];
    uint64_t now_us;
    uint16_t portid; /* of the connections that fake_open() makes */
    uint32_t link;   /* of the same, too */
    uint8_t peer;    /* last byte of their peer's address */

    struct fake_request *request[FAKE_REQUESTS];
    unsigned int request_count;

    struct nvmf_request *fetch[FAKE_REQUESTS];
    unsigned int fetch_count;
    struct nvmf_request *respond[FAKE_REQUESTS];
    unsigned int respond_count;
    struct nvmf_request *sending[FAKE_REQUESTS];
    unsigned int sending_count;
    bool hold_fetch, hold_send, hold_done, hold_media;
    bool fail_fetch, fail_send;
    bool has_spare; /* capsules have memory that the target may use */

    uint8_t *blocks[FAKE_NAMESPACES];
    uint8_t block_shift;
    bool is_read_only, has_cache;
    bool is_protected[FAKE_NAMESPACES];
    struct media_io media[FAKE_OPS]; /* operations in flight */
    unsigned int media_count;
    unsigned int media_room;
    struct media_io history[FAKE_OPS]; /* all submitted operations */
    unsigned int history_count;
    enum media_status media_status;
    uint64_t bad_first, bad_count; /* blocks that cannot be read */
    int cache_calls, cache_on;

    int32_t buffers_free; /* bytes */
    unsigned int reserve; /* an owner with so many gets one more even at 0 */
    uint32_t piece_bytes; /* length of a buffer; the last may be shorter */
    unsigned int buffers_out;
    uint32_t window_max; /* most bytes that one get() returns */
    struct {
        void *ptr;
        uint32_t len_bytes;
        uint8_t owner;
    } buffers[FAKE_BUFFERS]; /* buffers in use */

    uint16_t disconnected[64];
    unsigned int disconnect_count;
    uint16_t drained[64];
    unsigned int drained_count;
    unsigned int subsystem_resets;

    char hostnqn[64]; /* of the next host; empty: FAKE_HOSTNQN */
    uint8_t hostid;   /* every byte of the next host's identifier; 0: 42h */
    char host_letter; /* ends the next host's NQN; 0: as it is */
    uint16_t next_cid;
    uint8_t data[NVMF_MAX_TRANSFER]; /* the host buffer of most commands */
};

/* A target with two namespaces of 1 MiB, two addresses and VS 1.4, which is not
 * initialised yet. */
struct fake *fake_new(void);
void fake_start(struct fake *fake);
void fake_free(struct fake *fake);

int fake_setup(void **state); /* makes one and initialises it */
int fake_teardown(void **state);

/* Open a connection that is ready for Connect; the test fails if it is
 * refused. */
uint16_t fake_open(struct fake *fake, uint16_t qid, uint16_t hsqsize);

/* Start one command, without data if len is 0.  The request gets its result. */
struct fake_request *fake_send(struct fake *fake, uint16_t qpair,
                               const struct nvme_sqe *sqe, void *data,
                               uint32_t len);
struct fake_request *fake_send_in_capsule(struct fake *fake, uint16_t qpair,
                                          const struct nvme_sqe *sqe,
                                          const void *data, uint32_t len);
void fake_run(struct fake *fake);

/* Complete the oldest fetch, even if the test holds fetches. */
void fake_run_fetch(struct fake *fake);

/* Complete the oldest media operation, even if the test holds the media. */
void fake_run_media(struct fake *fake);

/* Execute a command and return its completion; the test fails if there is
 * none. */
struct nvme_cqe fake_exec(struct fake *fake, uint16_t qpair,
                          const struct nvme_sqe *sqe, void *data, uint32_t len);

/* Set the data of Connect. */
void fake_connect_data(struct connect_data *data, uint16_t cntlid,
                       const char *subnqn);
struct nvme_cqe fake_connect_with(struct fake *fake, uint16_t qpair,
                                  const struct connect_command *command,
                                  const struct connect_data *data);

/* Execute Connect, which must succeed.  @return the CNTLID */
uint16_t fake_connect(struct fake *fake, uint16_t qpair, uint16_t qid,
                      uint16_t sqsize, uint16_t cntlid, uint32_t kato_ms,
                      const char *subnqn);

uint64_t fake_property_get(struct fake *fake, uint16_t qpair, uint32_t offset,
                           uint8_t size);
struct nvme_cqe fake_property_set(struct fake *fake, uint16_t qpair,
                                  uint32_t offset, uint64_t value);

/* Connect an admin queue and enable the controller. */
uint16_t fake_host(struct fake *fake, uint32_t kato_ms);
uint16_t fake_discovery_host(struct fake *fake);
/* Connect an I/O queue of full depth for that host. */
uint16_t fake_io_queue(struct fake *fake, uint16_t admin, uint16_t qid);

/* Build commands with the fields that tests vary. */
struct nvme_sqe fake_admin(uint8_t opcode, uint32_t nsid, uint32_t cdw10,
                           uint32_t cdw11);
struct nvme_sqe fake_rw(uint8_t opcode, uint64_t lba, uint32_t blocks);

/* End the connection as a host does; the queue pair must be free at once. */
void fake_close(struct fake *fake, uint16_t qpair);

#define CC_ENABLE ((6u << CC_IOSQES_SHIFT) | (4u << CC_IOCQES_SHIFT) | CC_EN)

#endif
