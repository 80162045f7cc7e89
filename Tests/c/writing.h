/* Another program that writes to a cache's index, as a connection of SQLite's beside the library's own. */
#ifndef WRITING_H
#define WRITING_H

#include "support.h"

#include <dlfcn.h>

struct writing {
    void *database;
    int (*execute)(void *, const char *, void *, void *, void *);
    int (*close_database)(void *);
};

static inline struct writing open_index(const char *folder)
{
    struct writing writing = {NULL, NULL, NULL};
    int (*open_database)(const char *, void **), (*set_patience)(void *, int);
    void *sqlite = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(sqlite != NULL);
    *(void **)&open_database = dlsym(sqlite, "sqlite3_open");
    *(void **)&set_patience = dlsym(sqlite, "sqlite3_busy_timeout");
    *(void **)&writing.execute = dlsym(sqlite, "sqlite3_exec");
    *(void **)&writing.close_database = dlsym(sqlite, "sqlite3_close");
    REQUIRE(open_database != NULL && set_patience != NULL && writing.execute != NULL && writing.close_database != NULL);
    char *path = NULL;
    REQUIRE(asprintf(&path, "%s/index-1.sqlite", folder) > 0);
    REQUIRE(open_database(path, &writing.database) == 0);
    set_patience(writing.database, 10000);
    free(path);
    return writing;
}

/* Holds all other writers up until `stop_writing`. */
static inline void start_writing(const struct writing *writing)
{
    REQUIRE(writing->execute(writing->database, "BEGIN IMMEDIATE", NULL, NULL, NULL) == 0);
}

static inline void stop_writing(const struct writing *writing)
{
    REQUIRE(writing->execute(writing->database, "COMMIT", NULL, NULL, NULL) == 0);
}

static inline void close_index(const struct writing *writing)
{
    writing->close_database(writing->database);
}
#endif
