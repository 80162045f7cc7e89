import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: the key in the folder, without which nothing that is stored is found.
final class DigestKeyTests: StoreTestCase {
    private var key: String { path + "/key" }

    /// What stored answers are told apart by.
    private func digest() throws -> ContextDigest {
        let cache = try open()
        defer { cache.close() }
        try cache.flush()
        var message = ContextMessage()
        message.add("somebody")
        return cache.digest(message)
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// As after `chmod -R a+rX`, or of somebody who takes the right to write from himself: nothing that was stored is lost.
    func testOneThatOthersMayReadIsUsedAndKeepsItsRights() throws {
        let before = try digest()
        let bytes = read(key)
        XCTAssertEqual(bytes.count, 32)
        XCTAssertEqual(mode(key), 0o600)
        for rights in [0o644, 0o640, 0o604, 0o444, 0o400, 0o755, 0o600] as [mode_t] {
            chmod(key, rights)
            XCTAssertEqual(try digest(), before, String(rights, radix: 8))
            XCTAssertEqual(read(key), bytes, String(rights, radix: 8))
            XCTAssertEqual(mode(key), rights)
        }
        XCTAssertEqual(log.all, [])
    }

    /// They may have put in one that they know, or that makes two contexts one.
    func testOneThatOthersMayWriteIsReplaced() throws {
        for rights in [0o666, 0o660, 0o602, 0o622] as [mode_t] {
            let before = try digest()
            let bytes = read(key)
            chmod(key, rights)
            XCTAssertNotEqual(try digest(), before, String(rights, radix: 8))
            XCTAssertNotEqual(read(key), bytes, String(rights, radix: 8))
            XCTAssertEqual(mode(key), 0o600)
        }
        XCTAssertEqual(log.all, [])
    }

    func testOneThatIsNoKeyIsReplaced() throws {
        for content in [[], [UInt8](repeating: 1, count: 31), [UInt8](repeating: 1, count: 33)] {
            _ = try digest()
            write(content, to: key)
            let first = try digest()
            XCTAssertEqual(read(key).count, 32, "\(content.count)")
            XCTAssertEqual(try digest(), first, "\(content.count)")
        }
    }

    /// Such as for want of descriptors or rights: it is the one by which all that is stored is found.
    func testOneThatCannotBeReadNowStays() throws {
        let before = try digest()
        let bytes = read(key)
        for folder in [String(path.dropLast("/cache".count)), path] { chmod(folder, 0o755) }
        chmod(key, 0)
        try asUserWithoutPrivileges {
            XCTAssertThrowsError(try DigestKey.read(key)) { XCTAssertEqual(($0 as? DiskError)?.number, EACCES) }
            XCTAssertThrowsError(try FolderKey().join(key)) { XCTAssertEqual(($0 as? DiskError)?.number, EACCES) }
            XCTAssertFalse(FolderKey().take(key))
        }
        chmod(key, 0o600)
        XCTAssertEqual(read(key), bytes)
        XCTAssertEqual(try digest(), before)
    }

    /// Root may read everything: this thread is held to the rights of others meanwhile.
    private func asUserWithoutPrivileges(_ body: () throws -> Void) throws {
        guard geteuid() == 0 else { return try body() }
        let symbol = try XCTUnwrap(dlsym(nil, "setfsuid"))
        let setUser = unsafeBitCast(symbol, to: (@convention(c) (uid_t) -> Int32).self)
        _ = setUser(65_534)
        defer { _ = setUser(0) }
        try body()
    }
}
