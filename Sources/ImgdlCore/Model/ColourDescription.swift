import Glibc

/// What a file says about its colours, and what was done about it.
package struct ColourDescription: Sendable {
    /// Values are ABI.
    package struct Notes: OptionSet, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let profile = Notes(rawValue: 1 << 0)
        package static let sRGB = Notes(rawValue: 1 << 1)
        package static let gamma = Notes(rawValue: 1 << 2)
        package static let chromaticities = Notes(rawValue: 1 << 3)
        package static let converted = Notes(rawValue: 1 << 4)
        package static let unusableProfile = Notes(rawValue: 1 << 5)
        /// With `unusableProfile`.
        package static let costlyProfile = Notes(rawValue: 1 << 6)
    }

    package var notes: Notes = []
    /// The ICC profile as the file has it.
    package private(set) var profile: ProfileBytes?

    package init() {}

    package mutating func hold(_ profile: ProfileBytes) {
        self.profile = profile
        notes.insert(.profile)
    }
}

/// An ICC profile; its address is lent to callers as long as an image holds it.
package final class ProfileBytes: @unchecked Sendable {
    package let bytes: UnsafeRawBufferPointer

    /// `memory`: by malloc, and this one's from now on.
    package init(owning memory: UnsafeMutableRawPointer, count: Int) {
        bytes = UnsafeRawBufferPointer(start: memory, count: count)
    }

    /// Copies; nil when there is no memory.
    package init?(_ source: UnsafeRawBufferPointer) {
        guard let start = source.baseAddress, !source.isEmpty, let memory = malloc(source.count) else { return nil }
        memory.copyMemory(from: start, byteCount: source.count)
        bytes = UnsafeRawBufferPointer(start: memory, count: source.count)
    }

    deinit { free(UnsafeMutableRawPointer(mutating: bytes.baseAddress)) }
}
