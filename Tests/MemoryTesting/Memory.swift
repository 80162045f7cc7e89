import CSystem
import Glibc
import Origin

/// What this process takes, as the kernel counts it, in bytes.
package enum Memory {
    /// What is kept of the last picture for the next does not count: it is given back first. Nor does what the heap keeps
    /// for later.
    package static var resident: Int {
        _ = mapsWhatIsLarge
        giveBackKept()
        trimHeap()
        return field("VmRSS:")
    }
    /// The most since `resetPeak`.
    package static var peak: Int { field("VmHWM:") }

    /// False where the kernel does not allow it.
    package static func resetPeak() -> Bool {
        guard let file = fopen("/proc/self/clear_refs", "w") else { return false }
        let isWritten = fputs("5", file) >= 0
        return fclose(file) == 0 && isWritten
    }

    /// Sanitizers keep what is freed, and shadow what is used.
    package static var isSanitized: Bool { dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil }

    /// What is let go on other threads is gone a moment later.
    package static func returns(to bound: Int, within deadline: Deadline = .patient) -> Bool {
        while resident > bound {
            if deadline.instant <= .now { return false }
            usleep(1_000)
        }
        return true
    }

    package static func excess(_ before: Int) -> String { "\((resident - before) >> 10) KiB" }

    /// Mappings of which 8 MiB and more are resident, for who has to find out what stays: the length and what is resident, in
    /// KiB, and the file.
    package static var largeMappings: String {
        guard let file = fopen("/proc/self/smaps", "r") else { return "" }
        defer { fclose(file) }
        var found: [String] = []
        var name = ""
        var size = 0
        var line = [CChar](repeating: 0, count: 4_096)
        while fgets(&line, Int32(line.count), file) != nil {
            let words = String(cString: line).split(whereSeparator: { $0.isWhitespace })
            switch words.first {
            case "Size:": size = Int(words[1]) ?? 0
            case "Rss:":
                guard let resident = Int(words[1]), resident >= 8 << 10 else { continue }
                found.append("\(size)/\(resident) \(name)")
            case let first? where first.contains("-") && !first.hasSuffix(":"):
                name = words.count > 5 ? String(words[5]) : "anonymous"
            default: continue
            }
        }
        return found.joined(separator: ", ")
    }

    /// glibc takes for large blocks, once one was freed, from the heap of the thread, whose end malloc_trim leaves alone:
    /// up to 64 MiB of what a codec freed would stay, or not, as threads happen to share heaps. Neither this function nor
    /// the next is shown by Swift's Glibc module.
    private static let mapsWhatIsLarge: Bool = {
        typealias Option = @convention(c) (Int32, Int32) -> Int32
        let thresholdOfMappings: Int32 = -3
        guard let option = dlsym(nil, "mallopt") else { return false }
        return unsafeBitCast(option, to: Option.self)(thresholdOfMappings, 1 << 20) == 1
    }()

    private static func trimHeap() {
        typealias Trim = @convention(c) (Int) -> Int32
        if let trim = dlsym(nil, "malloc_trim") { _ = unsafeBitCast(trim, to: Trim.self)(0) }
    }

    /// When more is asked for blocks than is kept, that goes; and so much is not kept itself.
    private static func giveBackKept() {
        system_pixels_release_kept()
        let most = 64 << 20
        var capacity = 0
        if let block = system_block_allocate(most, &capacity) { system_block_free(block, capacity) }
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
