import Glibc

/// The header fields of one response as they were received, and what has been found out about it, in one piece of memory:
/// strings are made for those alone who ask for them.
///
/// Whoever reads the response adds to it; once a head has it, nothing is added any more.
package struct HeaderSection: @unchecked Sendable {
    /// Before each field, which is kept as its line was: the name, what stands between, the value.
    private struct Place {
        var nameLength: UInt32
        var valueStart: UInt32
        var valueLength: UInt32
    }

    private struct Contents {
        /// First: it is pointed to.
        var facts = ResponseFacts()
        let capacity: Int
        var length = 0
        var lastPlace = 0
        /// A bit for each length that a name has, up to 63: most fields that are asked for are not there.
        var nameLengths: UInt64 = 0
        /// Likewise of those that several names have.
        var repeatedLengths: UInt64 = 0
        var count = 0
    }

    /// Its elements are the fields.
    private final class Storage: ManagedBuffer<Contents, UInt8> {
        static func make(_ contents: Contents) -> Storage {
            unsafeDowncast(Storage.create(minimumCapacity: contents.capacity) { _ in contents }, to: Storage.self)
        }
    }

    /// Of most servers.
    private static let usualBytes = 448

    private var storage: Storage

    /// `capacity`: bytes of fields that there will be, as far as that is known.
    package init(capacity: Int = HeaderSection.usualBytes) { storage = .make(Contents(capacity: capacity)) }

    private var contents: UnsafeMutablePointer<Contents> { storage.withUnsafeMutablePointerToHeader { $0 } }
    private var memory: UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(storage.withUnsafeMutablePointerToElements { $0 })
    }

    package var count: Int { contents.pointee.count }

    /// What is known besides. Of a section that several heads have each changes its own.
    var facts: ResponseFacts {
        @inline(__always) unsafeAddress { UnsafePointer(factsAddress) }
        @inline(__always) unsafeMutableAddress {
            if !isKnownUniquelyReferenced(&storage) { storage = copy(capacity: contents.pointee.length) }
            return factsAddress
        }
    }

    /// Of one that no other head has yet.
    func begin(with facts: ResponseFacts) { factsAddress.pointee = facts }

    private var factsAddress: UnsafeMutablePointer<ResponseFacts> {
        UnsafeMutableRawPointer(contents).assumingMemoryBound(to: ResponseFacts.self)
    }

    @inline(never) private func copy(capacity: Int) -> Storage {
        let old = contents.pointee
        HeaderSteps.take(old.length)
        let copy = Storage.make(
            Contents(
                facts: old.facts, capacity: capacity, length: old.length, lastPlace: old.lastPlace,
                nameLengths: old.nameLengths, repeatedLengths: old.repeatedLengths, count: old.count))
        copy.withUnsafeMutablePointerToElements {
            UnsafeMutableRawPointer($0).copyMemory(from: memory, byteCount: old.length)
        }
        return copy
    }

    // MARK: Adding

    /// A field of a line: its name is the first bytes, and its value what is behind `valueStart`, up to the end.
    package mutating func append(_ line: UnsafeRawBufferPointer, nameLength: Int, valueStart: Int) {
        reserve(MemoryLayout<Place>.size + line.count)
        let contents = contents
        let memory = memory
        let length = contents.pointee.length
        contents.pointee.lastPlace = length
        let place = Place(
            nameLength: UInt32(nameLength), valueStart: UInt32(valueStart),
            valueLength: UInt32(line.count - valueStart))
        memory.storeBytes(of: place, toByteOffset: length, as: Place.self)
        (memory + length + MemoryLayout<Place>.size).copyMemory(from: line.baseAddress!, byteCount: line.count)
        contents.pointee.length = length + MemoryLayout<Place>.size + line.count
        contents.pointee.count += 1
        contents.pointee.repeatedLengths |= contents.pointee.nameLengths & Self.bit(nameLength)
        contents.pointee.nameLengths |= Self.bit(nameLength)
    }

    /// The last field's value goes on, behind a space.
    package mutating func continueValue(_ bytes: UnsafeRawBufferPointer) {
        guard count > 0 else { return }
        HeaderSteps.take(1 + bytes.count)
        reserve(1 + bytes.count)
        let contents = contents
        let memory = memory
        let length = contents.pointee.length
        let lastPlace = contents.pointee.lastPlace
        memory.storeBytes(of: 0x20, toByteOffset: length, as: UInt8.self)
        if let start = bytes.baseAddress { (memory + length + 1).copyMemory(from: start, byteCount: bytes.count) }
        contents.pointee.length += 1 + bytes.count
        var place = memory.loadUnaligned(fromByteOffset: lastPlace, as: Place.self)
        place.valueLength += UInt32(1 + bytes.count)
        memory.storeBytes(of: place, toByteOffset: lastPlace, as: Place.self)
    }

    private static func bit(_ nameLength: Int) -> UInt64 { 1 << UInt64(min(nameLength, 63)) }

    private mutating func reserve(_ more: Int) {
        let needed = contents.pointee.length + more
        guard needed > contents.pointee.capacity else { return }
        storage = copy(capacity: max(2 * contents.pointee.capacity, needed))
    }

    // MARK: Reading

    /// All of them, in their order.
    package var fields: [HeaderField] {
        var fields: [HeaderField] = []
        fields.reserveCapacity(count)
        forEach { name, value in fields.append(HeaderField(Self.text(name), Self.text(value))) }
        return fields
    }

    /// The first field of this name.
    package func first(named name: String) -> String? {
        var name = name
        guard let found = name.withUTF8({ find(UnsafeRawBufferPointer($0)) }) else { return nil }
        return withExtendedLifetime(storage) { Self.text(found.value) }
    }

    /// The values of the fields of this name as they were received, in their order, so many at most.
    package func values(named name: StaticString, maximum: Int) -> [[UInt8]] {
        let name = Self.bytes(name)
        var values: [[UInt8]] = []
        var start = 0
        while values.count < maximum, let found = find(name, from: start) {
            values.append(withExtendedLifetime(storage) { Array(found.value) })
            start = found.end
        }
        return values
    }

    /// The beginning of the last field's name; nil where there is none.
    package func lastName(maximumBytes: Int) -> String? {
        guard count > 0 else { return nil }
        let position = contents.pointee.lastPlace
        let place = memory.loadUnaligned(fromByteOffset: position, as: Place.self)
        return withExtendedLifetime(storage) {
            Self.text(UnsafeRawBufferPointer(rebasing: bytes(at: position, place).name.prefix(maximumBytes)))
        }
    }

    package func contains(_ name: StaticString) -> Bool { find(Self.bytes(name)) != nil }

    /// The value of the one field of this name, where it consists of digits alone, and not too many of them.
    package func number(named name: StaticString) -> Int64? {
        let name = Self.bytes(name)
        guard let found = find(name) else { return nil }
        let mayBeRepeated = contents.pointee.repeatedLengths & Self.bit(name.count) != 0
        if mayBeRepeated, find(name, from: found.end) != nil { return nil }
        return withExtendedLifetime(storage) { Self.number(found.value) }
    }

    /// As of `ResponseHead`.
    package var mediaType: String {
        guard let found = find(Self.bytes("Content-Type")) else { return "" }
        return withExtendedLifetime(storage) { ResponseHead.mediaType(of: found.value) }
    }

    /// The first field of this name from `start` on: its value, valid while the storage lives, and where it ends.
    private func find(
        _ name: UnsafeRawBufferPointer, from start: Int = 0
    ) -> (value: UnsafeRawBufferPointer, end: Int)? {
        guard contents.pointee.nameLengths & Self.bit(name.count) != 0 else { return nil }
        let memory = memory
        let length = contents.pointee.length
        var position = start
        while position < length {
            HeaderSteps.take()
            let place = memory.loadUnaligned(fromByteOffset: position, as: Place.self)
            let end = end(of: position, place)
            if place.nameLength == name.count {
                let bytes = self.bytes(at: position, place)
                if equalIgnoringCase(bytes.name, name) { return (bytes.value, end) }
            }
            position = end
        }
        return nil
    }

    private static func bytes(_ name: StaticString) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
    }

    /// nil: not of digits alone, or of more than any length has.
    package static func number(_ digits: UnsafeRawBufferPointer) -> Int64? {
        guard (1...18).contains(digits.count) else { return nil }
        var number: Int64 = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            number = 10 * number + Int64(digit - 0x30)
        }
        return number
    }

    @inline(__always)
    private func forEach(_ use: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void) {
        let memory = memory
        let length = contents.pointee.length
        var position = 0
        while position < length {
            let place = memory.loadUnaligned(fromByteOffset: position, as: Place.self)
            let bytes = self.bytes(at: position, place)
            use(bytes.name, bytes.value)
            position = end(of: position, place)
        }
    }

    @inline(__always)
    private func bytes(
        at position: Int, _ place: Place
    ) -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        let line = UnsafeRawPointer(memory) + position + MemoryLayout<Place>.size
        return (
            UnsafeRawBufferPointer(start: line, count: Int(place.nameLength)),
            UnsafeRawBufferPointer(start: line + Int(place.valueStart), count: Int(place.valueLength))
        )
    }

    @inline(__always)
    private func end(of position: Int, _ place: Place) -> Int {
        position + MemoryLayout<Place>.size + Int(place.valueStart) + Int(place.valueLength)
    }

    /// UTF-8 where it is; else each byte is a character of ISO 8859-1 (RFC 9110 section 5.5 calls them opaque).
    package static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        // Nearly always; and the general way takes ten times as long.
        if bytes.reduce(0, |) < 0x80 { return String(decoding: bytes, as: UTF8.self) }
        return String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
