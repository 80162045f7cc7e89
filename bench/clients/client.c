#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONCURRENT = 1000, COMPLAINTS = 5 };

static void usage(const char *name)
{
    fprintf(stderr, "usage: %s --urls FILE --concurrency N --decode 0|1 [--cacert FILE]\n", name);
    exit(2);
}

static void read_urls(struct client *client, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s: cannot read %s: %s\n", client->name, path, strerror(errno));
        exit(1);
    }
    char *line = NULL;
    size_t capacity = 0, held = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, file)) > 0) {
        if (line[length - 1] == '\n')
            line[--length] = '\0';
        if (length == 0)
            continue;
        if (client->url_count == held) {
            held = held ? 2 * held : 1024;
            client->urls = realloc(client->urls, held * sizeof *client->urls);
        }
        if (!client->urls || !(client->urls[client->url_count++] = strdup(line)))
            abort();
    }
    free(line);
    fclose(file);
}

void client_begin(struct client *client, const char *name, int count, char **arguments)
{
    *client = (struct client){.name = name, .concurrency = 6};
    const char *urls = NULL;
    for (int i = 1; i < count; i += 2) {
        const char *option = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;
        char *end = "";
        if (!value)
            usage(name);
        if (!strcmp(option, "--urls"))
            urls = value;
        else if (!strcmp(option, "--concurrency"))
            client->concurrency = (unsigned)strtoul(value, &end, 10);
        else if (!strcmp(option, "--decode"))
            client->decodes = strtol(value, &end, 10) != 0;
        else if (!strcmp(option, "--cacert"))
            client->ca_file = value;
        else
            usage(name);
        if (*end)
            usage(name);
    }
    if (!urls || client->concurrency < 1 || client->concurrency > MOST_CONCURRENT)
        usage(name);
    read_urls(client, urls);
}

void client_failed(struct client *client, const char *message)
{
    if (client->errors++ < COMPLAINTS)
        fprintf(stderr, "%s: %s\n", client->name, message);
}

int client_end(const struct client *client)
{
    printf("{\"images\":%llu,\"bytes\":%llu,\"pixels\":%llu,\"errors\":%llu}\n", client->images, client->bytes,
           client->pixels, client->errors);
    return client->errors != 0;
}
