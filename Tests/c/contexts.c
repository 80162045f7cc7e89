#include "contexts.h"
#include "context-parts.h"

static struct context list[MAX_CONTEXTS];
static unsigned size;
static imgdl_downloader *common; /* of all contexts that have no config of their own */

/* ---- Adding */

static struct context *add(const char *name, const char *trust, const char *question, const char *credentials)
{
    REQUIRE(size < MAX_CONTEXTS);
    struct context *context = &list[size++];
    *context = (struct context){.name = name, .trust = trust, .question = question, .credentials = credentials};
    imgdl_request_init(&context->request, sizeof context->request);
    return context;
}

/* One that is as good as nobody. */
static struct context *nobody(const char *name) { return add(name, "", "", ""); }
/* Ones that differ from nobody in one of the three, by a name of its own. */
static struct context *trusting(const char *name) { return add(name, name, "", ""); }
static struct context *asking(const char *name) { return add(name, "", name, ""); }
static struct context *known(const char *name, const char *credentials) { return add(name, "", "", credentials); }

static struct context *with(struct context *context, const char *name, const char *value)
{
    context->field = (imgdl_header){name, value};
    context->request.headers = &context->field;
    context->request.header_count = 1;
    return context;
}

static struct context *with_user(struct context *context, const char *user, const char *password)
{
    context->request.user = user;
    context->request.password = password;
    return context;
}

/* Its downloader's config, to be changed. */
static imgdl_config *own(struct context *context, const struct place *place)
{
    if (!context->has_downloader) {
        imgdl_config_init(&context->config, sizeof context->config);
        context->config.ca_file = place->ca_file;
    }
    context->has_downloader = 1;
    return &context->config;
}

/* Its field comes from a hook; name NULL: the hook changes nothing. */
static void hook(struct context *context, const char *name, const char *value)
{
    context->field = (imgdl_header){name, value};
    context->request.hooks = hooks_that_add(name ? &context->field : NULL);
}

static void answer_challenges(struct context *context, const char *user)
{
    context->request.hooks = hooks_that_know(user);
    context->is_challenged = 1;
    context->credentials_unasked = "";
}

/* ---- Those that are as good as nobody, and those that ask as somebody */

static void add_nobodies(const struct place *place)
{
    nobody("nobody");
    with(nobody("another User-Agent"), "User-Agent", "viewer");
    with(nobody("Accept-Language"), "Accept-Language", "de");
    with(nobody("Referer"), "Referer", "http://images.invalid/");
    with(nobody("X-Request-ID"), "X-Request-ID", "1");
    imgdl_request *request = &nobody("other flags and limits")->request;
    request->flags = IMGDL_REQUEST_NO_REDIRECTS | IMGDL_REQUEST_FULL_URLS;
    request->priority = IMGDL_PRIORITY_HIGH;
    request->max_body_bytes = 1 << 20;
    request->total_timeout_ms = PATIENCE_MS;
    struct context *context = nobody("cookies, and none in the jar");
    context->request.flags = IMGDL_REQUEST_COOKIES;
    own(context, place);
    own(nobody("a downloader's own User-Agent"), place)->user_agent = "viewer";
    own(nobody("a downloader without a proxy"), place)->proxy = "";
    nobody("the empty partition")->request.partition = "";
    hook(nobody("a hook that changes nothing"), NULL, NULL);
}

static void add_users(const struct place *place)
{
    with_user(known("u", "u:p"), "u", "p");
    with_user(known("u with another password", "u:q"), "u", "q");
    with_user(known("v", "v:p"), "v", "p");
    known("u in the URL", "u:p")->login = "u:p@";
    imgdl_config *config = own(known("u of the downloader", "u:p"), place);
    config->user = "u";
    config->password = "p";
    known("Basic over http", "Basic")->request.flags = IMGDL_REQUEST_BASIC_OVER_HTTP;
    own(known("Basic over http of the downloader", "Basic"), place)->flags = IMGDL_CONFIG_BASIC_OVER_HTTP;
    answer_challenges(known("h of a hook", "h:p"), "h");
    answer_challenges(known("i of a hook", "i:p"), "i");
    with_user(known("h", "h:p"), "h", "p");

    with(known("Authorization as Basic has it for u", "Basic dTpw"), "Authorization", "Basic dTpw");
    with(known("Bearer 1", "Bearer 1"), "Authorization", "Bearer 1");
    struct context *context = known("Bearer 1 of the downloader", "Bearer 1");
    own(context, place);
    context->field = (imgdl_header){"Authorization", "Bearer 1"};
    context->is_field_of_downloader = 1;
    with(known("Bearer 2", "Bearer 2"), "Authorization", "Bearer 2");
    hook(known("Bearer 1 of a hook", "Bearer 1"), "Authorization", "Bearer 1");
    hook(known("Bearer 3 of a hook", "Bearer 3"), "Authorization", "Bearer 3");
    with(known("Proxy-Authorization", "Proxy-Authorization"), "Proxy-Authorization", "Bearer 1");
    with(known("Cookie a=1", "Cookie a=1"), "Cookie", "a=1");
    with(known("Cookie a=2", "Cookie a=2"), "Cookie", "a=2");
}

