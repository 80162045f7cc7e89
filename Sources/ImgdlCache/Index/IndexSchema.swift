/// The tables of the index, version by version: what step n does leads from version n to n + 1 (PRAGMA user_version). A
/// step that was released is never changed.
enum IndexSchema {
    /// PRAGMA application_id: "IMGC". A database with another is somebody else's.
    static let applicationID: Int64 = 0x494D_4743

    static var steps: [String] {
        [
            // kind: 0 whole, or a part; 1 the beginning of a body; 2 a head alone. key_hash is XXH3 of the key. cost: what the entry
            // takes of the disk, of which row_cost is this table's part (`StorageCost`). The totals are those of all
            // processes, by kind, so that nobody counts a million rows. writers: what each writer may fill besides
            // (`StorageLedger`), by the name of its folder.
            """
            CREATE TABLE entries (
                id INTEGER PRIMARY KEY, key_hash INTEGER NOT NULL, key TEXT NOT NULL, kind INTEGER NOT NULL,
                length INTEGER NOT NULL, cost INTEGER NOT NULL, row_cost INTEGER NOT NULL, checksum INTEGER NOT NULL,
                stored INTEGER NOT NULL, used INTEGER NOT NULL, response BLOB NOT NULL);
            CREATE INDEX entries_by_key ON entries (key_hash);
            CREATE INDEX entries_by_use ON entries (used, kind, cost, row_cost);
            CREATE INDEX beginnings_by_use ON entries (used, cost) WHERE kind = 1;
            CREATE TABLE totals (
                kind INTEGER PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL,
                row_bytes INTEGER NOT NULL);
            INSERT INTO totals VALUES (0, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 0);
            CREATE TRIGGER entry_came AFTER INSERT ON entries BEGIN
                UPDATE totals SET entries = entries + 1, bytes = bytes + NEW.cost, row_bytes = row_bytes + NEW.row_cost
                WHERE kind = NEW.kind;
            END;
            CREATE TRIGGER entry_changed AFTER UPDATE OF cost ON entries BEGIN
                UPDATE totals SET bytes = bytes + NEW.cost - OLD.cost, row_bytes = row_bytes + NEW.row_cost - OLD.row_cost
                WHERE kind = NEW.kind;
            END;
            CREATE TRIGGER entry_went AFTER DELETE ON entries BEGIN
                UPDATE totals SET entries = entries - 1, bytes = bytes - OLD.cost, row_bytes = row_bytes - OLD.row_cost
                WHERE kind = OLD.kind;
            END;
            CREATE TABLE writers (name TEXT PRIMARY KEY, reserved INTEGER NOT NULL) WITHOUT ROWID;
            """
        ]
    }
}
