#include "cstore.h"

int store_bind_text(sqlite3_stmt *statement, int index, const char *text, int size)
{
    /* An empty text may have no address, which SQLite would take for NULL. */
    return sqlite3_bind_text(statement, index, text ? text : "", size, SQLITE_TRANSIENT);
}

int store_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int size)
{
    return sqlite3_bind_blob(statement, index, bytes, size, SQLITE_TRANSIENT);
}
