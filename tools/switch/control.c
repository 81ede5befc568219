/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control socket: one request a line, one line of JSON for each.
 *
 * A client is read only when its answers have gone out, one request is answered
 * in each round of the loop, and all memory of a client is bounded, so that no
 * client can keep the switch from its work.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program.h"

enum { WORDS_MAX = 64 };

/* ---- Clients */

static void client_close(struct client *client)
{
    source_close(&client->source);
    free(client->output);
    client->output = NULL;
    client->output_len = client->output_room = 0;
    client->watches = client->closing = false;
    client->request_len = 0;
}

static bool client_is_open(const struct client *client)
{
    return client->source.fd >= 0;
}

/* Set what epoll waits for.  It always reports the end of a client. */
static void client_update_events(struct program *program, struct client *client)
{
    uint32_t events = 0;

    if (client->output_len != 0) {
        events = EPOLLOUT;
    } else if (!client->closing && client->request_len < REQUEST_LEN) {
        events = EPOLLIN;
    }
    source_change(program, &client->source, events);
}

/* Send what waits. */
static void client_flush(struct program *program, struct client *client)
{
    ssize_t n = send(client->source.fd, client->output, client->output_len,
                     MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            client_close(client);
        }
        return;
    }
    client->output_len -= (size_t)n;
    memmove(client->output, client->output + n, client->output_len);
    if (client->output_len == 0) {
        free(client->output);
        client->output = NULL;
        client->output_room = 0;
        client_update_events(program, client);
    }
}

/* Have room for `len` bytes of output; it grows by doubling. */
static bool client_make_room(struct client *client, size_t len)
{
    size_t room = MAX(client->output_room, (size_t)4096);
    char *output;

    if (len > ANSWER_MAX) {
        return false;
    }
    while (room < len) {
        room *= 2;
    }
    if (room == client->output_room) {
        return true;
    }
    output = realloc(client->output, room);
    if (output == NULL) {
        return false;
    }
    client->output = output;
    client->output_room = room;
    return true;
}

/* Queue the answer that was made, as a line. */
static void client_send_answer(struct program *program, struct client *client)
{
    struct answer *answer = &program->answer;
    size_t before = client->output_len;

    if (answer->overflowed ||
        !client_make_room(client, before + answer->len + 1)) {
        client_close(client); /* it watches, and does not read */
        return;
    }
    memcpy(client->output + before, answer->text, answer->len);
    client->output[before + answer->len] = '\n';
    client->output_len += answer->len + 1;
    if (before != 0) {
        return; /* epoll tells when it goes on */
    }
    client_flush(program, client);
    if (client_is_open(client)) {
        client_update_events(program, client);
    }
}

static void answer_clear(struct answer *answer)
{
    answer->len = 0;
    answer->overflowed = false;
}

void control_announce(struct program *program, uint8_t number)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &program->clients[i];

        if (client_is_open(client) && client->watches) {
            answer_clear(&program->answer);
            answer_add(&program->answer, "{\"event\": \"connection\", ");
            show_connection(program, number);
            answer_add(&program->answer, "}");
            client_send_answer(program, client);
        }
    }
}

/* ---- Requests */

/* The words of a request; the first is its name. */
struct request {
    struct client *client;
    char *words[WORDS_MAX];
    unsigned count;
    /* The number that the client has given it, as "#7 show"; the answer repeats
     * it. */
    uint64_t number;
    bool has_number;
};

/* Begin an answer with the request's number and the name of its only other
 * member. */
static void answer_begin(struct program *program, const struct request *request,
                         const char *member)
{
    answer_clear(&program->answer);
    answer_add(&program->answer, "{");
    if (request->has_number) {
        answer_add(&program->answer, "\"id\": %" PRIu64 ", ", request->number);
    }
    answer_add(&program->answer, "\"%s\": ", member);
}

static void answer_error(struct program *program, const struct request *request,
                         const char *text)
{
    answer_begin(program, request, "error");
    answer_add_string(&program->answer, text);
    answer_add(&program->answer, "}");
}

static bool find_port(const struct program *program, const char *text,
                      uint8_t *number, struct complaint *complaint)
{
    uint64_t value;

    if (words_number(text, UINT8_MAX, &value) && value < program->port_count) {
        *number = (uint8_t)value;
        return true;
    }
    for (uint8_t i = 0; i < program->port_count; i++) {
        if (strcmp(program->ports[i].options.name, text) == 0) {
            *number = i;
            return true;
        }
    }
    return complain(complaint,
                    "port=%.100s: there is no such port; the switch "
                    "has ports 0 to %d",
                    text, program->port_count - 1);
}

