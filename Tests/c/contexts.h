/* Contexts in which something can be asked for: who asks, and whom the request trusts. */
#ifndef CONTEXTS_H
#define CONTEXTS_H

#include "support.h"

enum { MAX_CONTEXTS = 90 };

/* Where tls-peer and a proxy are, and the files that tls-peer has written. */
struct place {
    const char *folder; /* of the files */
    const char *ca_file;
    char pin[64];
    int port, proxy_port;
};

struct context {
    const char *name;
    /* Contexts share what is stored where these say the same; of credentials whatever they say if it is `public`. */
    const char *trust, *question, *credentials;
    const char *credentials_unasked; /* those of requests that go to no server: what a hook says to a challenge is not there */
    int is_never_stored;
    int is_denied;       /* no server is reached */
    int is_challenged;   /* asks where the server wants credentials; by TLS alone */
    int asks_for_cookie; /* first */
    const char *login;   /* in the URL */
    imgdl_header field;
    int is_field_of_downloader; /* which is set for all its requests */
    imgdl_request request;
    imgdl_config config;
    int has_downloader; /* with that config */
    imgdl_downloader *downloader;
};

/* Starts tls-peer and a proxy, which end with the test; no proxy of the environment's counts from then on. */
struct place start_servers(void);

/* All of them, with downloaders that have this cache. Of a list from an earlier call nothing is used any more. */
struct context *open_contexts(const struct place *place, imgdl_cache *cache, unsigned *count);
void close_contexts(void);
/* Puts other bytes, which mean the same, where the request's own files of some contexts are. */
void renew_files(const struct place *place);
int has_file_renewed(const struct context *context);

/* A request in that context, for a path on tls-peer. */
imgdl_request request_of(struct context *context, const struct place *place, int is_tls, const char *path);

/* Whether one who asks nobody is to get what was stored. */
int are_to_share(const struct context *stored, const struct context *asks, int is_public);

#endif
