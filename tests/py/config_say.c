/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the firmware says to lines of "KEY VALUE" on its input, for
 * test_settings.py: the tools' list of keys and the firmware's have to agree.
 * With an argument: the keys that need not wait for the next start.
 */
#include "firmware/settings/config_check.h"

#include <stdio.h>
#include <string.h>

static void mistake(void *ctx, const char *text)
{
    (void)ctx;
    printf("mistake: %s\n", text);
}

static void say_live(const struct config *config)
{
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line shown;

        config_text_get(config, i, &shown);
        if (config_text_is_live(shown.key)) {
            printf("%s\n", shown.key);
        }
    }
}

int main(int argc, char **argv)
{
    uint8_t body[CONFIG_BODY_LEN];
    struct config config;
    struct config_error error;
    char line[256];

    (void)argv;
    config_default(&config);
    if (argc > 1) {
        say_live(&config);
        return 0;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char *space = strchr(line, ' ');

        line[strcspn(line, "\n")] = '\0';
        if (space == NULL) {
            return 1;
        }
        *space = '\0';
        if (!config_text_set(&config, line, space + 1, &error)) {
            printf("error: %s\n", error.text);
        }
    }
    config_check(&config, mistake, NULL);
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line shown;

        config_text_get(&config, i, &shown);
        printf("%s %s\n", shown.key, shown.value);
    }
    config_body_emit(&config, body);
    for (size_t i = 0; i < sizeof(body); i++) {
        printf("%02x", body[i]);
    }
    printf("\n");
    return 0;
}