/* The value of a word KEY=VALUE if its key is `key`; else NULL. */
static const char *word_value(const char *word, const char *key)
{
    size_t len = strlen(key);

    return strncmp(word, key, len) == 0 && word[len] == '=' ? word + len + 1
                                                            : NULL;
}

/* Of a request with no other word than `port=`, which may be missing. */
static bool take_port(const struct program *program,
                      const struct request *request, bool *has_port,
                      uint8_t *number, struct complaint *complaint)
{
    const char *value;

    *has_port = request->count > 1;
    if (!*has_port) {
        return true;
    }
    value = word_value(request->words[1], "port");
    if (request->count > 2 || value == NULL) {
        return complain(complaint, "%s takes port=NUMBER, or nothing",
                        request->words[0]);
    }
    return find_port(program, value, number, complaint);
}

typedef bool request_handler(struct program *program, struct request *request,
                             struct complaint *complaint);

static bool do_show(struct program *program, struct request *request,
                    struct complaint *complaint)
{
    bool has_port;
    uint8_t number = 0;

    if (!take_port(program, request, &has_port, &number, complaint)) {
        return false;
    }
    if (has_port) {
        show_port(program, number);
    } else {
        show_switch(program);
    }
    return true;
}

static bool do_macs(struct program *program, struct request *request,
                    struct complaint *complaint)
{
    (void)request;
    (void)complaint;
    show_macs(program);
    return true;
}

static bool do_reset(struct program *program, struct request *request,
                     struct complaint *complaint)
{
    bool has_port;
    uint8_t number = 0;

    if (!take_port(program, request, &has_port, &number, complaint)) {
        return false;
    }
    for (uint8_t i = 0; i < program->port_count; i++) {
        if (!has_port || i == number) {
            switch_port_reset_counters(program->core, i);
        }
    }
    answer_add(&program->answer, "{}");
    return true;
}

static bool do_flush(struct program *program, struct request *request,
                     struct complaint *complaint)
{
    bool has_port;
    uint8_t number = 0;

    if (!take_port(program, request, &has_port, &number, complaint)) {
        return false;
    }
    switch_forget(program->core, has_port ? number : FDB_NO_PORT);
    answer_add(&program->answer, "{}");
    return true;
}

static bool do_watch(struct program *program, struct request *request,
                     struct complaint *complaint)
{
    (void)complaint;
    request->client->watches = true;
    show_connections(program);
    return true;
}

static bool set_switch(struct program *program, const struct request *request,
                       struct complaint *complaint)
{
    struct switch_settings settings = switch_settings(program->core);

    for (unsigned i = 1; i < request->count; i++) {
        const char *ageing = word_value(request->words[i], "ageing");
        const char *link_local = word_value(request->words[i], "link-local");
        uint64_t seconds;

        if (ageing != NULL && words_number(ageing, UINT32_MAX, &seconds)) {
            settings.ageing_s = (uint32_t)seconds;
        } else if (link_local != NULL && (strcmp(link_local, "drop") == 0 ||
                                          strcmp(link_local, "forward") == 0)) {
            settings.forwards_link_local = strcmp(link_local, "forward") == 0;
        } else {
            return complain(complaint,
                            "%.100s: set takes port= and words of "
                            "the port, or ageing=SECONDS and "
                            "link-local=drop|forward",
                            request->words[i]);
        }
    }
    switch_set(program->core, &settings);
    answer_add(&program->answer, "{}");
    return true;
}

static bool capture_differs(const struct capture_options *a,
                            const struct capture_options *b)
{
    return strcmp(a->file, b->file) != 0 || a->limit_bytes != b->limit_bytes ||
           a->files != b->files;
}

/* Apply valid options.  @return false when the capture cannot be started */
static bool set_port_options(struct program *program, uint8_t number,
                             const struct port_options *options,
                             struct complaint *complaint)
{
    struct port *port = &program->ports[number];
    bool link_was_up = port->options.config.link_up;

    if (capture_differs(&options->capture, &port->options.capture)) {
        capture_stop(program, number);
        port->options.capture = options->capture;
        if (options->capture.file[0] != '\0' &&
            !capture_start(program, number, complaint)) {
            port->options.capture.file[0] = '\0';
            return false;
        }
    }
    port->options = *options;
    switch_port_set(program->core, number, &options->config);
    if (options->seed_given) {
        switch_port_reseed(program->core, number);
    }
    if (options->config.link_up != link_was_up) {
        log_port(program, number, "link %s",
                 options->config.link_up ? "up" : "down");
        control_announce(program, number);
    }
    return true;
}

