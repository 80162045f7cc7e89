/* The public suffix list: under which names anybody may register a domain. */
#include <libpsl.h>
