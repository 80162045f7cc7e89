import Glibc

/// The kernel's number of the calling thread; -1 where it does not say.
func numberOfThread() -> Int {
    var link = [CChar](repeating: 0, count: 64)
    let length = readlink("/proc/thread-self", &link, link.count)
    let place = String(decoding: link.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return place.split(separator: "/").last.flatMap { Int($0) } ?? -1
}

/// Returns when that thread of this process sleeps in the kernel, or has ended.
func waitUntilAsleep(thread number: Int) {
    while isAtWork("/proc/self/task/\(number)/stat") { sched_yield() }
}

private func isAtWork(_ path: String) -> Bool {
    guard let file = fopen(path, "r") else { return false }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return false }
    let text = String(decoding: line.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.split(separator: ")").last?.dropFirst().first != "S"
}
