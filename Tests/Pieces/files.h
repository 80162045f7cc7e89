#ifndef FILES_H
#define FILES_H

#include "pieces.h"

struct file {
    char *path;
    struct bytes bytes;
};

struct files {
    struct file *all;
    size_t count;
};

/* Adds the file, or those in the folder. What is no picture by its beginning is left out. */
void read_files(struct files *files, const char *path);

#endif
