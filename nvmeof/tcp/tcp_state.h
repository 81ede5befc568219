/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private state of the NVMe/TCP binding.  Only the binding's own files and
 * tests include it.
 */
#ifndef ESSD_NVMEOF_TCP_STATE_H
#define ESSD_NVMEOF_TCP_STATE_H

#include "nvmeof/tcp/nvme_tcp.h"
#include "nvmeof/tcp/tcp_pdu.h"

/* The states of a request. */
enum nvme_tcp_request_state {
    TCP_REQUEST_FREE,         /* Unused; waits for a capsule. */
    TCP_REQUEST_ARRIVING,     /* Waits for the data in its capsule. */
    TCP_REQUEST_TARGET,       /* The target works on it, until it calls fetch(),
                               * send() or respond(). */
    TCP_REQUEST_FETCH_ROOM,   /* Waits for its turn to send R2T. */
    TCP_REQUEST_FETCHING,     /* Waits for H2CData. */
    TCP_REQUEST_SEND_ROOM,    /* Waits for its turn to send one window. */
    TCP_REQUEST_SENDING,      /* Waits for that window's acknowledgement. */
    TCP_REQUEST_RESPOND_ROOM, /* Waits for its turn to send its response. */
    TCP_REQUEST_RESPONDING,   /* Waits for the response's acknowledgement. */
};

struct nvme_tcp_request {
    struct nvmf_transfer *nvmf;
    struct nvme_tcp_queue *queue;
    struct nvme_tcp_request *next, *prev; /* in queue->requests, or free */
    struct nvme_tcp_request *next_listed; /* in a list of the queue */
    uint8_t state;                        /* enum nvme_tcp_request_state */
    bool is_connect;                      /* Connect */
    bool data_is_bad;                     /* a data digest was wrong */
    uint16_t cid;                         /* of its command */
    uint16_t slots;     /* bits of the queue's slots that it holds */
    uint16_t pool_slot; /* of all queues; NVME_TCP_POOL_SLOTS: none */
    uint16_t ttag;      /* of its R2T */
    uint32_t received;  /* bytes of the window that is fetched */
};

/* Requests in the order in which they were added, by next_listed. */
struct nvme_tcp_list {
    struct nvme_tcp_request *first, *last;
};

/* A piece of memory to send. */
struct nvme_tcp_span {
    const uint8_t *data;
    uint32_t len_bytes;
    uint16_t staged; /* bytes of the stage that are free after it was sent */
    bool ends_send;  /* it is the last one of a call of send() */
    struct nvme_tcp_list ends; /* requests of which it is the last piece */
};

/* The states of a queue, which are those of its connection. */
enum nvme_tcp_queue_state {
    TCP_QUEUE_FREE,    /* Unused; waits for a SYN. */
    TCP_QUEUE_OPENING, /* Accepted; waits for the end of the handshake, and then
                        * for a queue pair. */
    TCP_QUEUE_OPEN,    /* Takes PDUs, until either side ends it. */
    TCP_QUEUE_ENDING,  /* The target has ended it: nothing is read; waits until
                        * all responses were sent, and then for the end of the
                        * connection. */
    TCP_QUEUE_CLOSING, /* As ENDING, without responses that were no PDUs yet. */
    TCP_QUEUE_ABORTING, /* Waits for the end of the connection at once. */
    TCP_QUEUE_ENDED,    /* The connection has ended; waits for the socket's
                         * completions and for the target. */
    TCP_QUEUE_STATES
};

/* What the target knows of a queue. */
enum nvme_tcp_qpair_state {
    TCP_QPAIR_NONE,     /* Nothing. */
    TCP_QPAIR_HELD,     /* The queue pair `number`; waits for the end. */
    TCP_QPAIR_DRAINING, /* nvmf_qpair_closed() was called; waits for
                         * drained(). */
    TCP_QPAIR_DRAINED,  /* The target has let go of it; waits for a step, which
                         * gives the requests back. */
};

