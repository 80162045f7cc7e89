import FuzzTargets
import Glibc
import XCTest

/// What fuzzing found once (Tests/Fuzz/finds, a folder for each target) is not found again.
final class FindTests: XCTestCase {
    func testFindsStayMended() throws {
        let folder = "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/") + "/Fuzz/finds"
        var count = 0
        for target in Target.all {
            for name in names(in: "\(folder)/\(target.name)") {
                let bytes = try XCTUnwrap(contents(of: "\(folder)/\(target.name)/\(name)"))
                count += 1
                do { try bytes.withUnsafeBytes { try target.run($0) } } catch {
                    XCTFail("\(target.name)/\(name): \(error)")
                }
            }
        }
        XCTAssertGreaterThan(count, 0, "nothing in \(folder)")
    }

    /// Each target takes no bytes at all, and any one byte.
    func testTargetsTakeLittle() throws {
        for target in Target.all {
            XCTAssertNoThrow(try target.run(UnsafeRawBufferPointer(start: nil, count: 0)), target.name)
            for byte in UInt8.min...UInt8.max {
                try withUnsafeBytes(of: byte) { bytes in XCTAssertNoThrow(try target.run(bytes), target.name) }
            }
        }
    }

    private func names(in folder: String) -> [String] {
        guard let listing = opendir(folder) else { return [] }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    private func contents(of path: String) -> [UInt8]? {
        guard let file = fopen(path, "rb") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
        return bytes
    }
}
