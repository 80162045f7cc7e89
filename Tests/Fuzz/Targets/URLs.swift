import ImgdlCore

@testable import ImgdlTransport

/// A URL, and after a line end a reference that is resolved against it. What is canonical stays as it is.
func fuzzURL(_ bytes: UnsafeRawBufferPointer) throws {
    let (first, rest) = bytes.firstLineAndRest
    var schemes = URLSchemes(allowsFiles: true, allowsData: true)
    schemes.isRegistered = { $0 == "app" }
    guard let url = try? URLParser.parseAny(first.text, schemes) else {
        return try require(PlainURL.parse(first.text) == nil, "plain, and no URL")
    }
    if let plain = PlainURL.parse(first.text) { try require(plain == url, "“\(url.canonical)” is not so plain") }
    try checkCanonical(url, schemes)
    guard let target = try? URLParser.resolve(rest.text, against: url) else { return }
    try require(target.scheme == "http" || target.scheme == "https", "a reference leads to \(target.scheme)")
    try checkCanonical(target, schemes)
}

private func checkCanonical(_ url: ParsedURL, _ schemes: URLSchemes) throws {
    let again: ParsedURL
    do { again = try URLParser.parse(url.canonical, schemes) } catch {
        throw Finding("“\(url.canonical)” is canonical and \(error)")
    }
    try require(again.canonical == url.canonical, "“\(url.canonical)” becomes “\(again.canonical)”")
    try require(again.host == url.host && again.port == url.port, "“\(url.canonical)” leads elsewhere")
    try require(again.user == nil && again.password == nil, "“\(url.canonical)” has a user")
    try require(!URLText.hasControlCharacter(url.canonical), "a control character in “\(url.canonical)”")
}

/// What is behind "data:".
func fuzzDataURL(_ bytes: UnsafeRawBufferPointer) throws {
    let text = "data:" + bytes.text
    guard let url = try? URLParser.parse(text, URLSchemes(allowsData: true)) else { return }
    let data: DataURL
    do { data = try DataURL(url) } catch { throw Finding("“\(url.canonical)” was a URL and \(error)") }
    try require(data.bytes.count <= text.utf8.count, "more data than text")
    try require(url.canonical.utf8.starts(with: "data:".utf8), "“\(url.canonical)” is no data: URL")
    let type = String(decoding: url.canonical.utf8.dropFirst(5).prefix { $0 != UInt8(ascii: ",") }, as: UTF8.self)
    try require(
        type.isEmpty || type.hasPrefix(";") || type.utf8.starts(with: data.mediaType.utf8),
        "the type “\(type)” became “\(data.mediaType)”")
}