/* What the next bytes of a stream are. */
enum nvme_tcp_read_state {
    TCP_READ_HEADER, /* of a header, and its digest */
    TCP_READ_WAIT,   /* data of a capsule; waits for a request and a slot */
    TCP_READ_DATA,
    TCP_READ_DIGEST, /* of data */
};

struct nvme_tcp_reader {
    uint8_t state;   /* enum nvme_tcp_read_state */
    uint8_t have;    /* bytes in `header`, or of a digest */
    bool is_judged;  /* the common header was allowed */
    bool is_spoiled; /* a fault rule takes its data digest for wrong */
    uint8_t marks;   /* enum nvme_tcp_follow_marks; 0: it was not followed */
    uint32_t left;   /* bytes of data that have not come */
    uint32_t digest; /* of the data so far */
    struct tcp_pdu_head head;
    struct tcp_pdu_data data;         /* of H2CData */
    struct nvme_tcp_request *request; /* of the data; NULL: none yet */
    uint8_t header[PDU_HEADER_MAX + PDU_DIGEST_LEN];
    uint8_t trailer[PDU_DIGEST_LEN];
};

struct nvme_tcp_queue {
    struct nvme_tcp *tcp;
    uint32_t id;         /* of the connection */
    uint8_t state;       /* enum nvme_tcp_queue_state */
    uint8_t qpair_state; /* enum nvme_tcp_qpair_state */
    uint16_t number;     /* the target's number of the queue pair */
    uint16_t qid;        /* NVMe queue identifier; 0 before Connect */
    bool is_behind_tls;
    bool is_connected;            /* Connect was accepted */
    bool awaits_number;           /* OPENING: until a queue pair is free, */
    uint64_t since_us;            /* since then */
    bool has_flow_control;        /* of the SQ */
    bool needs_step;              /* it is in the list tcp->step_first */
    bool was_disconnected;        /* by the target */
    bool wants_reset;             /* by a fault rule, instead of a PDU */
    bool was_closed, was_aborted; /* CLOSE or ABORT was given to the socket, */
    bool has_close, has_abort;    /* and is not completed */
    struct nvme_tcp_queue *next_step;
    /* Since when the drive waits for what only the peer can do: for the bytes
     * of a PDU that has begun, for H2CData, for acknowledgements. */
    uint64_t bytes_us, data_us, acked_us;
    uint64_t window_us; /* since when the oldest R2T is the oldest */
    uint64_t ending_us; /* when it began to end */
    struct tcp_pdu_rules rules;
    uint8_t hpda; /* in units of 4 bytes, 0's based */

    /* What the socket does: tcp_follow.h. */
    bool is_followed;   /* the next header is marked */
    bool fills_digests; /* of PDUs that are sent */
    uint8_t begun;      /* enum nvme_tcp_begun */

    /* The stream. */
    uint8_t *ring, *slots, *stage;
    uint32_t received; /* bytes in the ring; counts wrap */
    uint32_t read;
    uint32_t credit_due; /* bytes read and not given back */
    struct nvme_tcp_reader reader;

    /* Commands. */
    uint16_t in_use;     /* requests in the list `requests` */
    uint16_t responding; /* those of them that respond() was called for */
    uint16_t slots_used; /* bits of its own ones */
    uint16_t next_ttag;
    uint32_t digest_errors; /* of data */
    struct nvme_tcp_request *requests;
    struct nvme_tcp_list fetching; /* in TCP_REQUEST_FETCHING */
    struct nvme_tcp_list waiting;  /* for their turn to send */

    /* What is sent. */
    uint32_t stage_head, stage_tail;          /* bytes; counts wrap */
    uint16_t span_head, span_next, span_tail; /* made, given, sent */
    uint8_t sends;    /* calls of send() that are not completed */
    bool awaits_peer; /* the socket takes none before the peer acknowledges
                       * something else */
    struct nvme_tcp_span spans[NVME_TCP_SPANS];
    struct nvmf_conn_event event;
};

