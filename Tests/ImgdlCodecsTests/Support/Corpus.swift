import Glibc
import XCTest

/// The collection of pictures made by others, where it is at hand: in IMGDL_CORPUS, or beside the package. Its
/// SOURCES.md explains the manifest. Tests that need it are skipped without it.
struct Corpus {
    struct Entry {
        var path: String
        var bytes: [UInt8]
        fileprivate var fields: [String: String]

        subscript(_ column: String) -> String { fields[column] ?? "-" }
        var format: String { self["format"] }
        var expectation: String { self["expectation"] }
    }

    /// Files of which that is so. A list that is shorter than it was is a failure: what is not there would pass.
    static func files(
        atLeast least: Int, where isMeant: (Entry) -> Bool = { _ in true }, file: StaticString = #filePath,
        line: UInt = #line
    ) throws -> [Entry] {
        guard let corpus else { throw XCTSkip("this machine cannot read the corpus: it is not here") }
        XCTAssertEqual(corpus.missing, [], "files of the manifest that are not there", file: file, line: line)
        let files = corpus.files.filter(isMeant)
        XCTAssertGreaterThanOrEqual(files.count, least, "files of the corpus", file: file, line: line)
        return files
    }

    /// Files whose paths end so, one each.
    static func files(named names: [String], file: StaticString = #filePath, line: UInt = #line) throws -> [Entry] {
        try names.flatMap { name in try files(atLeast: 1, where: { $0.path.hasSuffix(name) }, file: file, line: line) }
    }

    /// One of each format that has frames.
    static let animations = ["dancing-banana.gif", "issue_202.png", "TestImageBlendAnimated.webp"]

    private var files: [Entry] = []
    private var missing: [String] = []

    private static let corpus: Corpus? = {
        guard let folder, let manifest = read(folder + "/MANIFEST.tsv") else { return nil }
        var corpus = Corpus()
        let lines = String(decoding: manifest, as: UTF8.self).split(separator: "\n").map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
        for values in lines.dropFirst() {
            let fields = Dictionary(zip(lines[0], values), uniquingKeysWith: { first, _ in first })
            let path = fields["path"] ?? "a line without path"
            if let bytes = read(folder + "/" + path) {
                corpus.files.append(Entry(path: path, bytes: bytes, fields: fields))
            } else {
                corpus.missing.append(path)
            }
        }
        return corpus
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
