/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures of single ports: pcap files with nanoseconds.
 *
 * Writing a file can block for seconds: a full page cache, a network drive, a
 * pipe that nobody reads.  So a child process writes it, and gets whole records
 * over a socket.  When it does not keep up, or the disk is full, frames are
 * left out of the capture and counted; the switch does not wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/bytes.h"
#include "program.h"

enum {
    PCAP_MAGIC = 0xa1b23c4d, /* with nanoseconds */
    PCAP_VERSION_MAJOR = 2,
    PCAP_VERSION_MINOR = 4,
    PCAP_SNAPLEN = 262144,
    PCAP_LINK_ETHERNET = 1,
    PCAP_FILE_HEADER = 24,
    PCAP_RECORD_HEADER = 16,
    PCAP_RECORD_LEN = 8, /* offset of the captured length */
    MESSAGE_MAX = 100 * 1024,
    CHILD_SOCKET = 3,
    CHILD_FILE = 4,
    CHILD_FIRST_UNUSED = 5,
};

/* ---- The process that writes */

struct writer {
    const struct capture_options *options;
    uint64_t written; /* bytes of whole records, and the header */
    bool is_regular;
};

static bool writer_put(struct writer *writer, const uint8_t *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(CHILD_FILE, data + done, len - done);

        if (n < 0 && errno != EINTR) {
            /* No part of a record may stay: the next one follows here. */
            if (writer->is_regular) {
                (void)ftruncate(CHILD_FILE, (off_t)writer->written);
                (void)lseek(CHILD_FILE, (off_t)writer->written, SEEK_SET);
            }
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    writer->written += len;
    return true;
}

static bool writer_put_header(struct writer *writer)
{
    uint8_t header[PCAP_FILE_HEADER] = {0};

    put_le32(header, PCAP_MAGIC);
    put_le16(header + 4, PCAP_VERSION_MAJOR);
    put_le16(header + 6, PCAP_VERSION_MINOR);
    put_le32(header + 16, PCAP_SNAPLEN);
    put_le32(header + 20, PCAP_LINK_ETHERNET);
    return writer_put(writer, header, sizeof(header));
}

/* FILE becomes FILE.1, FILE.1 becomes FILE.2, and so on. */
static void writer_rotate(struct writer *writer)
{
    const char *file = writer->options->file;
    char from[PATH_MAX], to[PATH_MAX];
    int fd;

    for (uint32_t i = writer->options->files; i != 0; i--) {
        int n = i == 1 ? snprintf(from, sizeof(from), "%s", file)
                       : snprintf(from, sizeof(from), "%s.%u", file, i - 1);

        if (n < (int)sizeof(from) &&
            snprintf(to, sizeof(to), "%s.%u", file, i) < (int)sizeof(to)) {
            (void)rename(from, to);
        }
    }
    fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0) {
        (void)dup2(fd, CHILD_FILE);
        (void)close(fd);
        writer->written = 0;
    }
}

static uint32_t count_records(const uint8_t *data, size_t len)
{
    uint32_t count = 0;

    for (size_t at = 0; at < len; count++) {
        at += PCAP_RECORD_HEADER + get_le32(data + at + PCAP_RECORD_LEN);
    }
    return count;
}

/* Write records, after the header if a full disk has delayed that. */
static bool writer_put_records(struct writer *writer, const uint8_t *data,
                               size_t len)
{
    uint64_t limit = writer->options->limit_bytes;

    if (limit != 0 && writer->is_regular &&
        writer->written > PCAP_FILE_HEADER && writer->written + len > limit) {
        writer_rotate(writer);
    }
    return (writer->written != 0 || writer_put_header(writer)) &&
           writer_put(writer, data, len);
}

/* Until the switch ends, or ends the capture. */
__attribute__((noreturn)) static void writer_run(
    const struct capture_options *options)
{
    static uint8_t message[MESSAGE_MAX];
    struct writer writer = {.options = options};
    struct stat status;
    ssize_t n;

    writer.is_regular =
        fstat(CHILD_FILE, &status) == 0 && S_ISREG(status.st_mode);
    (void)writer_put_header(&writer);
    while ((n = recv(CHILD_SOCKET, message, sizeof(message), 0)) > 0) {
        if (!writer_put_records(&writer, message, (size_t)n)) {
            uint32_t lost = count_records(message, (size_t)n);

            /* Wait until the switch has room for this, so that every loss is
             * counted.  The switch never waits for this process. */
            (void)send(CHILD_SOCKET, &lost, sizeof(lost), MSG_NOSIGNAL);
        }
    }
    _exit(0);
}

__attribute__((noreturn)) static void writer_begin(
    const struct capture_options *options, int sock, int file)
{
    /* Move both descriptors away first, so that dup2() overwrites neither. */
    int high_sock = fcntl(sock, F_DUPFD, CHILD_FIRST_UNUSED);
    int high_file = fcntl(file, F_DUPFD, CHILD_FIRST_UNUSED);

    if (dup2(high_sock, CHILD_SOCKET) < 0 || dup2(high_file, CHILD_FILE) < 0) {
        _exit(1);
    }
    (void)close_range(CHILD_FIRST_UNUSED, ~0U, 0);
    (void)fcntl(CHILD_FILE, F_SETFL, fcntl(CHILD_FILE, F_GETFL) & ~O_NONBLOCK);
    writer_run(options);
}

