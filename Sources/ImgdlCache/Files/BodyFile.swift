import Glibc
import ImgdlCore

/// Reading a stored body.
enum BodyFile {
    enum Content {
        case whole([BodySlice])
        case missing
        /// Another length or checksum than the index says, or somebody else may have written it: a checksum proves nothing then.
        case damaged
        /// No memory, no descriptor, no right: nothing is known about it.
        case unreadable
    }

    static func read(_ path: InnerPath, length: Int64, checksum: Int64) -> Content {
        let descriptor: Int32
        let status: stat
        do throws(DiskError) {
            (descriptor, status) = try PlainFile.openWithStatus(path, O_RDONLY)
        } catch {
            return error.isMissing ? .missing : error.isNoFile ? .damaged : .unreadable
        }
        defer { close(descriptor) }
        guard Int64(status.st_size) == length, PlainFile.isSound(status) else { return .damaged }
        var isShort = false
        let slices = BodySlice.filled(count: Int(length)) { memory in
            var rest = memory
            while !rest.isEmpty {
                let count = Glibc.read(descriptor, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                isShort = count == 0
                guard count > 0 else { return false }
                rest = UnsafeMutableRawBufferPointer(rebasing: rest[count...])
            }
            return true
        }
        guard let slices else { return isShort ? .damaged : .unreadable }
        guard let actual = self.checksum(of: slices) else { return .unreadable }
        return actual == checksum ? .whole(slices) : .damaged
    }

    private static func checksum(of slices: [BodySlice]) -> Int64? {
        if slices.count == 1 { return slices[0].withBytes { Checksum.of($0) } }
        guard let checksum = Checksum() else { return nil }
        for slice in slices { checksum.add(UnsafeRawBufferPointer(start: slice.start, count: slice.count)) }
        return checksum.value
    }
}
