#define _GNU_SOURCE
#include "cstore.h"

#include <fcntl.h>

void store_begin_writeback(int descriptor) { (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); }
