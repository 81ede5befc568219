/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/mgmt/mgmt_service.h"

#include <string.h>

#include "firmware/hal/log.h"

enum {
    RETRY_US = 20000, /* how often a waiting reply is tried again */
    CHAR_DEL = 0x7f,
};

static const struct mgmt_request *find_request(
    const struct mgmt_service *service, const char *name)
{
    for (size_t i = 0; i < service->config.request_count; i++) {
        if (strcmp(service->config.requests[i].name, name) == 0) {
            return &service->config.requests[i];
        }
    }
    return NULL;
}

static void begin_reply(struct mgmt_service *service, struct json *reply,
                        uint64_t id)
{
    json_init(reply, service->reply, sizeof(service->reply) - 1);
    json_begin_object(reply, NULL);
    json_number(reply, "v", MGMT_VERSION);
    json_number(reply, "id", id);
}

static void end_reply(struct mgmt_service *service, struct json *reply)
{
    json_end_object(reply);
    service->reply[reply->len] = '\n';
    service->reply_len = reply->len + 1;
}

static void refuse_request(struct mgmt_service *service, uint64_t id,
                           const char *code, const char *text)
{
    struct json reply;

    begin_reply(service, &reply, id);
    json_begin_object(&reply, "error");
    json_string(&reply, "code", code);
    json_string(&reply, "text", text);
    json_end_object(&reply);
    end_reply(service, &reply);
}

static const char *const common_keys[] = {"v", "id", "request"};

/* The argument of a request with that key, or NULL. */
static const struct mgmt_argument *find_argument(
    const struct mgmt_request *request, const char *key)
{
    const struct mgmt_argument *argument = request->arguments;

    while (argument != NULL && argument->key != NULL &&
           strcmp(argument->key, key) != 0) {
        argument++;
    }
    return argument != NULL && argument->key != NULL ? argument : NULL;
}

/* Write why a member of a request is refused.  @return whether it is */
static bool refuse_member(const struct mgmt_request *request,
                          const struct json_args *args,
                          const struct json_member *member,
                          struct mgmt_refusal *refusal)
{
    static const char *const kinds[] = {
        [JSON_STRING] = "a string",
        [JSON_NUMBER] = "a number",
        [JSON_BOOL] = "true or false",
        [JSON_NULL] = "null",
    };
    const struct mgmt_argument *argument = find_argument(request, member->key);
    char *text = refusal->text_buf;
    bool is_common = false;

    for (size_t i = 0; i < ARRAY_LEN(common_keys); i++) {
        is_common = is_common || strcmp(member->key, common_keys[i]) == 0;
    }
    if (json_find(args, member->key) != member) {
        log_format(text, sizeof(refusal->text_buf),
                   "The request has \"%s\" twice.", member->key);
    } else if (!is_common && argument == NULL) {
        log_format(text, sizeof(refusal->text_buf),
                   "\"%s\" takes no argument \"%s\".", request->name,
                   member->key);
    } else if (!is_common && argument->kind != member->kind) {
        log_format(text, sizeof(refusal->text_buf), "\"%s\" has to be %s.",
                   member->key, kinds[argument->kind]);
    } else {
        return false;
    }
    refusal->code = "bad-argument";
    refusal->text = text;
    return true;
}

/* @return false when an argument is unknown, of the wrong kind, or there twice
 */
static bool check_arguments(const struct mgmt_request *request,
                            const struct json_args *args,
                            struct mgmt_refusal *refusal)
{
    for (unsigned int i = 0; i < args->count; i++) {
        if (refuse_member(request, args, &args->member[i], refusal)) {
            return false;
        }
    }
    return true;
}

static void answer_request(struct mgmt_service *service, uint64_t id,
                           const struct json_args *args)
{
    const struct mgmt_request *request =
        find_request(service, json_get_string(args, "request", ""));
    struct mgmt_refusal refusal = {"refused", "The drive refuses this.", ""};
    struct json reply;

    if (json_get_number(args, "v", 0) != MGMT_VERSION) {
        refuse_request(service, id, "bad-version",
                       "This drive speaks version 1.");
        return;
    }
    if (request == NULL) {
        refuse_request(service, id, "unknown-request",
                       "This firmware does not know the request.");
        return;
    }
    if (!check_arguments(request, args, &refusal)) {
        refuse_request(service, id, refusal.code, refusal.text);
        return;
    }
    begin_reply(service, &reply, id);
    json_begin_object(&reply, "result");
    if (!request->handle(service->config.ctx, args, &reply, &refusal)) {
        refuse_request(service, id, refusal.code, refusal.text);
        return;
    }
    json_end_object(&reply);
    end_reply(service, &reply);
    if (reply.is_cut) {
        refuse_request(service, id, "too-long",
                       "The answer does not fit into a reply.");
    }
}

static void end_line(struct mgmt_service *service)
{
    struct json_args args;

    service->line[service->line_len] = '\0';
    if (service->is_too_long) {
        refuse_request(service, 0, "too-long",
                       "A request has at most 1024 characters.");
    } else if (service->line_len == 0) {
        /* An empty line separates two clients. */
    } else if (!json_parse(&args, service->line)) {
        refuse_request(service, 0, "bad-json",
                       "A request is one flat JSON object.");
    } else if (!json_is_number_or_absent(&args, "id")) {
        refuse_request(service, 0, "bad-argument",
                       "\"id\" has to be a number.");
    } else {
        answer_request(service, json_get_number(&args, "id", 0), &args);
    }
    service->line_len = 0;
    service->is_too_long = false;
}

static void take_character(struct mgmt_service *service, char c)
{
    if (c == '\n') {
        end_line(service);
    } else if (service->line_len == MGMT_LINE_MAX) {
        service->is_too_long = true;
    } else { /* a NUL would hide the rest of the line, so JSON refuses DEL */
        service->line[service->line_len++] = c != '\0' ? c : CHAR_DEL;
    }
}

/* @return false while a reply waits for room */
static bool send_reply(struct mgmt_service *service)
{
    if (service->reply_len != 0 &&
        !mgmt_write(service->config.mgmt, service->reply, service->reply_len)) {
        return false;
    }
    service->reply_len = 0;
    return true;
}

bool mgmt_service_step(struct mgmt_service *service, uint64_t now_us,
                       uint64_t *deadline_us)
{
    *deadline_us = MGMT_NO_DEADLINE;
    if (service->in_at == service->in_len) {
        if (service->reply_len == 0 && !mgmt_has_input(service->config.mgmt)) {
            return false;
        }
        service->in_at = 0;
        service->in_len = (uint32_t)mgmt_read(service->config.mgmt, service->in,
                                              sizeof(service->in));
    }
    while (send_reply(service)) {
        if (service->in_at == service->in_len) {
            return true;
        }
        take_character(service, service->in[service->in_at++]);
    }
    *deadline_us = now_us + RETRY_US;
    return false;
}

void mgmt_service_init(struct mgmt_service *service,
                       const struct mgmt_service_config *config)
{
    service->config = *config;
    service->in_at = 0;
    service->in_len = 0;
    service->line_len = 0;
    service->is_too_long = false;
    service->reply_len = 0;
}
