/// Which script a path has: its own, or that of the longest prefix.
package struct Routes<Script> {
    private var exact: [String: Script] = [:]
    private var prefixes: [(prefix: String, script: Script)] = []

    package init() {}

    package mutating func set(_ path: String, _ script: Script) { exact[path] = script }

    package mutating func set(prefix: String, _ script: Script) {
        prefixes.removeAll { $0.prefix == prefix }
        prefixes.append((prefix, script))
        prefixes.sort { $0.prefix.utf8.count > $1.prefix.utf8.count }
    }

    package subscript(path: String) -> Script? {
        exact[path] ?? prefixes.first { path.hasPrefix($0.prefix) }?.script
    }
}