struct nvme_tcp {
    struct nvme_tcp_config config;
    struct nvmf_transport transport;
    struct nvmf_transport behind_tls; /* a part of it */
    uint64_t now_us;
    uint64_t watch_us; /* next check; 0: nothing to check */
    bool is_on;
    uint32_t queues_used, qpairs_used, requests_used;
    uint32_t awaiting; /* queues with awaits_number */
    struct nvme_tcp_request *free_requests;
    uint32_t pool_free; /* slots of all queues: so many of the following ones */
    uint16_t free_slots[NVME_TCP_POOL_SLOTS];
    struct nvme_tcp_queue *step_first, *step_last; /* need a step */
    uint32_t bytes_left;                           /* of NVME_TCP_TURN_BYTES */
    uint64_t counters[NVME_TCP_COUNTERS];
    uint16_t by_qpair[NVMF_MAX_QPAIRS]; /* index of the queue */
    struct nvme_tcp_queue queues[NVME_TCP_QUEUES];
    struct nvme_tcp_request requests[NVME_TCP_REQUESTS];
};

/* ---- nvme_tcp.c: connections. */

/** Let the next nvme_tcp_step() look at the queue. */
void tcp_queue_needs_step(struct nvme_tcp_queue *queue);

/** It has a queue pair, and takes PDUs from now on. */
void tcp_queue_open(struct nvme_tcp_queue *queue);

/** There is no room for it. */
void tcp_queue_refuse(struct nvme_tcp_queue *queue);

/** End the connection: send the PDUs that are complete, and close. */
void tcp_queue_close(struct nvme_tcp_queue *queue);

/** End the connection at once. */
void tcp_queue_abort(struct nvme_tcp_queue *queue);

/** The response of an accepted Connect was queued. */
void tcp_queue_connected(struct nvme_tcp_queue *queue);

bool nvme_tcp_step(struct nvme_tcp *tcp);
uint64_t nvme_tcp_watch(struct nvme_tcp *tcp);

/** Bytes were copied or digested. */
static inline void tcp_note_work(struct nvme_tcp *tcp, uint32_t len_bytes)
{
    tcp->bytes_left -= MIN(len_bytes, tcp->bytes_left);
}

/* ---- tcp_room.c: room for new connections. */

/**
 * Make room for a connection whose peer receives at its address: end one that
 * waits for its peer's FIN only, or one of a host without proof.
 *
 * @return whether there is room */
bool tcp_room_make(struct nvme_tcp_queue *queue);

/** @return a queue for a handshake, or NULL */
struct nvme_tcp_queue *tcp_room_take(struct nvme_tcp *tcp);

/** Reserve a queue pair for a connection.  If all numbers are in use, and
 * another queue pair has to go, the connection waits for its number.
 * @return false: it waits (awaits_number), or there is none */
bool tcp_room_reserve(struct nvme_tcp_queue *queue);

/** Open the connections that wait for numbers that are free now. */
void tcp_room_serve(struct nvme_tcp *tcp);

/* ---- tcp_receive.c: the stream of PDUs. */

void tcp_queue_reader_init(struct nvme_tcp_queue *queue);

/** Read what has come, as far as it can be used now. */
void tcp_queue_receive(struct nvme_tcp_queue *queue);

/* ---- tcp_request.c: the commands of a queue. */

void tcp_request_init(struct nvme_tcp *tcp);

/* Memory that a command needs for data that comes or goes later. */
enum nvme_tcp_spare {
    TCP_SPARE_NONE,
    TCP_SPARE_BLOCK,   /* of a fused command, which must not wait for buffers */
    TCP_SPARE_MESSAGE, /* of a Fabrics command: a host without proof gets none
                        * of the buffers that are shared */
};

/** Take a request with slots for its data, or for data that comes later.
 *
 * @return NULL: wait until another one ends */
struct nvme_tcp_request *tcp_request_take(struct nvme_tcp_queue *queue,
                                          uint32_t data_len,
                                          enum nvme_tcp_spare spare);
uint8_t *tcp_request_slot(const struct nvme_tcp_request *req);

