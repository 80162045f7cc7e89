import CImgdl
import ImgdlCore

/// A struct of imgdl.h that begins with `uint32_t struct_size` and that a caller gives or wants filled. It is read and
/// written by the rules of the kernel's copy_struct_from_user: an older, smaller one is completed with zeros, a newer,
/// larger one may carry zeros only in what we do not know.
protocol SizedStruct {
    /// The size in the version that it came with.
    static var firstSize: Int { get }
    /// Where each field since then ends: a program may have declared a part of them. A struct_size between two of these
    /// would cut a field in two. Tests compare them with the header.
    static var laterEnds: [UInt16] { get }
    /// Whether the header has a function that fills it, which is named as it is.
    static var hasInitializer: Bool { get }
}

extension SizedStruct {
    static var hasInitializer: Bool { true }

    /// No struct of any version is larger.
    private static var largest: Int { 4096 }

    /// Where a field ends. The compiler computes it: no key path is left at run time.
    @_transparent
    static func end<Field>(_ field: KeyPath<Self, Field>) -> UInt16 {
        UInt16(MemoryLayout<Self>.offset(of: field)! + MemoryLayout<Field>.size)
    }

    /// The size of a struct whose last field is this one.
    @_transparent
    static func size(through field: KeyPath<Self, some Any>) -> Int {
        let alignment = MemoryLayout<Self>.alignment
        return (Int(end(field)) + alignment - 1) / alignment * alignment
    }

    /// Whether a caller's struct may have that size: that of a program's version, or more than we know.
    private static func isPossible(_ size: Int) -> Bool {
        if size >= MemoryLayout<Self>.stride { return size <= largest }
        return size == firstSize || size > 0 && laterEnds.contains(UInt16(size))
    }

    /// Whether the fields that it came with are where they are looked for, in a struct that is refused for another reason:
    /// its destructor runs. What nobody has initialised has none.
    static func hasFirstFields(_ source: UnsafePointer<Self>) -> Bool {
        (firstSize...largest).contains(Int(UnsafeRawPointer(source).load(as: UInt32.self)))
    }

    private static func wrongSize(_ size: Int) -> Failure {
        let remedy =
            hasInitializer
            ? "call \(Self.self)_init with sizeof(\(Self.self)) first" : "set it to sizeof(\(Self.self))"
        return Failure(.unsupportedOption, "\(Self.self).struct_size is \(size): \(remedy)")
    }

    /// Throws `invalidArgument` for NULL, `unsupportedOption` for sizes and options that we do not know.
    static func read(_ source: UnsafePointer<Self>?) throws(Failure) -> Self {
        guard let source else { throw Failure(.invalidArgument, "\(Self.self) is NULL") }
        let raw = UnsafeRawPointer(source)
        let size = Int(raw.load(as: UInt32.self))
        let known = MemoryLayout<Self>.stride
        if size == known { return source.pointee }
        guard isPossible(size) else { throw wrongSize(size) }
        if size > known {
            let tail = UnsafeRawBufferPointer(start: raw + known, count: size - known)
            guard tail.allSatisfy({ $0 == 0 }) else {
                throw Failure(.unsupportedOption, "\(Self.self) has an option that this version does not know")
            }
        }
        return withUnsafeTemporaryAllocation(of: Self.self, capacity: 1) { copy in
            let bytes = UnsafeMutableRawBufferPointer(copy)
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
            bytes.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: min(size, known)))
            return copy[0]
        }
    }

    /// Zeros and the size, for a caller's struct of that size; nothing, and false, for sizes that cannot be.
    @discardableResult
    static func initialize(_ target: UnsafeMutablePointer<Self>?, _ size: Int) -> Bool {
        guard let target, Thread.working({ isPossible(size) }) else { return false }
        UnsafeMutableRawPointer(target).initializeMemory(as: UInt8.self, repeating: 0, count: size)
        UnsafeMutableRawPointer(target).storeBytes(of: UInt32(size), as: UInt32.self)
        return true
    }

    /// Whether a caller's struct can be filled is known before there is anything to fill it with: a wrong struct_size
    /// is told even where there is nothing. Throws as `read`.
    static func checkSize(of target: UnsafeMutablePointer<Self>?) throws(Failure) {
        guard let target else { throw Failure(.invalidArgument, "\(Self.self) is NULL") }
        let size = Int(UnsafeRawPointer(target).load(as: UInt32.self))
        guard isPossible(size) else { throw wrongSize(size) }
    }

    /// Fills a caller's struct as far as it reaches; its struct_size stays. Throws as `read`.
    func write(to target: UnsafeMutablePointer<Self>?) throws(Failure) {
        try Self.checkSize(of: target)
        guard let target else { return }
        let raw = UnsafeMutableRawPointer(target)
        let size = Int(raw.load(as: UInt32.self))
        withUnsafeBytes(of: self) { bytes in
            let count = min(size, bytes.count)
            guard count > 4, let start = bytes.baseAddress else { return }
            (raw + 4).copyMemory(from: start + 4, byteCount: count - 4)
        }
    }
}
