/// Dates in header fields (RFC 9110 section 5.6.7): the three formats, exactly, and nothing else. The weekday must be one, and
/// is not compared with the date, which says it already.
package enum HTTPDate {
    /// Seconds since 1970; nil for what is no date. `wallTime`: the same of now, by which two digits of a year are read:
    /// a date more than 50 years ahead is in the past. `ignoringCase`: as caches should read it (RFC 9111 section 4.2).
    package static func seconds(_ text: String, wallTime: Int64, ignoringCase: Bool = false) -> Int64? {
        let bytes = Array(text.utf8)
        var (start, end) = (0, bytes.count)
        while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        while start < end, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
        guard start < end else { return nil }
        let all = start..<end
        func read(_ format: (inout Reader, Int64) -> Int64?) -> Int64? {
            var reader = Reader(bytes, all, ignoringCase: ignoringCase)
            let date = format(&reader, wallTime)
            return reader.isAtEnd ? date : nil
        }
        return read(fixed) ?? read(longDay) ?? read(asctime)
    }

    /// Sun, 06 Nov 1994 08:49:37 GMT
    private static func fixed(_ reader: inout Reader, _ wallTime: Int64) -> Int64? {
        guard reader.name(of: shortDays) != nil, reader.skip(", "), let day = reader.number(2), reader.skip(" "),
            let month = reader.name(of: months), reader.skip(" "), let year = reader.number(4), reader.skip(" "),
            let time = reader.time(), reader.skip(" GMT")
        else { return nil }
        return seconds(year, month, day, time)
    }

    /// Sunday, 06-Nov-94 08:49:37 GMT
    private static func longDay(_ reader: inout Reader, _ wallTime: Int64) -> Int64? {
        guard reader.name(of: longDays) != nil, reader.skip(", "), let day = reader.number(2), reader.skip("-"),
            let month = reader.name(of: months), reader.skip("-"), let short = reader.number(2), reader.skip(" "),
            let time = reader.time(), reader.skip(" GMT")
        else { return nil }
        let present = year(at: wallTime)
        var year = present - present % 100 + short
        if year > present + 50 { year -= 100 } else if year <= present - 50 { year += 100 }
        return seconds(year, month, day, time)
    }

    /// Sun Nov  6 08:49:37 1994
    private static func asctime(_ reader: inout Reader, _ wallTime: Int64) -> Int64? {
        guard reader.name(of: shortDays) != nil, reader.skip(" "), let month = reader.name(of: months),
            reader.skip(" "), let day = reader.skip(" ") ? reader.number(1) : reader.number(2), reader.skip(" "),
            let time = reader.time(), reader.skip(" "), let year = reader.number(4)
        else { return nil }
        return seconds(year, month, day, time)
    }

    /// Of the year 9999.
    private static let lastSecond: Int64 = 253_402_300_799

    /// In the first of the formats; the years 1 to 9999, others as the nearest of them.
    package static func text(_ seconds: Int64) -> String {
        let seconds = min(max(seconds, -62_135_596_800), lastSecond)
        let days = (seconds - remainder(seconds, 86_400)) / 86_400
        let time = remainder(seconds, 86_400)
        let (year, month, day) = date(daysSince1970: days)
        let clock = [time / 3_600, time / 60 % 60, time % 60].map { padded($0, 2) }
        let weekday = shortDays[Int(remainder(days + 4, 7))]
        return "\(weekday), \(padded(day, 2)) \(months[Int(month) - 1]) \(padded(year, 4)) "
            + "\(clock[0]):\(clock[1]):\(clock[2]) GMT"
    }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    private static func remainder(_ number: Int64, _ divisor: Int64) -> Int64 {
        (number % divisor + divisor) % divisor
    }

    // MARK: The calendar

    /// Seconds since 1970 of a date in another format, in the years 1 to 9999; months count from 1. nil where the
    /// calendar has no such day, or the day no such second.
    package static func seconds(year: Int64, month: Int64, day: Int64, secondOfDay: Int64) -> Int64? {
        guard (1...9999).contains(year), (1...12).contains(month), (0..<86_400).contains(secondOfDay) else {
            return nil
        }
        return seconds(year, month - 1, day, secondOfDay)
    }

    /// The reverse of `daysSince1970`.
    private static func date(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let (era, dayOfEra) = (shifted / 146_097, shifted % 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    private static func seconds(_ year: Int64, _ month: Int64, _ day: Int64, _ time: Int64) -> Int64? {
        guard year >= 1, day >= 1, day <= length(of: month, year) else { return nil }
        return daysSince1970(year, month + 1, day) * 86_400 + time
    }

    private static func length(of month: Int64, _ year: Int64) -> Int64 {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 1 && isLeap ? 29 : [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Int(month)]
    }

    /// The proleptic Gregorian calendar, counted from March so that leap days come last.
    private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = (year / 400, year % 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// 1970 to 9999: whatever clock that is, or whoever made the time up.
    private static func year(at wallTime: Int64) -> Int64 {
        let wallTime = min(max(0, wallTime), lastSecond)
        var year = 1970 + wallTime / 31_556_952
        while daysSince1970(year + 1, 1, 1) * 86_400 <= wallTime { year += 1 }
        while year > 1970, daysSince1970(year, 1, 1) * 86_400 > wallTime { year -= 1 }
        return year
    }

    private static var months: [StaticString] {
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    }
    private static var shortDays: [StaticString] { ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] }
    private static var longDays: [StaticString] {
        ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    }

    private struct Reader {
        private let bytes: [UInt8]
        private var position: Int
        private let end: Int
        private let ignoringCase: Bool

        init(_ bytes: [UInt8], _ range: Range<Int>, ignoringCase: Bool) {
            self.bytes = bytes
            position = range.lowerBound
            end = range.upperBound
            self.ignoringCase = ignoringCase
        }

        var isAtEnd: Bool { position == end }

        /// Takes the text if it comes next.
        mutating func skip(_ text: StaticString) -> Bool {
            let count = text.utf8CodeUnitCount
            guard end - position >= count else { return false }
            for index in 0..<count {
                let (byte, expected) = (bytes[position + index], text.utf8Start[index])
                guard byte == expected || ignoringCase && isLetter(expected) && byte ^ expected == 0x20 else {
                    return false
                }
            }
            position += count
            return true
        }

        private func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

        mutating func name(of names: [StaticString]) -> Int64? {
            for (number, name) in names.enumerated() where skip(name) { return Int64(number) }
            return nil
        }

        /// Exactly so many digits.
        mutating func number(_ digits: Int) -> Int64? {
            guard end - position >= digits else { return nil }
            var number: Int64 = 0
            for index in position..<position + digits {
                guard (0x30...0x39).contains(bytes[index]) else { return nil }
                number = number * 10 + Int64(bytes[index] - 0x30)
            }
            position += digits
            return number
        }

        /// Seconds of the day. A leap second is the last one of its minute.
        mutating func time() -> Int64? {
            guard let hour = number(2), hour < 24, skip(":"), let minute = number(2), minute < 60, skip(":"),
                let second = number(2), second <= 60
            else { return nil }
            return hour * 3_600 + minute * 60 + min(second, 59)
        }
    }
}
