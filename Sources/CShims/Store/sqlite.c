#include "cstore.h"

int store_bind_text(sqlite3_stmt *statement, int index, const char *text, int size)
{
    return sqlite3_bind_text(statement, index, text, size, SQLITE_STATIC);
}

int store_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int size)
{
    return sqlite3_bind_blob(statement, index, bytes, size, SQLITE_STATIC);
}
