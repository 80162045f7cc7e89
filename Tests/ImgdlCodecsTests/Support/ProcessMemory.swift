import Glibc

/// What this process takes, as the kernel counts it, in bytes.
enum ProcessMemory {
    /// Sanitizers have memory of their own.
    static var isSanitized: Bool { dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil }

    static var resident: Int { field("VmRSS:") }
    /// The most since `resetPeak`.
    static var peak: Int { field("VmHWM:") }

    /// False where the kernel does not let the peak be reset.
    static func resetPeak() -> Bool {
        guard let file = fopen("/proc/self/clear_refs", "w") else { return false }
        let isWritten = fputs("5", file) >= 0
        return fclose(file) == 0 && isWritten
    }

    /// malloc_trim, which Swift's Glibc module does not show.
    static func trimHeap() {
        typealias Trim = @convention(c) (Int) -> Int32
        if let trim = dlsym(nil, "malloc_trim") { _ = unsafeBitCast(trim, to: Trim.self)(0) }
    }

    private static func field(_ name: String) -> Int {
        guard let file = fopen("/proc/self/status", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, Int32(line.count), file) != nil {
            let words = String(cString: line).split(whereSeparator: { $0.isWhitespace })
            if words.count > 1, words[0] == name { return (Int(words[1]) ?? 0) << 10 }
        }
        return 0
    }
}
