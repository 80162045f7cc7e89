#define _GNU_SOURCE
#include "cstore.h"

#include <errno.h>
#include <unistd.h>

int store_synchronize(int descriptor) { return syncfs(descriptor) == 0 ? 0 : errno; }
