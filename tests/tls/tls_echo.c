/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TLS server for one connection: it sends back what it receives.
 *
 *   tls_echo KEY
 *
 * KEY is a key as `nvme gen-tls-key` prints it; any host may use it.  The port
 * is the first line of output.  The last one is "closed", or "failed" with the
 * alert that was sent, or "alerted".
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "firmware/crypto/aead.h"
#include "nvmeof/tls/tls_server.h"

static struct crypto arithmetic;
static struct tls_crypto crypto;
static struct auth_key key;
static struct tls_server server;
static struct tls_half receives, sends;

static void fill_random(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    if (getrandom(buf, len, 0) != (ssize_t)len) {
        abort();
    }
}

static unsigned int find_keys(void *ctx, const struct tls_identity *identity,
                              struct tls_secret *keys)
{
    unsigned int count = 0;

    (void)ctx;
    for (int style = 0; style < TLS_STYLES; style++) {
        count += tls_psk_derive(&crypto, &key, identity, (enum tls_style)style,
                                &keys[count]);
    }
    return count;
}

static int listen_and_accept(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int fd;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, len) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0) {
        abort();
    }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    fd = accept(listener, NULL, NULL);
    close(listener);
    return fd;
}

static void send_out(int fd)
{
    if (server.out_len != 0 &&
        write(fd, server.out, server.out_len) != server.out_len) {
        printf("gone\n");
        exit(1);
    }
    server.out_len = 0;
}

/* @return whether there is a connection now */
static bool shake_hands(int fd)
{
    uint8_t byte;

    while (server.state != TLS_SERVER_DONE &&
           server.state != TLS_SERVER_FAILED) {
        if (tls_server_step(&server)) {
            send_out(fd);
        } else if (read(fd, &byte, 1) != 1 ||
                   tls_server_take(&server, &byte, 1) != 1) {
            printf("gone\n");
            return false;
        }
    }
    send_out(fd);
    if (server.state == TLS_SERVER_DONE) {
        return true;
    }
    if (server.was_alerted) {
        printf("alerted\n");
    } else {
        printf("failed %u\n", server.alert);
    }
    return false;
}

static bool read_all(int fd, uint8_t *bytes, size_t len)
{
    while (len != 0) {
        ssize_t now = read(fd, bytes, len);

        if (now <= 0) {
            return false;
        }
        bytes += now;
        len -= (size_t)now;
    }
    return true;
}

/* @return the type of the record; TLS_TYPE_NONE at the end */
static uint8_t receive_record(int fd, uint8_t *record, size_t *len)
{
    struct tls_header header;
    uint8_t *data = record + TLS_HEADER_LEN;

    if (!read_all(fd, record, TLS_HEADER_LEN) ||
        tls_header_parse(&header, record) != TLS_ALERT_NONE ||
        !read_all(fd, data, header.len_bytes)) {
        return TLS_TYPE_NONE;
    }
    tls_open_begin(&receives, &crypto, record);
    *len = header.len_bytes - (size_t)TLS_TAG_LEN;
    crypto.aead_add(&receives.aead, data, data, *len);
    if (!tls_open_end(&receives, &crypto, data + *len)) {
        return TLS_TYPE_NONE;
    }
    return data[--*len];
}

static void echo_records(int fd)
{
    static uint8_t record[TLS_HEADER_LEN + TLS_CIPHER_MAX];
    static uint8_t reply[TLS_HEADER_LEN + TLS_CIPHER_MAX];
    uint8_t type;
    size_t len = 0;

    while ((type = receive_record(fd, record, &len)) == TLS_TYPE_DATA) {
        size_t out = tls_seal(&sends, &crypto, TLS_TYPE_DATA,
                              record + TLS_HEADER_LEN, (uint32_t)len, reply);

        if (write(fd, reply, out) != (ssize_t)out) {
            break;
        }
    }
    printf(type == TLS_TYPE_ALERT ? "closed\n" : "gone\n");
}

int main(int argc, char **argv)
{
    const struct tls_server_config config = {&crypto, find_keys, NULL};
    int fd;

    if (argc != 2 || !auth_psk_parse(&key, argv[1])) {
        fprintf(stderr, "usage: tls_echo KEY\n");
        return 2;
    }
    crypto_init(&arithmetic, fill_random, NULL);
    crypto = crypto_tls_ops(&arithmetic);
    fd = listen_and_accept();
    tls_server_start(&server, &config);
    if (shake_hands(fd)) {
        enum auth_hash hash = (enum auth_hash)server.hash;

        tls_half_init(&receives, &crypto, hash, &server.from_client);
        tls_half_init(&sends, &crypto, hash, &server.from_server);
        tls_server_wipe(&server);
        echo_records(fd);
    }
    close(fd);
    return 0;
}
