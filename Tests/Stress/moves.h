/* One move for each function, by its name. */
#ifndef MOVES_H
#define MOVES_H

#include "calls.h"

#define MOVE(function, rule, waits) void move_##function(void);
#include "moves.def"
#undef MOVE

#endif
