import Glibc

/// The collection of pictures made by others, where it is at hand: in IMGDL_CORPUS, or beside the package. Its
/// SOURCES.md explains the manifest. The suite passes without it.
struct Corpus {
    struct Entry {
        var path: String
        var bytes: [UInt8]
        fileprivate var fields: [String: String]

        subscript(_ column: String) -> String { fields[column] ?? "-" }
        var format: String { self["format"] }
        var expectation: String { self["expectation"] }
    }

    static let files: [Entry] = {
        guard let folder, let manifest = read(folder + "/MANIFEST.tsv") else { return [] }
        let lines = String(decoding: manifest, as: UTF8.self).split(separator: "\n")
        guard let head = lines.first else { return [] }
        let columns = head.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        return lines.dropFirst().compactMap { line in
            let values = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            let fields = Dictionary(zip(columns, values), uniquingKeysWith: { first, _ in first })
            guard let path = fields["path"], let bytes = read(folder + "/" + path) else { return nil }
            return Entry(path: path, bytes: bytes, fields: fields)
        }
    }()

    private static var folder: String? {
        if let named = getenv("IMGDL_CORPUS") { return String(cString: named) }
        let package = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        return "/\(package)/../shared/corpus"
    }

    private static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "rb") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8]()
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&block, 1, block.count, file)
            if count == 0 { return bytes }
            bytes += block[..<count]
        }
    }
}
