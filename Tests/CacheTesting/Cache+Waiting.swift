import ImgdlCache
import ImgdlCore

extension Cache {
    /// For an answer to a request that is sent now.
    package func write(_ key: String, _ response: StoredResponse) -> (any StoreWriter)? {
        write(key, response, since: requestMark(key))
    }

    /// Waits for a look-up: of the newest, unless `choose` says otherwise.
    package func wait(
        _ key: String, choose: @escaping @Sendable ([StoredEntry]) -> StoreChoice = { _ in .entry(0, withBody: true) }
    ) -> FoundEntry? {
        let lock = Lock()
        let done = Condition(lock)
        nonisolated(unsafe) var answer: FoundEntry??
        find(key, choose: choose) { found in
            lock.withLock {
                answer = .some(found)
                done.signal()
            }
        }
        return lock.withLock {
            while true {
                if let answer { return answer }
                done.wait()
            }
        }
    }
}
