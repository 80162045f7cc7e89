/* SplitMix64, begun anew for each case. */
#include "pieces.h"

static uint64_t state;

static uint64_t next(void)
{
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void begin_case(uint64_t seed, uint64_t number)
{
    state = seed;
    state = next() ^ number;
    next();
}

uint32_t chance(uint32_t bound) { return (uint32_t)(next() % bound); }
