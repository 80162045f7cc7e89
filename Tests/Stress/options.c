/* Random decode options, and configurations: README.md says what they leave out, and why. */
#include "calls.h"

#include <stdio.h>

static void set_limits(imgdl_decode_options *options)
{
    switch (chance(9)) {
    case 0: options->max_pixels = 1 + chance(1000000); break;
    case 1: options->max_frames = 1 + chance(4); break;
    case 2: options->max_side = 1 + chance(1000); break;
    case 3: options->max_scans = 1 + chance(10); break;
    case 4: options->max_animation_pixels = 1 + chance(1000000); break;
    case 5: options->max_metadata_bytes = 1 + chance(2000); break;
    case 6: options->max_memory_bytes = one_in(4) ? IMGDL_NO_LIMIT : 1 + chance(8000000); break;
    case 7: options->max_decode_ms = one_in(4) ? IMGDL_NO_LIMIT_32 : 1 + chance(50); break;
    default: options->max_output_bytes = 1 + chance(1000000); break;
    }
}

imgdl_decode_options random_decode_options(void)
{
    imgdl_decode_options options;
    imgdl_decode_options_init(&options, sizeof options);
    options.pixel_format = chance(one_in(20) ? 9 : 7);
    if (one_in(3))
        options.flags = IMGDL_DECODE_SALVAGE;
    if (one_in(3))
        options.flags |= IMGDL_DECODE_ALL_FRAMES;
    /* Any of them, also one that there is not. */
    if (one_in(3))
        options.flags |= 1u << chance(one_in(20) ? 32 : 7);
    if (one_in(4))
        options.target_width = 1 + chance(400);
    if (one_in(4))
        options.target_height = 1 + chance(one_in(10) ? UINT32_MAX : 400);
    if (one_in(3))
        set_limits(&options);
    if (one_in(4))
        options.colour = IMGDL_COLOUR_SRGB;
    if (one_in(8))
        options.format_hint = chance(5);
    if (one_in(8))
        options.good_enough_scan = 1 + chance(5);
    if (one_in(6))
        options.coder = pick(A_CODER);
    if (one_in(4)) {
        options.allocate = allocate;
        options.deallocate = deallocate;
        options.allocator_user_data = &allocator_tag;
    }
    return options;
}

/* What a request may say, too, for those that say nothing. */
static void set_for_requests(imgdl_config *config)
{
    if (one_in(8)) {
        config->user = "u";
        config->password = one_in(3) ? "wrong" : "p";
    }
    if (one_in(4))
        config->retry_count = 1 + chance(2), config->retry_base_ms = 20, config->retry_max_ms = 50;
    if (one_in(12)) {
        config->accepted_statuses = accepted_statuses;
        config->accepted_status_count = 1 + chance(2);
    }
    if (one_in(12)) {
        config->accepted_types = accepted_types;
        config->accepted_type_count = 1 + chance(2);
    }
    if (one_in(4))
        config->partition = one_in(2) ? "one" : "";
    if (one_in(8))
        config->max_stale_ms = one_in(2) ? 1000 : IMGDL_STALE_NEVER;
    if (one_in(8))
        config->user_agent = one_in(8) ? "two\nlines" : "played/1";
}

/* What makes most requests fail, or the downloader be refused: seldom. */
static void set_what_fails(imgdl_config *config)
{
    switch (chance(10)) {
    case 0: config->flags |= IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES; break;
    case 1:
        config->flags |= IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES;
        config->nat64_prefixes = one_in(2) ? "2001:db8:64::/96" : "no prefix";
        break;
    case 2: config->proxy = one_in(2) ? "http://u:p@127.0.0.1:1" : "no proxy"; break;
    case 3: config->crl_file = http2_ca_file; break; /* which has no list */
    case 4: config->client_certificate = http2_ca_file; break; /* without its key */
    case 5:
        config->client_certificate = one_in(2) ? http2_ca_file : NULL;
        config->client_key = http2_ca_file;
        config->client_key_password = "p";
        break;
    case 6: config->pinned_public_key = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="; break;
    case 7: config->cookie_file = "/none/cookies"; break;
    case 8: config->dns_servers = "no server"; break;
    default: config->flags |= 1u << chance(32); break;
    }
}

imgdl_config random_config(struct delivery *delivery)
{
    static _Thread_local char cookies[512];
    imgdl_config config;
    imgdl_config_init(&config, sizeof config);
    config.max_concurrent = 1 + chance(12);
    config.order = chance(2);
    config.decode_threads = chance(4);
    config.connect_timeout_ms = 1000;
    config.idle_timeout_ms = 1000;
    config.max_redirects = chance(4);
    config.flags = IMGDL_CONFIG_ALLOW_DATA_URLS | IMGDL_CONFIG_ALLOW_FILE_URLS |
                   (one_in(3) ? IMGDL_CONFIG_FINISH_NEARLY_DONE : 0) | (one_in(4) ? IMGDL_CONFIG_BASIC_OVER_HTTP : 0) |
                   (one_in(8) ? IMGDL_CONFIG_REQUIRE_TLS_1_3 : 0);
    config.max_per_host = chance(4);
    if (one_in(3))
        config.memory_budget = 200000 + chance(4000000);
    config.proxy = "";
    /* Few trust nobody there. */
    config.ca_file = one_in(12) ? NULL : http2_ca_file;
    if (one_in(3))
        config.failure_ttl_ms = 500;
    if (one_in(4))
        config.progress_interval = chance(11) / 10.0;
    if (one_in(4))
        config.dns_servers = "127.0.0.1:1,[::1]:1"; /* nobody there is asked: /etc/hosts has the names */
    if (one_in(4)) {
        snprintf(cookies, sizeof cookies, "%s/cookies%u", scratch_folder, chance(3));
        config.cookie_file = cookies;
    }
    set_for_requests(&config);
    if (one_in(20))
        set_what_fails(&config);
    if (one_in(3))
        config.hooks = pick(HOOK_TABLE);
    /* A child's would be its parent's. */
    if (one_in(2) && child_place == HOST) {
        config.cache = pick(A_CACHE);
        config.cache_mode = chance(6);
    }
    *delivery = (struct delivery){NULL, 0};
    config.executor = random_executor(&delivery->model);
    delivery->is_inline = config.executor == IMGDL_EXECUTOR_INLINE;
    return config;
}
