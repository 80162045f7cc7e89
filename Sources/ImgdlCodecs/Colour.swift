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

    /// `bytes` is the whole profile; `isInverted` tells how inks are stored.
    mutating func found(
        _ bytes: UnsafeRawBufferPointer, _ samples: codec_samples, isInverted: Bool = false, _ options: DecodeOptions,
        _ clock: DecodeClock
    ) throws(Failure) {
        guard !bytes.isEmpty else { return description.notes.formUnion(.unusableProfile) }
        guard let profile = ProfileBytes(bytes) else { throw Failure(.outOfMemory, "no memory for a colour profile") }
        try found(profile, samples, isInverted: isInverted, options, clock)
    }

    mutating func found(
        _ profile: ProfileBytes, _ samples: codec_samples, isInverted: Bool = false, _ options: DecodeOptions,
        _ clock: DecodeClock
    ) throws(Failure) {
        description.hold(profile)
        guard options.convertsToSRGB else { return }
        guard ProfileTags(profile.bytes).areBounded else {
            return description.notes.formUnion([.unusableProfile, .costlyProfile])
        }
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

    /// False for what is passed over. Throws `metadataLimit`.
    func fits(_ bytes: Int) throws(Failure) -> Bool {
        if bytes <= room { return true }
        guard options.maximumMetadataBytes == nil else {
            throw options.metadataFailure(CheckedNumber(held) + CheckedNumber(bytes))
        }
        return false
    }

    mutating func hold(_ bytes: Int) { held += bytes }
}
