/* c-ares for Swift: what its versions spell in different ways has one name here. */
#ifndef CARES_SHIM_H
#define CARES_SHIM_H

/* From 1.28 on newer names stand beside those that 1.18 has, which go on working. */
#define CARES_NO_DEPRECATED
#include <ares.h>

/* Macros in 1.18, constants of an enumeration in newer versions. */
static const int CARES_SUCCESS = ARES_SUCCESS;
static const int CARES_NO_DATA = ARES_ENODATA;
static const int CARES_NOT_FOUND = ARES_ENOTFOUND;

static inline int cares_library_init(void) { return (int)ares_library_init(ARES_LIB_INIT_ALL); }

static inline const char *cares_message(int status) { return ares_strerror(status); }

static inline int cares_init(ares_channel *channel, struct ares_options *options, int mask)
{
#ifdef ARES_OPT_QUERY_CACHE
    /* Answers are kept by the resolver, for its own times. */
    options->qcache_max_ttl = 0;
    mask |= ARES_OPT_QUERY_CACHE;
#endif
    return (int)ares_init_options(channel, options, mask);
}

static inline int cares_set_servers(ares_channel channel, const char *servers)
{
    return (int)ares_set_servers_ports_csv(channel, servers);
}

#endif
