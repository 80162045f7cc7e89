/// Every way a call or a download can fail. The numbers are ABI: never renumbered, never used again.
/// 1000–1003 and 2000–2004 are SDWebImage's (features E1–E9); ours start at 2100, a hundred to each stage.
package enum ErrorCode: Int32, CaseIterable, Sendable {
    case ok = 0

    case invalidURL = 1000
    case badImageData = 1001
    case notModified = 1002
    case blacklisted = 1003

    case invalidOperation = 2000
    case invalidStatus = 2001
    case cancelled = 2002
    case invalidResponse = 2003
    case invalidContentType = 2004

    // 2100: the call itself.
    case invalidArgument = 2100
    case invalidHandle = 2101
    case unsupportedOption = 2102
    case wouldDeadlock = 2103
    case shutDown = 2104
    case forked = 2105
    case outOfMemory = 2106
    case waitTimeout = 2107
    case notReady = 2108
    case `internal` = 2109
    case invalidHeader = 2110
    case unsupportedScheme = 2111
    case backgroundExpired = 2112

    // 2200: the network.
    case resolveFailed = 2200
    case connectFailed = 2201
    case connectionLost = 2202
    case tlsFailed = 2203
    case tlsCertificate = 2204
    case protocolError = 2205
    case truncated = 2206
    case connectTimeout = 2207
    case idleTimeout = 2208
    case totalTimeout = 2209
    case proxyFailed = 2210
    case tooManyRedirects = 2211
    case redirectRefused = 2212
    case contentEncoding = 2213
    case addressRefused = 2214
    case tlsPin = 2215
    case notCached = 2216

    // 2300: a limit was reached.
    case bodyLimit = 2300
    case headerLimit = 2301
    case pixelLimit = 2302
    case frameLimit = 2303
    case scanLimit = 2304
    case sizeLimit = 2305
    case animationLimit = 2306
    case metadataLimit = 2307
    case memoryLimit = 2308
    case decodeTimeout = 2309
    case flood = 2310

    // 2400: the cache's disk.
    case cacheBusy = 2400
    case diskFull = 2401
    case readOnly = 2402
    case diskFailed = 2403
    case unsafeDirectory = 2404

    /// Some of a picture may have been decoded before it happened.
    package var mayLeavePixels: Bool {
        switch self {
        case .badImageData, .truncated, .pixelLimit, .frameLimit, .scanLimit, .sizeLimit, .animationLimit,
            .metadataLimit,
            .memoryLimit, .decodeTimeout:
            true
        default: false
        }
    }
}
