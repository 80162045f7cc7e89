#include "cstore.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct store_hash_state {
    XXH3_state_t state;
};

uint64_t store_hash(const void *bytes, size_t size) { return XXH3_64bits(bytes, size); }

store_hash_state *store_hash_begin(void)
{
    void *memory;
    if (posix_memalign(&memory, _Alignof(store_hash_state), sizeof(store_hash_state)) != 0)
        return NULL;
    store_hash_state *state = memory;
    XXH3_64bits_reset(&state->state);
    return state;
}

void store_hash_add(store_hash_state *state, const void *bytes, size_t size)
{
    XXH3_64bits_update(&state->state, bytes, size);
}

uint64_t store_hash_value(const store_hash_state *state) { return XXH3_64bits_digest(&state->state); }

void store_hash_end(store_hash_state *state) { free(state); }
