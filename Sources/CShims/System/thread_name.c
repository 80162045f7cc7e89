#define _GNU_SOURCE
#include "csystem.h"

void system_thread_set_name(const char *name) { (void)pthread_setname_np(pthread_self(), name); }

void system_thread_get_name(char *name, size_t capacity) { (void)pthread_getname_np(pthread_self(), name, capacity); }
