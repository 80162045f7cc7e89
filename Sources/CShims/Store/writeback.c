#define _GNU_SOURCE
#include "cstore.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void store_begin_writeback(int descriptor) { (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); }

int store_synchronize(int descriptor) { return syncfs(descriptor) == 0 ? 0 : errno; }
