/* What contexts are made of: files, and hooks. */
#ifndef CONTEXT_PARTS_H
#define CONTEXT_PARTS_H

#include "contexts.h"

/* Paths of files beside those of tls-peer, kept until the process ends. What is there already stays as it is. */
const char *file_in(const struct place *place, const char *name);
const char *copy_of(const char *from, const struct place *place, const char *name);
/* A cookie file with a cookie named a. */
const char *jar_with(const char *value, const struct place *place, const char *name);

/* Hooks that add a field to each request, or none where it is NULL; the field must stay. */
imgdl_hooks *hooks_that_add(imgdl_header *field);
/* Hooks that answer each challenge with this user and the password p. */
imgdl_hooks *hooks_that_know(const char *user);

#endif
