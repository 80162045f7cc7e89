/// Pixels of the corpus that differ by the version of a library: each version's are right.
enum PixelsByVersion {
    struct Row {
        var path: String
        var library: String
        /// From which version on; the row with the lowest is what the corpus says.
        var version: String
        var sha256: String
    }

    static let rows = [
        // Smoothing of blocks of progressive data that is not all there.
        Row(
            path: "hostile/jpeg/zune/cde10ca77d168efcedee91bab5c0d9edf9eeb697", library: "libjpeg-turbo",
            version: "2.1.5", sha256: "67ba74a49397ff9679c6aa555a444f075fef204434f4bbf8fe7d8d496cde86c4"),
        Row(
            path: "hostile/jpeg/zune/cde10ca77d168efcedee91bab5c0d9edf9eeb697", library: "libjpeg-turbo",
            version: "3.1", sha256: "0f63cc6d2f0114de9a8dd6e64f6f401c950b07de2c0743ff520ba2147434a13c"),
    ]

    static func expected(_ path: String) -> [String] { rows.filter { $0.path == path }.map(\.sha256) }
}