static bool set_port(struct program *program, const struct request *request,
                     const char *name, struct complaint *complaint)
{
    struct port_options options;
    uint8_t number = 0;

    if (!find_port(program, name, &number, complaint)) {
        return false;
    }
    options = program->ports[number].options;
    options.native_given = options.seed_given = false;
    for (unsigned i = 2; i < request->count; i++) {
        if (!words_apply(&options, request->words[i], false, complaint)) {
            return false;
        }
    }
    if (!words_finish(&options, complaint) ||
        !set_port_options(program, number, &options, complaint)) {
        return false;
    }
    /* control_announce() may have written into `answer`: start it again. */
    answer_begin(program, request, "return");
    show_port(program, number);
    return true;
}

static bool do_set(struct program *program, struct request *request,
                   struct complaint *complaint)
{
    const char *name =
        request->count > 1 ? word_value(request->words[1], "port") : NULL;

    if (request->count < 2) {
        return complain(complaint, "set needs words, such as port=3 loss=0.01");
    }
    return name != NULL ? set_port(program, request, name, complaint)
                        : set_switch(program, request, complaint);
}

static request_handler do_help;

static const struct request_kind {
    const char *name;
    request_handler *handler;
} requests[] = {
    {"show", do_show},   {"macs", do_macs},   {"set", do_set},
    {"reset", do_reset}, {"flush", do_flush}, {"watch", do_watch},
    {"help", do_help},
};

static bool do_help(struct program *program, struct request *request,
                    struct complaint *complaint)
{
    (void)request;
    (void)complaint;
    answer_add(&program->answer, "{\"requests\": [");
    for (unsigned i = 0; i < ARRAY_LEN(requests); i++) {
        answer_add(&program->answer, "%s\"%s\"", i == 0 ? "" : ", ",
                   requests[i].name);
    }
    answer_add(&program->answer, "], \"words\": ");
    show_words(program);
    answer_add(&program->answer, "}");
    return true;
}

/* Take the number from the beginning of a line, which it need not have.
 * @return the rest of the line */
static char *split_number(struct request *request, char *line)
{
    char *rest = line;
    char *word;

    if (line[0] != '#') {
        return line;
    }
    word = strsep(&rest, " ") + 1;
    request->has_number = words_number(word, INT64_MAX, &request->number);
    if (!request->has_number && rest != NULL) {
        rest[-1] = ' ';
    }
    if (!request->has_number) {
        return line;
    }
    return rest != NULL ? rest : word + strlen(word);
}

/* @return false when there are more words than any request has */
static bool split_request(struct request *request, char *line)
{
    line = split_number(request, line);
    for (char *word; (word = strsep(&line, " \t\r")) != NULL;) {
        if (*word == '\0') {
            continue;
        }
        if (request->count == WORDS_MAX) {
            return false;
        }
        request->words[request->count++] = word;
    }
    return true;
}

static void answer_request(struct program *program, struct request *request)
{
    struct complaint complaint = {""};
    const char *name = request->count != 0 ? request->words[0] : "";

    for (unsigned i = 0; i < ARRAY_LEN(requests); i++) {
        if (strcmp(requests[i].name, name) == 0) {
            answer_begin(program, request, "return");
            if (requests[i].handler(program, request, &complaint)) {
                answer_add(&program->answer, "}");
            } else {
                answer_error(program, request, complaint.text);
            }
            if (program->answer.overflowed) {
                answer_error(program, request, "the answer is too long");
            }
            return;
        }
    }
    (void)complain(&complaint,
                   "%.100s: there is no such request; help lists "
                   "them",
                   name);
    answer_error(program, request, complaint.text);
}

static void client_answer_line(struct program *program, struct client *client,
                               char *line)
{
    struct request request = {.client = client};

    client->heard_ns = program->now_ns;
    if (split_request(&request, line)) {
        answer_request(program, &request);
    } else {
        answer_error(program, &request, "the request has more than 64 words");
    }
    if (client_is_open(client)) { /* an announcement may have closed it */
        client_send_answer(program, client);
    }
}

/* ---- Lines of a client */

static void client_refuse_line(struct program *program, struct client *client)
{
    const struct request request = {.client = client};

    answer_error(program, &request, "a request has at most 4096 bytes");
    client->request_len = 0;
    client->closing = true;
    client_send_answer(program, client);
}

