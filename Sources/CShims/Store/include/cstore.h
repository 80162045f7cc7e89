/* The store's needs of C: SQLite; XXH3, whose functions are all inline in its header; a keyed hash of OpenSSL's; and calls
 * of the kernel that Swift's Glibc module does not show. */
#ifndef CSTORE_H
#define CSTORE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* XXH3, 64 bits, of `size` bytes. */
uint64_t store_hash(const void *bytes, size_t size);
/* The same in pieces. NULL when there is no memory. */
typedef struct store_hash_state store_hash_state;
store_hash_state *store_hash_begin(void);
void store_hash_add(store_hash_state *state, const void *bytes, size_t size);
uint64_t store_hash_value(const store_hash_state *state);
void store_hash_end(store_hash_state *state);

/* The first bytes of HMAC with SHA-256; false where there is no memory. */
enum { STORE_DIGEST_BYTES = 16 };
bool store_keyed_digest(const void *key, size_t key_size, const void *message, size_t size, void *digest);

/* sqlite3_bind_text and _blob of a copy: Swift does not see the macro that says so. */
int store_bind_text(sqlite3_stmt *statement, int index, const char *text, int size);
int store_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int size);

/* Whether triggers run, and what is prepared is prepared anew; SQLite's result. sqlite3_db_config, which Swift cannot call. */
int store_enable_triggers(sqlite3 *database, bool is_enabled);

/* Its last connection does not bring the log into the file. */
void store_keep_log(sqlite3 *database);

/* The log and the file of a database are on the disk for good; SQLite's result. By SQLite's own descriptors: closing another
 * one of the same file would let go of all locks that this process has there (fcntl), and a program that closes the database
 * would take its log away from under this one. */
int store_synchronize_database(sqlite3 *database);

/* A folder in `folder`, or by its path (AT_FDCWD), for openat() and its like alone: no right to read it is needed. A link is none
 * (ENOTDIR). A descriptor, or -1 and errno. */
int store_open_folder(int folder, const char *name);

/* open() of what is some folders below `folder`: no link on the way nor at its end is followed (ELOOP). One call of the system,
 * openat2(), which it does not know before Linux 5.6 (ENOSYS), and which some containers forbid (EPERM). A descriptor, or -1 and
 * errno. */
int store_open_inside(int folder, const char *path, int access);

/* Cuts a file off; a link is not followed. Not by a descriptor that could read it: closing that would let go of all locks that
 * this process has there. */
void store_empty_file(const char *path);

/* All of the file system that the descriptor is of is on the disk for good; the number of the error, 0 for none. */
int store_synchronize(int descriptor);

#endif
