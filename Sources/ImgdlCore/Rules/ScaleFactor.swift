/// How many pixels of a picture make one of the layout, by the name of its file: 2 for `photo@2x.png`, 3 for
/// `photo@3x.png`, also with the `@` percent-encoded; else 1 (features X10).
package func scaleFactor(ofURL url: String) -> Double {
    let path = url.prefix { $0 != "?" && $0 != "#" }
    // Only the name counts: a host or a folder says nothing about a picture.
    guard let slash = path.lastIndex(of: "/") else { return 1 }
    let name = Array(path[path.index(after: slash)...].utf8)
    for factor in [UInt8(2), 3] {
        let mark = [UInt8(ascii: "0") + factor, UInt8(ascii: "x"), UInt8(ascii: ".")]
        if contains(name, [UInt8(ascii: "@")] + mark) || contains(name, Array("%40".utf8) + mark) {
            return Double(factor)
        }
    }
    return 1
}

private func contains(_ name: [UInt8], _ mark: [UInt8]) -> Bool {
    name.count >= mark.count && (0...name.count - mark.count).contains { name[$0...].starts(with: mark) }
}
