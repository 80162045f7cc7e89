// swift-tools-version:6.0
// Foundation's URLSession on Linux, as a peer of the benchmark: a package of its own, since nothing else here uses
// Foundation.
import PackageDescription

let package = Package(
    name: "urlsession", targets: [.executableTarget(name: "urlsession", path: "Sources")], swiftLanguageModes: [.v6])