/* ---- The switch's side */

static void capture_ready(struct program *program, struct source *source,
                          uint32_t events)
{
    struct capture *capture = &program->ports[source->number].capture;
    uint32_t lost;
    ssize_t n;

    if (source->fd < 0) {
        return;
    }
    while ((n = recv(source->fd, &lost, sizeof(lost), MSG_DONTWAIT)) ==
           sizeof(lost)) {
        if (capture->lost == 0) {
            log_port(program, source->number,
                     "capture: cannot write %s; frames are left out",
                     program->ports[source->number].options.capture.file);
        }
        capture->lost += lost;
        capture->records -= MIN(lost, capture->records);
    }
    if (n == 0) {
        log_port(program, source->number,
                 "capture: the process that wrote %s was ended from outside",
                 program->ports[source->number].options.capture.file);
        capture_stop(program, source->number);
        return;
    }
    capture->blocked &= !(events & EPOLLOUT);
}

/* A file that another capture still writes keeps its bytes. */
static int capture_create(const char *file, struct complaint *complaint)
{
    struct stat status;
    int fd;

    if (lstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        (void)unlink(file);
    }
    fd =
        open(file, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)complain(complaint, "capture=%.300s: %s", file,
                       errno == ENXIO ? "nobody reads that pipe"
                                      : strerror(errno));
    }
    return fd;
}

bool capture_start(struct program *program, uint8_t number,
                   struct complaint *complaint)
{
    struct port *port = &program->ports[number];
    struct capture *capture = &port->capture;
    int bytes = 4 * 1024 * 1024, sockets[2], file;

    file = capture_create(port->options.capture.file, complaint);
    if (file < 0) {
        return false;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        (void)close(file);
        return complain(complaint, "capture: %s", strerror(errno));
    }
    (void)setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    *capture = (struct capture){.source = {capture_ready, -1, number},
                                .buffer = malloc(CAPTURE_BUFFER)};
    capture->pid = capture->buffer != NULL ? fork() : -1;
    if (capture->pid == 0) {
        writer_begin(&port->options.capture, sockets[1], file);
    }
    (void)close(sockets[1]);
    (void)close(file);
    if (capture->pid < 0 ||
        !source_open(program, &capture->source, sockets[0],
                     EPOLLIN | EPOLLOUT | (uint32_t)EPOLLET)) {
        (void)close(sockets[0]);
        free(capture->buffer);
        *capture = (struct capture){.source = {capture_ready, -1, number}};
        return complain(complaint, "capture: %s", strerror(errno));
    }
    switch_port_capture(program->core, number, true);
    return true;
}

static uint32_t capture_record_len(const uint8_t *record)
{
    return PCAP_RECORD_HEADER + get_le32(record + PCAP_RECORD_LEN);
}

/* Give whole records to the process, as many as it takes. */
static void capture_flush(struct capture *capture)
{
    uint32_t sent = 0;

    while (sent < capture->used && !capture->blocked) {
        uint32_t len = capture_record_len(capture->buffer + sent);

        while (sent + len < capture->used &&
               len + capture_record_len(capture->buffer + sent + len) <=
                   MESSAGE_MAX) {
            len += capture_record_len(capture->buffer + sent + len);
        }
        if (send(capture->source.fd, capture->buffer + sent, len,
                 MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len) {
            sent += len;
        } else {
            capture->blocked = true;
        }
    }
    capture->used -= sent;
    memmove(capture->buffer, capture->buffer + sent, capture->used);
}

void captures_flush(struct program *program)
{
    for (uint8_t i = 0; i < program->port_count; i++) {
        struct capture *capture = &program->ports[i].capture;

        if (capture->used != 0) {
            capture_flush(capture);
        }
    }
}

void capture_stop(struct program *program, uint8_t number)
{
    struct capture *capture = &program->ports[number].capture;

    if (capture->buffer == NULL) {
        return;
    }
    capture_flush(capture);
    switch_port_capture(program->core, number, false);
    /* The process writes what it has, and ends. */
    source_close(&capture->source);
    free(capture->buffer);
    capture->buffer = NULL;
    capture->used = 0;
}

void capture_frame(void *opaque, uint8_t number, const struct tx_piece data[2])
{
    struct program *program = opaque;
    struct capture *capture = &program->ports[number].capture;
    uint32_t len = (uint32_t)(data[0].len + data[1].len);
    uint8_t *record = capture->buffer + capture->used;
    struct timespec now;

    if (capture->buffer == NULL) {
        return;
    }
    if (CAPTURE_BUFFER - capture->used < PCAP_RECORD_HEADER + len) {
        capture->lost++;
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    put_le32(record, (uint32_t)now.tv_sec);
    put_le32(record + 4, (uint32_t)now.tv_nsec);
    put_le32(record + PCAP_RECORD_LEN, len);
    put_le32(record + 12, len);
    memcpy(record + PCAP_RECORD_HEADER, data[0].data, data[0].len);
    memcpy(record + PCAP_RECORD_HEADER + data[0].len, data[1].data,
           data[1].len);
    capture->used += PCAP_RECORD_HEADER + len;
    capture->records++;
}
