import CCurl
import ImgdlCore

extension EasyHandle {
    /// Connections that the transfer had to open; 0 when it was given one that stood.
    var newConnections: Int { ccurl_get_long(easy, CURLINFO_NUM_CONNECTS) }

    /// Of the answer's body, as they came.
    var bodyBytes: Int64 { offset(CURLINFO_SIZE_DOWNLOAD_T) }

    /// Of its body, by its Content-Length; nil without one.
    var announcedBytes: Int64? {
        let bytes = offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        return bytes < 0 ? nil : bytes
    }

    /// What curl measured so far (features B24). Its own times count from the transfer's start. Each question costs
    /// some eighty instructions: what a transfer cannot have is not asked for.
    func times(isConnected: Bool, sendsBody: Bool) -> TransferTimes {
        var times = TransferTimes()
        times.isConnectionReused = isConnected && newConnections == 0
        if !times.isConnectionReused {
            let resolved = offset(CURLINFO_NAMELOOKUP_TIME_T)
            let connected = offset(CURLINFO_CONNECT_TIME_T)
            times.resolve = resolved * 1000
            times.connect = Self.span(from: resolved, to: connected)
            times.tls = Self.span(from: connected, to: offset(CURLINFO_APPCONNECT_TIME_T))
        }
        let sent = offset(CURLINFO_PRETRANSFER_TIME_T)
        let answered = offset(CURLINFO_STARTTRANSFER_TIME_T)
        let total = offset(CURLINFO_TOTAL_TIME_T)
        times.firstByte = Self.span(from: sent, to: answered)
        times.body = answered > 0 ? Self.span(from: answered, to: total) : 0
        times.bytesReceived =
            Int64(ccurl_get_long(easy, CURLINFO_HEADER_SIZE)) + offset(CURLINFO_SIZE_DOWNLOAD_T)
        times.bytesSent = Int64(ccurl_get_long(easy, CURLINFO_REQUEST_SIZE))
        if sendsBody { times.bytesSent += offset(CURLINFO_SIZE_UPLOAD_T) }
        times.address = ccurl_get_string(easy, CURLINFO_PRIMARY_IP).map { NumericAddress($0) } ?? NumericAddress()
        return times
    }

    private func offset(_ info: CURLINFO) -> Int64 { Int64(ccurl_get_offset(easy, info)) }

    /// In nanoseconds; none where the later moment has not come.
    private static func span(from earlier: Int64, to later: Int64) -> Int64 { max(0, later - earlier) * 1000 }
}
