import ImgdlCore

/// Structs that begin with `uint32_t struct_size`, read and written by the rules of the kernel's copy_struct_from_user:
/// an older, smaller one is completed with zeros, a newer, larger one may carry zeros only in what we do not know.
enum SizedStruct {
    /// No struct of any version is larger.
    private static let largest = 4096

    /// Whether a caller's struct may have that size: that of version 1, up to the end of a later field, or more than we know.
    private static func isPossible<Struct>(_ size: Int, _: Struct.Type, _ size1: Int, _ ends: () -> [UInt16]) -> Bool {
        guard size >= size1, size <= largest else { return false }
        return size == size1 || size >= MemoryLayout<Struct>.stride || ends().contains(UInt16(size))
    }

    private static func wrongSize<Struct>(_ size: Int, _: Struct.Type) -> Failure {
        Failure(.unsupportedOption, "\(Struct.self).struct_size is \(size): call \(Struct.self)_init first")
    }

    /// `ends`: of the fields since version 1, but for the last. Throws `invalidArgument` for NULL, `unsupportedOption` for
    /// sizes and options that we do not know.
    static func read<Struct>(
        _ source: UnsafePointer<Struct>?, version1 size1: Int, ends: @autoclosure () -> [UInt16] = []
    ) throws(Failure) -> Struct {
        guard let source else { throw Failure(.invalidArgument, "\(Struct.self) is NULL") }
        let raw = UnsafeRawPointer(source)
        let size = Int(raw.load(as: UInt32.self))
        let known = MemoryLayout<Struct>.stride
        if size == known { return source.pointee }
        guard isPossible(size, Struct.self, size1, ends) else { throw wrongSize(size, Struct.self) }
        if size > known {
            let tail = UnsafeRawBufferPointer(start: raw + known, count: size - known)
            guard tail.allSatisfy({ $0 == 0 }) else {
                throw Failure(.unsupportedOption, "\(Struct.self) has an option that this version does not know")
            }
        }
        return withUnsafeTemporaryAllocation(of: Struct.self, capacity: 1) { copy in
            let bytes = UnsafeMutableRawBufferPointer(copy)
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
            bytes.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: min(size, known)))
            return copy[0]
        }
    }

    /// Zeros and the size, for a caller's struct of that size; nothing, and false, for sizes that cannot be.
    @discardableResult
    static func initialize<Struct>(
        _ target: UnsafeMutablePointer<Struct>?, _ size: Int, version1 size1: Int,
        ends: @autoclosure () -> [UInt16] = []
    ) -> Bool {
        guard let target, Thread.working({ isPossible(size, Struct.self, size1, ends) }) else { return false }
        UnsafeMutableRawPointer(target).initializeMemory(as: UInt8.self, repeating: 0, count: size)
        UnsafeMutableRawPointer(target).storeBytes(of: UInt32(size), as: UInt32.self)
        return true
    }

    /// Fills a caller's struct as far as it reaches; its struct_size stays.
    static func write<Struct>(
        _ value: Struct, to target: UnsafeMutablePointer<Struct>?, version1 size1: Int,
        ends: @autoclosure () -> [UInt16] = []
    ) throws(Failure) {
        guard let target else { throw Failure(.invalidArgument, "\(Struct.self) is NULL") }
        let raw = UnsafeMutableRawPointer(target)
        let size = Int(raw.load(as: UInt32.self))
        guard isPossible(size, Struct.self, size1, ends) else { throw wrongSize(size, Struct.self) }
        withUnsafeBytes(of: value) { bytes in
            let count = min(size, bytes.count)
            guard count > 4, let start = bytes.baseAddress else { return }
            (raw + 4).copyMemory(from: start + 4, byteCount: count - 4)
        }
    }
}

/// Text from C: NULL and bytes that are not UTF-8 give nil.
func string(_ text: UnsafePointer<CChar>?) -> String? {
    text.flatMap { String(validatingCString: $0) }
}
