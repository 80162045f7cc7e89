import ImgdlCore

/// What is stored under a key while answers to other requests for it are on their way. One of those that comes later may be
/// older than what nothing but the index knows of by then, and nobody waits for that.
///
/// Threads: any. No other lock is taken inside its own.
final class StoredMeanwhile: @unchecked Sendable {
    private struct Shelf {
        var watches = 0
        /// Those that have not been replaced, in the order in which they came.
        var responses: [StoredResponse] = []
    }

    private let lock = Lock()
    private var shelves: [String: Shelf] = [:]
    private let generation = ProcessGeneration.current

    /// While it lives what is stored under the key is noted.
    final class Watch: Sendable {
        private let meanwhile: StoredMeanwhile
        private let key: String

        fileprivate init(_ meanwhile: StoredMeanwhile, _ key: String) {
            self.meanwhile = meanwhile
            self.key = key
        }

        deinit { meanwhile.end(key) }
    }

    func watch(_ key: String) -> Watch {
        lock.withLock { shelves[key, default: Shelf()].watches += 1 }
        return Watch(self, key)
    }

    private func end(_ key: String) {
        // The parent's lock may be taken for ever.
        guard generation == ProcessGeneration.current else { return }
        lock.withLock {
            shelves[key]?.watches -= 1
            if shelves[key]?.watches == 0 { shelves[key] = nil }
        }
    }

    func add(_ response: StoredResponse, _ key: String, wallTime: Int64) {
        lock.withLock {
            // Whoever watches alone is the one that stores this.
            guard shelves[key]?.watches ?? 0 > 1 else { return }
            shelves[key]?.responses.removeAll { response.displaces($0, wallTime: wallTime) }
            shelves[key]?.responses.append(response)
            if shelves[key]?.responses.count ?? 0 > StoredResponse.maximumVariants {
                shelves[key]?.responses.removeFirst()
            }
        }
    }

    func hasOvertaken(_ response: StoredResponse, _ key: String, wallTime: Int64) -> Bool {
        lock.withLock {
            shelves[key]?.responses.contains { response.isOvertaken(by: $0, wallTime: wallTime) } ?? false
        }
    }

    /// For tests.
    var keyCount: Int { lock.withLock { shelves.count } }
}
