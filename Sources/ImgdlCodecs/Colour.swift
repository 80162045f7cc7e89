import CCodecs
import ImgdlCore

/// A picture's way from its profile to sRGB. Owned by its decoder.
final class ColourConversion {
    let session: OpaquePointer

    /// nil for a profile that cannot be used for such samples, and when it was stopped.
    init?(
        _ profile: ProfileBytes, _ samples: codec_samples, isInverted: Bool, isBGRA: Bool, _ clock: DecodeClock
    ) {
        // lcms2 has a list of all contexts, with a lock.
        let session = Thread.working {
            codec_colour_create(
                profile.bytes.baseAddress, profile.bytes.count, samples, isInverted ? 1 : 0, isBGRA ? 1 : 0,
                clock.session)
        }
        guard let session else { return nil }
        self.session = session
    }

    deinit { Thread.working { codec_colour_destroy(session) } }
}

/// What one picture says about its colours.
struct Colours {
    var description = ColourDescription()
    /// nil: pixels stay as they are stored.
    private(set) var conversion: ColourConversion?

    /// Bytes of the profile, and of the copy that lcms2 has.
    var memory: CheckedNumber? { CheckedNumber(description.profile?.bytes.count ?? 0) + copied }
    /// lcms2's alone.
    var copied: CheckedNumber {
        CheckedNumber(conversion == nil ? 0 : description.profile?.bytes.count ?? 0)
    }

    /// `bytes` is the whole profile; `isInverted` tells how inks are stored.
    mutating func found(
        _ bytes: UnsafeRawBufferPointer, _ samples: codec_samples, isInverted: Bool = false, _ options: DecodeOptions,
        _ clock: DecodeClock
    ) throws(Failure) {
        guard !bytes.isEmpty else { return description.notes.formUnion(.unusableProfile) }
        guard let profile = ProfileBytes(bytes) else { throw Failure(.outOfMemory, "no memory for a colour profile") }
        try found(profile, samples, isInverted: isInverted, options, clock)
    }

    /// nil: there is one, but none that can be used.
    mutating func found(
        _ profile: ProfileBytes?, _ samples: codec_samples, isInverted: Bool = false, _ options: DecodeOptions,
        _ clock: DecodeClock
    ) throws(Failure) {
        guard let profile else { return description.notes.formUnion(.unusableProfile) }
        description.hold(profile)
        guard options.convertsToSRGB else { return }
        guard ProfileTags(profile.bytes).areBounded else {
            return description.notes.formUnion([.unusableProfile, .costlyProfile])
        }
        try options.checkMemory(ofMetadata: 2 * CheckedNumber(profile.bytes.count))
        conversion = ColourConversion(
            profile, samples, isInverted: isInverted, isBGRA: options.pixelFormat.isBGRA, clock)
        try clock.check()
        description.notes.insert(conversion == nil ? .unusableProfile : .converted)
    }
}

/// Bytes of EXIF and profiles that one picture holds.
struct MetadataMeter {
    private let options: DecodeOptions
    private var held = 0

    init(_ options: DecodeOptions) { self.options = options }

    /// What may be held yet, as far as the caller set a limit.
    var room: Int { (options.maximumMetadataBytes ?? DecodeOptions.defaultMaximumMetadataBytes) - held }

    /// False for what is passed over. Throws `metadataLimit` and `memoryLimit`. `profile`: what a message calls it.
    func fits(_ bytes: Int, profile: String = "profile") throws(Failure) -> Bool {
        if bytes <= room {
            try options.checkMemory(ofMetadata: CheckedNumber(held) + CheckedNumber(bytes))
            return true
        }
        guard options.maximumMetadataBytes == nil else {
            throw options.metadataFailure(CheckedNumber(held) + CheckedNumber(bytes), profile: profile)
        }
        return false
    }

    /// The same of a chunk with a name and a profile that is deflated, which need not have made it shorter: blocks that are
    /// stored have a head, one for each 16 KiB as zlib writes them.
    func fits(packed bytes: Int) throws(Failure) -> Bool {
        guard bytes - room / 1000 - Self.mostAroundProfile <= room else {
            return try fits(bytes, profile: "packed profile")
        }
        try options.checkMemory(ofMetadata: CheckedNumber(held) + CheckedNumber(bytes))
        return true
    }

    /// The longest name of 79 bytes, its end, the kind of compression, and what stands around deflated data.
    private static let mostAroundProfile = 128

    mutating func hold(_ bytes: Int) { held += bytes }
}