/* Answer one request of a client, if a whole one is there. */
static void client_work(struct program *program, struct client *client)
{
    char line[REQUEST_LEN];
    char *end = memchr(client->request, '\n', client->request_len);
    size_t len;

    if (end == NULL && client->closing && client->request_len != 0 &&
        client->request_len < REQUEST_LEN) {
        client->request[client->request_len++] = '\n';
        end = client->request + client->request_len - 1;
    }
    if (end == NULL) {
        if (client->request_len == REQUEST_LEN) {
            client_refuse_line(program, client);
        } else if (client->closing) {
            client_close(client);
        }
        return;
    }
    len = (size_t)(end - client->request);
    memcpy(line, client->request, len);
    line[len] = '\0';
    client->request_len -= len + 1;
    memmove(client->request, end + 1, client->request_len);
    client_answer_line(program, client, line);
}

/*
 * Whether a client can be served: its answers were sent, and it has sent a
 * whole line or has ended.
 */
static bool client_has_work(const struct client *client)
{
    return client_is_open(client) && client->output_len == 0 &&
           (client->closing || client->request_len == REQUEST_LEN ||
            memchr(client->request, '\n', client->request_len) != NULL);
}

/*
 * Answer one request of one client, because the longest answers take
 * milliseconds to make.
 */
bool control_work(struct program *program)
{
    bool has_worked = false;

    for (uint8_t i = 0; i < CLIENTS; i++) {
        uint8_t number = (uint8_t)((program->client_turn + i) % CLIENTS);
        struct client *client = &program->clients[number];

        if (!client_has_work(client)) {
            continue;
        }
        if (has_worked) {
            return true;
        }
        client_work(program, client);
        has_worked = true;
        program->client_turn = (uint8_t)((number + 1) % CLIENTS);
    }
    /* The client that was answered may have sent more requests. */
    return has_worked;
}

static void client_read(struct program *program, struct client *client)
{
    size_t room = REQUEST_LEN - client->request_len;
    ssize_t n;

    if (room == 0 || client->closing) {
        return;
    }
    n = recv(client->source.fd, client->request + client->request_len, room,
             MSG_DONTWAIT);
    if (n > 0) {
        client->request_len += (size_t)n;
    } else if (n == 0) {
        client->closing = true; /* what it asked is answered first */
    } else if (errno != EAGAIN && errno != EINTR) {
        client_close(client);
        return;
    }
    client_update_events(program, client);
}

static void client_ready(struct program *program, struct source *source,
                         uint32_t events)
{
    struct client *client = &program->clients[source->number];

    if (source->fd < 0) {
        return;
    }
    if (events & (EPOLLHUP | EPOLLERR)) {
        client_close(client);
        return;
    }
    if (events & EPOLLOUT) {
        client_flush(program, client);
    }
    if (client_is_open(client) && events & EPOLLIN) {
        client_read(program, client);
    }
}

/* ---- New clients */

/*
 * Find a free place, or else close the client that was silent for longest and
 * does not watch.
 */
static struct client *find_place(struct program *program)
{
    struct client *found = NULL;

    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &program->clients[i];

        if (!client_is_open(client)) {
            return client;
        }
        if (!client->watches &&
            (found == NULL || client->heard_ns < found->heard_ns)) {
            found = client;
        }
    }
    if (found != NULL) {
        client_close(found);
    }
    return found;
}

static void control_ready(struct program *program, struct source *source,
                          uint32_t events)
{
    int fd;

    (void)events;
    while ((fd = accept4(source->fd, NULL, NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *client = find_place(program);

        if (client == NULL ||
            !source_open(program, &client->source, fd, EPOLLIN)) {
            (void)close(fd);
        } else {
            client->heard_ns = program->now_ns;
        }
    }
}

bool control_open(struct program *program, struct complaint *complaint)
{
    int fd;

    program->control = (struct source){control_ready, -1, 0};
    for (uint8_t i = 0; i < CLIENTS; i++) {
        program->clients[i].source = (struct source){client_ready, -1, i};
    }
    if (program->control_path == NULL) {
        return true;
    }
    fd = listen_unix(program->control_path, 2 * CLIENTS, complaint);
    if (fd < 0) {
        return false;
    }
    if (!source_open(program, &program->control, fd,
                     EPOLLIN | (uint32_t)EPOLLET)) {
        (void)close(fd);
        return complain(complaint, "epoll: %s", strerror(errno));
    }
    return true;
}

void control_close(struct program *program)
{
    for (int i = 0; i < CLIENTS; i++) {
        client_close(&program->clients[i]);
    }
    if (program->control.fd >= 0) {
        (void)unlink(program->control_path);
        source_close(&program->control);
    }
}
