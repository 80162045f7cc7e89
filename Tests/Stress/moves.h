/* One move for each function, by its name. */
#ifndef MOVES_H
#define MOVES_H

#include "calls.h"

#define MOVE(function, rule, waits) void move_##function(void);
#include "moves.def"
#undef MOVE

#define MOVE_RETAIN(name, kind)                                                                                        \
    void move_imgdl_##name##_retain(void)                                                                              \
    {                                                                                                                  \
        imgdl_##name *handle = imgdl_##name##_retain(pick(kind));                                                      \
        note(F_imgdl_##name##_retain, handle != NULL);                                                                 \
        put_or_release(kind, handle);                                                                                  \
    }

#endif