/** The capsule in the reader's header is complete. */
void tcp_request_deliver(struct nvme_tcp_request *req, uint32_t data_len);

/** The window has been fetched. */
void tcp_request_fetched(struct nvme_tcp_request *req);

/** The last piece of a request was acknowledged. */
void tcp_request_acknowledged(struct nvme_tcp_request *req);

/** Complete every fetch(), send() and respond() as failed. */
void tcp_request_fail_all(struct nvme_tcp_queue *queue);
void tcp_request_release_all(struct nvme_tcp_queue *queue);

/* Three of the transport seam's functions. */
void tcp_request_fetch(void *ctx, struct nvmf_transfer *nvmf);
void tcp_request_send(void *ctx, struct nvmf_transfer *nvmf);
void tcp_request_respond(void *ctx, struct nvmf_transfer *nvmf);

static inline void request_list_add(struct nvme_tcp_list *list,
                                    struct nvme_tcp_request *req)
{
    req->next_listed = NULL;
    if (list->first == NULL) {
        list->first = req;
    } else {
        list->last->next_listed = req;
    }
    list->last = req;
}

/** Take out the request that comes after `before`, or the first one. */
static inline void request_list_remove(struct nvme_tcp_list *list,
                                       struct nvme_tcp_request *before)
{
    struct nvme_tcp_request *req =
        before != NULL ? before->next_listed : list->first;

    if (before != NULL) {
        before->next_listed = req->next_listed;
    } else {
        list->first = req->next_listed;
    }
    if (list->last == req) {
        list->last = before;
    }
}

/* ---- tcp_trace.c: events of group PDUS. */

/** @param request  the number of the command's request; TRACE_NO_REQUEST: of a
 *                  PDU that belongs to no command, or has come */
void tcp_trace_pdu_now(const struct nvme_tcp_queue *queue, bool is_sent,
                       uint32_t request, const struct tcp_pdu_head *head,
                       const struct tcp_pdu_data *data);
void tcp_trace_term_now(const struct nvme_tcp_queue *queue,
                        struct tcp_pdu_term term, const uint8_t *header);

static inline bool tcp_traces_pdus(const struct nvme_tcp_queue *queue)
{
    return trace_is_on(queue->tcp->config.trace, TRACE_GROUP_PDUS);
}

/* ---- tcp_fault.c: fault rules for PDUs. */

enum nvme_tcp_fault_action tcp_fault_event_now(struct nvme_tcp_queue *queue,
                                               bool is_sent,
                                               const struct tcp_pdu_head *head);

/** What a rule does with a PDU that has come, or is about to be sent. */
static inline enum nvme_tcp_fault_action tcp_fault_event(
    struct nvme_tcp_queue *queue, bool is_sent, const struct tcp_pdu_head *head)
{
    const struct nvme_tcp_faults *faults = queue->tcp->config.faults;

    return faults != NULL && __builtin_expect(faults->count != 0, 0)
               ? tcp_fault_event_now(queue, is_sent, head)
               : NVME_TCP_FAULT_NONE;
}

/* ---- tcp_send.c: PDUs of the drive. */

void tcp_queue_send_ic_resp(struct nvme_tcp_queue *queue);

/** Queue a C2HTermReq, and end the connection after it. */
void tcp_queue_send_term(struct nvme_tcp_queue *queue, struct tcp_pdu_term term,
                         const uint8_t *header, uint8_t header_len);

/** Make PDUs of waiting requests, and give pieces to the socket. */
void tcp_queue_send(struct nvme_tcp_queue *queue);

/** The oldest send() was acknowledged, or its connection has ended. */
void tcp_queue_sent(struct nvme_tcp_queue *queue, bool is_ok);

/** Forget what was not given to the socket. */
void tcp_queue_drop_unsent(struct nvme_tcp_queue *queue);

static inline bool tcp_queue_is_idle(const struct nvme_tcp_queue *queue)
{
    return queue->span_head == queue->span_tail && queue->waiting.first == NULL;
}

#endif
