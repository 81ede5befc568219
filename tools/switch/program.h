/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-switch: the parts of the program.  One thread waits in epoll_wait();
 * sockets are edge-triggered, so that a device that is not read costs nothing.
 */
#ifndef ESSD_TOOLS_SWITCH_PROGRAM_H
#define ESSD_TOOLS_SWITCH_PROGRAM_H

#include <sys/epoll.h>
#include <sys/types.h>

#include "net/switch/switch.h"
#include "words.h"

enum {
    CLIENTS = 16,
    REQUEST_LEN = 4096, /* bytes of a line, with its end */
    ANSWER_MAX = 1 << 20,
    CAPTURE_BUFFER = 512 * 1024,
};

struct program;

/* A file that epoll watches. */
struct source {
    /* Events of epoll; level- or edge-triggered, as source_open() was told. */
    void (*ready)(struct program *program, struct source *source,
                  uint32_t events);
    int fd;         /* -1: closed */
    uint8_t number; /* of the port or the client */
};

/* A process that writes the frames of one port into a file. */
struct capture {
    struct source source; /* the socket to the process */
    pid_t pid;
    uint8_t *buffer; /* records that the socket did not take yet */
    uint32_t used;
    bool blocked;     /* the socket is full */
    uint64_t records; /* frames that were given to the process */
    uint64_t lost;    /* frames that were not captured */
};

/* A device that takes and gives single frames: tap, packet socket. */
struct frame_device;

struct port {
    struct port_options options;
    struct source listener; /* of PORT_LISTEN and PORT_TCP_LISTEN */
    struct source device;   /* connection, or the device itself */
    bool connecting;        /* PORT_TCP: connect() has not ended */
    bool readable;
    bool writable;
    bool hung_up;           /* the peer will send no more */
    uint64_t retry_ns;      /* when to dial again, or look at a waiting
                             * connection again; UINT64_MAX: never */
    uint64_t retry_wait_ns; /* the wait before retry_ns */
    uint64_t connections;
    uint32_t lines_left; /* log lines that may be written before lines_ns */
    uint64_t lines_ns;
    struct frame_device *frames;
    struct capture capture;
};

/* Text that is written for a client. */
struct answer {
    char *text; /* ANSWER_MAX bytes */
    size_t len;
    bool overflowed;
};

struct client {
    struct source source;
    bool watches;
    bool closing; /* to be closed when its answer has been sent */
    uint64_t heard_ns;
    size_t request_len;
    char request[REQUEST_LEN];
    char *output; /* what the socket did not take yet */
    size_t output_len;
    size_t output_room;
};

struct program {
    int epoll;
    struct source timer;
    struct source signals;
    uint64_t timer_ns; /* when the timer expires; UINT64_MAX: never */
    uint64_t now_ns;
    bool stops;
    struct switch_core *core;
    struct port ports[SWITCH_PORTS];
    uint8_t port_count;
    const char *control_path;
    struct source control;
    struct client clients[CLIENTS];
    uint8_t client_turn; /* who is answered first */
    struct answer answer;
};

/* ---- source.c */

/** Have epoll watch a file; `events` as epoll_ctl() takes them. */
MUST_USE bool source_open(struct program *program, struct source *source,
                          int fd, uint32_t events);
void source_change(struct program *program, struct source *source,
                   uint32_t events);
void source_close(struct source *source);

/* ---- log.c */

/** Write one line about the program. */
__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);

/** Write one line about a port, unless there were many of them just now. */
__attribute__((format(printf, 3, 4))) void log_port(struct program *program,
                                                    uint8_t number,
                                                    const char *format, ...);

/* ---- address.c */

/** Make a listening socket.  @return its descriptor, or -1 with a complaint */
MUST_USE int listen_unix(const char *path, int backlog,
                         struct complaint *complaint);
MUST_USE int listen_tcp(const char *address, struct complaint *complaint);

/**
 * Begin to connect.
 *
 * @return the descriptor of the socket; -1 on failure
 */
MUST_USE int dial_unix(const char *path);
MUST_USE int dial_tcp(const char *address, bool *in_progress);

/** Whether an address of PORT_DIAL or PORT_TCP is valid. */
MUST_USE bool check_dial_unix(const char *path, struct complaint *complaint);
MUST_USE bool check_dial_tcp(const char *address, struct complaint *complaint);

/** Whether a TCP peer has left sent bytes without an acknowledgement for long.
 */
MUST_USE bool tcp_peer_is_silent(int fd);

/**
 * Set the socket options of a port's connection: a large send buffer, and TCP
 * probes that notice when the peer has failed.
 */
void tune_connection(int fd, bool is_tcp);

/** The address of a listening TCP socket. */
void tcp_address_text(int fd, char *text, size_t room);

/* ---- port.c */

/** Open a port: listen, dial, or open the device. */
MUST_USE bool port_open(struct program *program, uint8_t number,
                        struct complaint *complaint);
void port_close(struct program *program, uint8_t number);

/** A device was opened, or a peer connected. */
MUST_USE bool port_attach(struct program *program, uint8_t number, int fd);

/** Close a port's device: the peer has disconnected, or the device failed. */
void port_detach(struct program *program, uint8_t number, const char *why);

/** Dial again, or look at waiting connections, on ports whose retry_ns is past.
 */
void ports_dial(struct program *program);

/** When to dial next; UINT64_MAX: never. */
MUST_USE uint64_t ports_next_dial_ns(const struct program *program);

/** Read from all ports that can be read. */
void ports_read(struct program *program);

/** Write to all ports that have something to send. */
void ports_write(struct program *program);

/** Whether a port could be read, or written, at once. */
MUST_USE bool ports_have_work(struct program *program);

/* ---- frames.c */

/** Open a tap or packet socket. @return its descriptor, or -1 */
MUST_USE int frames_open(struct program *program, uint8_t number,
                         struct complaint *complaint);
void frames_close(struct port *port);

/** Whether a frame of this device can be taken. */
MUST_USE bool frames_have_room(struct program *program, uint8_t number);
void frames_read(struct program *program, uint8_t number);
void frames_write(struct program *program, uint8_t number);

/* ---- capture.c */

/** Start to capture as the port's options say. */
MUST_USE bool capture_start(struct program *program, uint8_t number,
                            struct complaint *complaint);
void capture_stop(struct program *program, uint8_t number);
void capture_frame(void *opaque, uint8_t number, const struct tx_piece data[2]);

/** Give what was captured to the processes. */
void captures_flush(struct program *program);

/* ---- control.c, show.c */

MUST_USE bool control_open(struct program *program,
                           struct complaint *complaint);
void control_close(struct program *program);

/** Send a line about a port's change to the clients that watch. */
void control_announce(struct program *program, uint8_t number);

/** Answer a request that waits. @return whether there may be more */
bool control_work(struct program *program);

__attribute__((format(printf, 2, 3))) void answer_add(struct answer *answer,
                                                      const char *format, ...);
void answer_add_string(struct answer *answer, const char *text);
void show_port(struct program *program, uint8_t number);
void show_switch(struct program *program);
void show_macs(struct program *program);
void show_connections(struct program *program);
void show_connection(struct program *program, uint8_t number);
void show_words(struct program *program);

#endif
