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

int store_enable_triggers(sqlite3 *database, bool is_enabled)
{
    return sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, (int)is_enabled, (int *)NULL);
}

void store_keep_log(sqlite3 *database)
{
    sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
}

int store_synchronize_database(sqlite3 *database)
{
    const int kinds[] = {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER};
    for (int i = 0; i < 2; i++) {
        sqlite3_file *file = NULL;
        if (sqlite3_file_control(database, "main", kinds[i], &file) != SQLITE_OK || !file || !file->pMethods)
            continue;
        int status = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
        if (status != SQLITE_OK)
            return status;
    }
    return SQLITE_OK;
}
