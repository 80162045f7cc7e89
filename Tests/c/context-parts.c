#include "context-parts.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

/* ---- The servers */

/* The next line of a program has to begin with these words; gives the rest of it. */
static char *read_line(FILE *lines, const char *words)
{
    static char line[256];
    REQUIRE(fgets(line, sizeof line, lines) && !strncmp(line, words, strlen(words)));
    line[strcspn(line, "\n")] = '\0';
    return line + strlen(words);
}

static int read_port(FILE *lines, const char *words)
{
    return atoi(strrchr(read_line(lines, words), ':') + 1);
}

/* Ends with the test: it is of its process group. */
static FILE *start_program(char **arguments)
{
    int input[2], output[2];
    REQUIRE(pipe(input) == 0 && pipe2(output, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    pid_t process;
    REQUIRE(posix_spawn(&process, arguments[0], &actions, NULL, arguments, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(output[1]);
    return fdopen(output[0], "r");
}

struct place start_servers(void)
{
    static char peer[4400], origin[4400], ca_file[4400];
    static const char *const variables[] = {"http_proxy", "https_proxy", "all_proxy", "no_proxy",
                                            "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"};
    for (unsigned i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    char *folder = new_folder();
    snprintf(peer, sizeof peer, "%s/tls-peer", program_folder);
    snprintf(origin, sizeof origin, "%s/../bin/imgdl-origin", program_folder);
    snprintf(ca_file, sizeof ca_file, "%s/ca.pem", folder);
    struct place place = {.folder = folder, .ca_file = ca_file};
    FILE *lines = start_program((char *[]){peer, ca_file, folder, NULL});
    place.port = read_port(lines, "listening on ");
    snprintf(place.pin, sizeof place.pin, "%s", read_line(lines, "pin="));
    fclose(lines);
    lines = start_program((char *[]){origin, "--until-eof", "--proxy", NULL});
    read_line(lines, "listening on ");
    place.proxy_port = read_port(lines, "proxy=");
    fclose(lines);
    return place;
}

/* ---- Files */

const char *file_in(const struct place *place, const char *name)
{
    char *path = NULL;
    REQUIRE(asprintf(&path, "%s/%s", place->folder, name) > 0);
    return path;
}

/* Whole, or as it is where there is one: another process of the test may use it. */
static void make_file(const char *path, const char *text)
{
    char *whole = NULL;
    REQUIRE(asprintf(&whole, "%s.%d", path, (int)getpid()) > 0);
    FILE *file = fopen(whole, "w");
    REQUIRE(file && fputs(text, file) >= 0 && fclose(file) == 0);
    REQUIRE(link(whole, path) == 0 || access(path, F_OK) == 0);
    unlink(whole);
    free(whole);
}

const char *copy_of(const char *from, const struct place *place, const char *name)
{
    const char *to = file_in(place, name);
    char text[65536];
    FILE *file = fopen(from, "r");
    REQUIRE(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    make_file(to, text);
    return to;
}

const char *jar_with(const char *value, const struct place *place, const char *name)
{
    const char *path = file_in(place, name);
    char text[200];
    snprintf(text, sizeof text, "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t4102444800\ta\t%s\n", value);
    make_file(path, text);
    return path;
}

static const char *const renewed[] = {"ca-1.pem", "client.pem", "client.key", NULL};

void renew_files(const struct place *place)
{
    for (unsigned i = 0; renewed[i]; i++) {
        FILE *file = fopen(file_in(place, renewed[i]), "a");
        REQUIRE(file && fputs("# renewed\n", file) >= 0 && fclose(file) == 0);
    }
}

int has_file_renewed(const struct context *context)
{
    const char *const files[] = {context->request.ca_file, context->request.client_certificate, context->request.client_key};
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
        for (unsigned n = 0; files[i] && renewed[n]; n++)
            if (!strcmp(strrchr(files[i], '/') + 1, renewed[n]))
                return 1;
    return 0;
}

/* ---- Hooks */

static void let_pass(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data)
{
    (void)request, (void)user_data;
    REQUIRE_OK(imgdl_continue_unchanged(next));
}

static void add_field(const imgdl_outgoing *request, imgdl_continuation *next, void *field)
{
    imgdl_header fields[16];
    REQUIRE(request->header_count < 16);
    memcpy(fields, request->headers, request->header_count * sizeof *fields);
    fields[request->header_count] = *(imgdl_header *)field;
    imgdl_outgoing changed;
    imgdl_outgoing_init(&changed, sizeof changed);
    changed.headers = fields;
    changed.header_count = request->header_count + 1;
    REQUIRE_OK(imgdl_continue_with_request(next, &changed));
}

static void say_who(const imgdl_response *challenge, imgdl_continuation *next, void *user)
{
    (void)challenge;
    REQUIRE_OK(imgdl_continue_with_credentials(next, user, "p"));
}

imgdl_hooks *hooks_that_add(imgdl_header *field)
{
    imgdl_hooks_table table = {.struct_size = sizeof table, .modify_request = field ? add_field : let_pass, .user_data = field};
    imgdl_hooks *hooks = NULL;
    REQUIRE_OK(imgdl_hooks_create(&table, &hooks));
    return hooks;
}

imgdl_hooks *hooks_that_know(const char *user)
{
    imgdl_hooks_table table = {.struct_size = sizeof table, .authenticate = say_who, .user_data = (void *)(uintptr_t)user};
    imgdl_hooks *hooks = NULL;
    REQUIRE_OK(imgdl_hooks_create(&table, &hooks));
    return hooks;
}

/* ---- Contexts */

imgdl_request request_of(struct context *context, const struct place *place, int is_tls, const char *path)
{
    static char url[400];
    snprintf(url, sizeof url, "http%s://%s127.0.0.1:%d%s", is_tls ? "s" : "", context->login ? context->login : "", place->port,
             path);
    imgdl_request request = context->request;
    request.url = url;
    request.flags |= IMGDL_REQUEST_BODY;
    return request;
}

int are_to_share(const struct context *stored, const struct context *asks, int is_public)
{
    const struct context *both[] = {stored, asks};
    for (int i = 0; i < 2; i++)
        if (both[i]->is_never_stored || both[i]->is_denied)
            return 0;
    const char *credentials = asks->credentials_unasked ? asks->credentials_unasked : asks->credentials;
    return !strcmp(stored->trust, asks->trust) && !strcmp(stored->question, asks->question) &&
           (is_public || !strcmp(stored->credentials, credentials));
}
