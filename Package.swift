// swift-tools-version: 6.2
import PackageDescription

// Each C library is called by one target alone: libcurl, OpenSSL's TLS, c-ares, libpsl, and those that undo content codings,
// by ImgdlTransport (through CCurl, CAres, CPublicSuffix and CCodings), the codecs by ImgdlCodecs (through CCodecs), SQLite by
// ImgdlCache (through CStore). OpenSSL's digests are called by both CCurl and CStore. ImgdlCore sees the kernel only.
let package = Package(
    name: "imgdl",
    products: [
        .library(name: "imgdl", type: .dynamic, targets: ["imgdl"]),
        .library(name: "FuzzTargets", type: .dynamic, targets: ["FuzzTargets"]),
    ],
    targets: [
        .systemLibrary(name: "CImgdl", path: "include"),
        .target(name: "CSystem", path: "Sources/CShims/System"),
        .target(
            name: "CCurl", path: "Sources/CShims/Curl",
            linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .systemLibrary(name: "CAres", path: "Sources/CShims/Ares"),
        .systemLibrary(name: "CCodings", path: "Sources/CShims/Codings"),
        .systemLibrary(name: "CPublicSuffix", path: "Sources/CShims/PublicSuffix"),
        .target(
            name: "CCodecs", dependencies: ["CSystem"], path: "Sources/CShims/Codecs",
            cSettings: [.unsafeFlags(["-O2"], .when(configuration: .debug))],
            linkerSettings: [
                .linkedLibrary("jpeg"), .linkedLibrary("png16"), .linkedLibrary("webp"), .linkedLibrary("webpdemux"),
                .linkedLibrary("lcms2"),
            ]),
        .target(
            name: "CStore", path: "Sources/CShims/Store",
            linkerSettings: [.linkedLibrary("sqlite3"), .linkedLibrary("crypto")]),

        .target(name: "ImgdlCore", dependencies: ["CSystem"]),
        .target(
            name: "ImgdlTransport",
            dependencies: ["ImgdlCore", "CAres", "CCurl", "CCodings", "CPublicSuffix", "CSystem"]),
        .target(name: "ImgdlCodecs", dependencies: ["ImgdlCore", "CCodecs"]),
        .target(name: "ImgdlCache", dependencies: ["ImgdlCore", "CStore"]),
        .target(
            name: "imgdl",
            dependencies: ["CImgdl", "CSystem", "ImgdlCore", "ImgdlTransport", "ImgdlCodecs", "ImgdlCache"]),

        .target(name: "COrigin", path: "Tests/Origin/COrigin"),
        .systemLibrary(name: "CZlib", path: "Tests/Origin/CZlib"),
        .target(name: "Origin", dependencies: ["COrigin", "COriginTLS", "CZlib"], path: "Tests/Origin/Origin"),
        .systemLibrary(name: "CNghttp2", path: "Tests/Origin/CNghttp2"),
        .target(
            name: "COriginTLS", path: "Tests/Origin/COriginTLS",
            linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .target(
            name: "OriginHTTP2", dependencies: ["Origin", "COrigin", "CNghttp2"],
            path: "Tests/Origin/OriginHTTP2"),
        .target(
            name: "OriginNginx", dependencies: ["Origin", "OriginHTTP2", "COrigin"], path: "Tests/Origin/OriginNginx"),
        .executableTarget(
            name: "imgdl-origin", dependencies: ["Origin", "OriginHTTP2", "COrigin"], path: "Tests/Origin/imgdl-origin"),

        .target(
            name: "TestPictures", path: "Tests/Pictures", exclude: ["imgdl-pictures"],
            cSettings: [.unsafeFlags(["-O2"], .when(configuration: .debug))],
            linkerSettings: [
                .linkedLibrary("jpeg"), .linkedLibrary("png16"), .linkedLibrary("webp"), .linkedLibrary("lcms2"),
            ]),
        .executableTarget(
            name: "imgdl-pictures", dependencies: ["TestPictures"], path: "Tests/Pictures/imgdl-pictures"),

        .target(
            name: "FuzzTargets",
            dependencies: [
                "imgdl", "CImgdl", "CCodecs", "ImgdlCore", "ImgdlTransport", "ImgdlCodecs", "ImgdlCache",
            ],
            path: "Tests/Fuzz/Targets"),
        .testTarget(name: "FuzzTests", dependencies: ["FuzzTargets"]),

        .testTarget(name: "ImgdlCoreTests", dependencies: ["ImgdlCore", "CSystem"]),
        .testTarget(
            name: "ImgdlTransportTests",
            dependencies: [
                "ImgdlTransport", "ImgdlCore", "CAres", "CCurl", "CSystem", "Origin", "OriginHTTP2", "OriginNginx",
            ]),
        .testTarget(
            name: "ImgdlTests",
            dependencies: [
                "imgdl", "CCurl", "CImgdl", "CSystem", "MemoryTesting", "Origin", "OriginHTTP2", "OriginNginx",
                "TestPictures",
            ]),
        .target(name: "MemoryTesting", dependencies: ["CSystem", "Origin"], path: "Tests/MemoryTesting"),
        .testTarget(name: "ImgdlCachingTests", dependencies: ["ImgdlCore", "ImgdlCache"]),
        .target(name: "CacheTesting", dependencies: ["ImgdlCache", "ImgdlCore"], path: "Tests/CacheTesting"),
        .executableTarget(
            name: "imgdl-cache-crash", dependencies: ["CacheTesting", "ImgdlCache", "ImgdlCore"], path: "Tests/Crash"),
        .executableTarget(
            name: "imgdl-cache-bench", dependencies: ["CacheTesting", "ImgdlCache", "ImgdlCore", "CStore"],
            path: "bench/cache"),
        .testTarget(name: "ImgdlCacheTests", dependencies: ["CacheTesting", "ImgdlCache", "ImgdlCore", "CStore"]),
        .testTarget(
            name: "OriginTests", dependencies: ["Origin", "OriginHTTP2", "imgdl-origin"], path: "Tests/OriginTests"),
        .testTarget(
            name: "ImgdlCodecsTests",
            dependencies: ["ImgdlCodecs", "ImgdlCore", "CCodecs", "CZlib", "MemoryTesting", "TestPictures"],
            // They look at each pixel.
            swiftSettings: [.unsafeFlags(["-O"])]),
    ],
    swiftLanguageModes: [.v5]
)