static struct context *with_jar(const char *name, const char *credentials, const struct place *place, const char *value)
{
    struct context *context = known(name, credentials);
    context->request.flags = IMGDL_REQUEST_COOKIES;
    if (value)
        own(context, place)->cookie_file = jar_with(value, place, name);
    return context;
}

static void add_jars(const struct place *place)
{
    with_jar("a=1 in the jar", "Cookie a=1", place, "1");
    with_jar("a=2 in the jar", "Cookie a=2", place, "2");
    struct context *context = with_jar("a=1 that a server has set", "Cookie a=1", place, NULL);
    own(context, place);
    context->asks_for_cookie = 1;
    with(with_jar("Cookie b=1 before the jar's", "Cookie b=1; a=1", place, "1"), "Cookie", "b=1");
    with(known("Cookie b=1; a=1", "Cookie b=1; a=1"), "Cookie", "b=1; a=1");
}

static void add_questions(const struct place *place)
{
    with(asking("Host"), "Host", "images.invalid");
    with(asking("another Host"), "Host", "pictures.invalid");
    with(asking("X-Api-Key: 1"), "X-Api-Key", "1");
    with(asking("X-Api-Key: 2"), "X-Api-Key", "2");
    with(asking("X-Api-Key: 1,2"), "X-Api-Key", "1,2");
    with(asking("X-Api-Key: 1, 2"), "X-Api-Key", "1, 2");
    with(asking("X-Account: 1"), "X-Account", "1");
    with(asking("Origin"), "Origin", "http://images.invalid");
    hook(add("X-Api-Key: 1 of a hook", "", "X-Api-Key: 1", ""), "X-Api-Key", "1");
    struct context *context = add("X-Api-Key: 1 of the downloader's hook", "", "X-Api-Key: 1", "");
    context->field = (imgdl_header){"X-Api-Key", "1"};
    own(context, place)->hooks = hooks_that_add(&context->field);
    hook(asking("X-Signature of a hook"), "X-Signature", "1");
    context = asking("a body");
    context->request.body = "1";
    context->request.body_length = 1;
    context = asking("another body");
    context->request.body = "2";
    context->request.body_length = 1;
    context = asking("POST");
    context->request.method = "POST";
    context->request.body = "1";
    context->request.body_length = 1;
    context->is_never_stored = 1;
    with_user(with(add("u with X-Api-Key: 1", "", "X-Api-Key: 1", "u:p"), "X-Api-Key", "1"), "u", "p");
}

/* ---- Those that trust somebody else */

static void add_files(const struct place *place)
{
    const char *client = file_in(place, "client.pem"), *key = file_in(place, "client.key");
    trusting("a CA file")->request.ca_file = copy_of(place->ca_file, place, "ca-1.pem");
    trusting("the same in another CA file")->request.ca_file = copy_of(place->ca_file, place, "ca-2.pem");
    own(trusting("the downloader's CA file"), place)->ca_file = copy_of(place->ca_file, place, "ca-3.pem");
    struct context *context = trusting("a client certificate");
    context->request.client_certificate = client;
    context->request.client_key = key;
    context = add("the downloader's client certificate", "a client certificate", "", "");
    own(context, place)->client_certificate = client;
    context->config.client_key = key;
    context = trusting("a client certificate, its key encrypted");
    context->request.client_certificate = client;
    context->request.client_key = file_in(place, "encrypted.key");
    context->request.client_key_password = "sesame";
    trusting("another client certificate")->request.client_certificate = file_in(place, "another.pem");
    const char *list_file = file_in(place, "revoked.pem");
    own(trusting("a CRL file"), place)->crl_file = list_file;
    own(trusting("the same in another CRL file"), place)->crl_file = copy_of(list_file, place, "revoked-2.pem");
}

