import ImgdlCore

@testable import ImgdlTransport

private let hosts = [
    "example.com", "www.example.com", "a.b.example.com", "example.co.uk", "co.uk", "github.io", "localhost",
    "127.0.0.1", "::1", "example.com.",
]
private let paths = ["/", "/a", "/a/b", "/a/", "/ab/c"].map { Array($0.utf8) }

/// A jar, line by line. The first byte of each says which host and path, whether over TLS, and whether an answer sets the
/// rest, a request asks, time goes by, or a file says the rest.
func fuzzCookies(_ bytes: UnsafeRawBufferPointer) throws {
    var store = CookieStore()
    var now: Int64 = 1_800_000_000
    for line in bytes.split(separator: 0x0A) {
        let (place, doing) = (Int(line[line.startIndex]), line.dropFirst().first ?? 0)
        let rest = Array(line.dropFirst(2))
        let request = CookieRequest(
            host: hosts[place % hosts.count], path: paths[place / hosts.count % paths.count], isSecure: place >= 128)
        switch doing % 4 {
        case 0: store.receive([rest], from: request, now: now)
        case 1: now += Int64(rest.count) * 86_400
        case 2: for cookie in CookieFile.cookies(rest) { store.restore(cookie, now: now) }
        default: store.receive(repeated(rest, Int(doing)), from: request, now: now)
        }
        try check(&store, request, now)
    }
    try checkFile(store, now)
}

/// Many cookies that differ in their names.
private func repeated(_ field: [UInt8], _ count: Int) -> [[UInt8]] {
    (0..<count).map { Array("\($0)".utf8) + field }
}

private func check(_ store: inout CookieStore, _ request: CookieRequest, _ now: Int64) throws {
    try require(store.count <= CookieStore.maximumCookies, "\(store.count) cookies")
    let cookies = store.cookies()
    try require(cookies.count == store.count, "\(cookies.count) cookies, or \(store.count)")
    for host in hosts {
        let count = cookies.reduce(0) { $0 + ($1.domain == host ? 1 : 0) }
        try require(count <= CookieStore.maximumCookiesPerDomain, "\(count) cookies of \(host)")
    }
    for cookie in cookies {
        try require(cookie.isWellFormed, "a cookie that nobody may set: \(cookie)")
        try require((cookie.expiry ?? now) - now <= Cookie.maximumAge, "a cookie for too long: \(cookie)")
        let isSuffix = ["com", "co.uk", "github.io", "localhost"].contains(cookie.domain)
        try require(cookie.isHostOnly || !isSuffix, "a cookie of a public suffix: \(cookie)")
    }
    guard let field = store.field(for: request, now: now) else { return }
    try require(!field.isEmpty && field.count + 8 <= CookieStore.maximumFieldBytes, "\(field.count) bytes")
    try require(!field.contains { $0 < 0x20 || $0 == 0x7F }, "a control character is sent")
    let received = cookies.filter { request.receives($0) && !$0.isExpired(now) }
    try require(received.count > 0, "cookies of others")
    try require(request.isSecure || !received.contains(where: \.isSecure), "a secret in the clear")
    let size = received.reduce(0) { $0 + $1.pair.count + 2 } - 2
    try require(field.count == size || size + 8 > CookieStore.maximumFieldBytes, "\(field.count) bytes of \(size)")
}

/// What is written is read again, in its order.
private func checkFile(_ store: CookieStore, _ now: Int64) throws {
    let cookies = store.cookies().filter { !$0.isExpired(now) }
    let read = Array(CookieFile.cookies(CookieFile.bytes(cookies)))
    try require(read == cookies, "\(cookies) were read as \(read)")
    var again = CookieStore()
    for cookie in read { again.restore(cookie, now: now) }
    try require(again.cookies() == cookies, "\(cookies) came to be \(again.cookies())")
}

/// A date that servers made up, and the whole field that it is in.
func fuzzSetCookie(_ bytes: UnsafeRawBufferPointer) throws {
    if let seconds = CookieDate.seconds(Array(bytes)[...]) {
        // The years 1601 to 9999.
        try require((-11_644_473_600...253_402_300_799).contains(seconds), "\(seconds) seconds")
    }
    guard let parsed = SetCookie(bytes) else { return }
    try require(parsed.name.count + parsed.value.count <= Cookie.maximumPairBytes, "a pair too long")
    try require((0...Cookie.maximumAge).contains(parsed.maximumAge ?? 0), "an age of \(parsed.maximumAge ?? 0)")
    try require(max(parsed.domain.count, parsed.path.count) <= Cookie.maximumAttributeBytes, "an attribute too long")
}
