import ImgdlCore

/// The date of an Expires attribute (RFC 6265bis section 5.1.1): of words in any order, since servers write dates as they
/// like.
enum CookieDate {
    /// Seconds since 1970; nil for what is no date. The years 1601 to 9999.
    static func seconds(_ text: ArraySlice<UInt8>) -> Int64? {
        var time: [Int64]?
        var day: Int64?
        var month: Int64?
        var year: Int64?
        for word in text.split(whereSeparator: isDelimiter) {
            if time == nil, let found = self.time(word) {
                time = found
            } else if day == nil, let found = number(word, 1...2) {
                day = found.value
            } else if month == nil, let found = self.month(word) {
                month = found
            } else if year == nil, let found = number(word, 2...4) {
                year = found.value
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1900 } else if (0...69).contains(year) { year += 2000 }
        guard year >= 1601, time[0] <= 23, time[1] <= 59, time[2] <= 59 else { return nil }
        return HTTPDate.seconds(
            year: year, month: month, day: day, secondOfDay: time[0] * 3_600 + time[1] * 60 + time[2])
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// hh:mm:ss, and then no digit.
    private static func time(_ word: ArraySlice<UInt8>) -> [Int64]? {
        guard let hour = number(word, 1...2), hour.rest.first == UInt8(ascii: ":"),
            let minute = number(hour.rest.dropFirst(), 1...2), minute.rest.first == UInt8(ascii: ":"),
            let second = number(minute.rest.dropFirst(), 1...2)
        else { return nil }
        return [hour.value, minute.value, second.value]
    }

    /// So many digits, and then none.
    private static func number(
        _ word: ArraySlice<UInt8>, _ digits: ClosedRange<Int>
    ) -> (value: Int64, rest: ArraySlice<UInt8>)? {
        let count = word.prefix(digits.upperBound + 1).prefix { (0x30...0x39).contains($0) }.count
        guard digits.contains(count) else { return nil }
        return (word.prefix(count).reduce(0) { 10 * $0 + Int64($1 - 0x30) }, word.dropFirst(count))
    }

    /// From 1.
    private static func month(_ word: ArraySlice<UInt8>) -> Int64? {
        guard word.count >= 3 else { return nil }
        let name = word.prefix(3).map(Cookie.lowercased)
        return months.firstIndex { $0.utf8.elementsEqual(name) }.map { Int64($0) + 1 }
    }

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
}