static void add_pins(const struct place *place)
{
    char *two = NULL;
    REQUIRE(asprintf(&two, "%s;sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", place->pin) > 0);
    trusting("a pin")->request.pinned_public_key = place->pin;
    own(add("the downloader's pin", "a pin", "", ""), place)->pinned_public_key = place->pin;
    trusting("two pins")->request.pinned_public_key = two;
    own(trusting("TLS 1.3"), place)->flags = IMGDL_CONFIG_REQUIRE_TLS_1_3;
    struct context *context = trusting("any certificate");
    context->request.flags = IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES;
    context->is_never_stored = 1;
}

static const char *proxy_at(const struct place *place, const char *login)
{
    char *url = NULL;
    REQUIRE(asprintf(&url, "http://%s127.0.0.1:%d", login, place->proxy_port) > 0);
    return url;
}

static void add_ways(const struct place *place)
{
    own(trusting("a proxy"), place)->proxy = proxy_at(place, "");
    own(trusting("u at the proxy"), place)->proxy = proxy_at(place, "u:p@");
    own(trusting("u at the proxy, another password"), place)->proxy = proxy_at(place, "u:q@");
    own(trusting("name servers"), place)->dns_servers = "127.0.0.1:9";
    struct context *context = trusting("private addresses denied");
    own(context, place)->flags = IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES;
    context->config.proxy = ""; /* not together with one of the environment */
    context->is_denied = 1;
    context = trusting("private addresses denied, NAT64");
    own(context, place)->flags = IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES;
    context->config.proxy = "";
    context->config.nat64_prefixes = "2001:db8:64::/96";
    context->is_denied = 1;
}

static void add_partitions(const struct place *place)
{
    trusting("partition 1")->request.partition = "1";
    trusting("partition 2")->request.partition = "2";
    own(add("the downloader's partition 1", "partition 1", "", ""), place)->partition = "1";
    with_user(add("u in partition 1", "partition 1", "", "u:p"), "u", "p")->request.partition = "1";
    with(add("Cookie a=1 in partition 1", "partition 1", "", "Cookie a=1"), "Cookie", "a=1")->request.partition = "1";
    with(add("X-Api-Key: 1 in partition 1", "partition 1", "X-Api-Key: 1", ""), "X-Api-Key", "1")->request.partition = "1";
}

/* ---- All of them */

static imgdl_downloader *open_downloader(const imgdl_config *config, imgdl_cache *cache)
{
    imgdl_config with_cache = *config;
    with_cache.cache = cache;
    with_cache.cache_mode = IMGDL_CACHE_USE;
    imgdl_downloader *downloader = NULL;
    REQUIRE_OK(imgdl_downloader_create(&with_cache, &downloader));
    return downloader;
}

struct context *open_contexts(const struct place *place, imgdl_cache *cache, unsigned *count)
{
    size = 0;
    add_nobodies(place);
    add_users(place);
    add_jars(place);
    add_questions(place);
    add_files(place);
    add_pins(place);
    add_ways(place);
    add_partitions(place);
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.ca_file = place->ca_file;
    common = open_downloader(&config, cache);
    for (unsigned i = 0; i < size; i++) {
        list[i].downloader = list[i].has_downloader ? open_downloader(&list[i].config, cache) : common;
        if (list[i].is_field_of_downloader)
            REQUIRE_OK(imgdl_downloader_set_header(list[i].downloader, list[i].field.name, list[i].field.value));
    }
    *count = size;
    return list;
}

void close_contexts(void)
{
    for (unsigned i = 0; i < size; i++) {
        imgdl_hooks_release(list[i].request.hooks);
        if (!list[i].has_downloader)
            continue;
        imgdl_hooks_release(list[i].config.hooks);
        REQUIRE_OK(imgdl_downloader_destroy(list[i].downloader));
    }
    REQUIRE_OK(imgdl_downloader_destroy(common));
}
