/// What a decoder's failure says of the body that is stored.
enum DecodingRules {
    /// What becomes of a stored body in which a decoder found no whole picture.
    enum Consequence: Equatable {
        case none
        /// It is validated before it answers anybody again.
        case validate
        /// It is fetched anew.
        case remove
    }

    /// `outcome`: where the body was from. The server has just been asked about one that was validated, and one that was
    /// resumed is put together of two: either is a picture at the server and none here, or asking again would be to no end.
    static func consequence(
        of failure: Failure, _ options: DecodeOptions, _ hooks: HookKinds, outcome: CacheOutcome
    ) -> Consequence {
        guard isAboutBytes(failure.code), !isOwnDemand(options), !hooks.contains(.transformBody) else { return .none }
        switch outcome {
        case .network, .hit, .stale: return .validate
        case .validated, .resumed: return .remove
        }
    }

    /// Others may find a picture where this finds none.
    static func isOwnDemand(_ options: DecodeOptions) -> Bool { options.requiresAnimation || options.coder != nil }

    /// Not about what this request allows, nor what this machine has.
    private static func isAboutBytes(_ code: ErrorCode) -> Bool { code == .badImageData || code == .truncated }
}
