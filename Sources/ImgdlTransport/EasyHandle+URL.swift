import CCurl
import Glibc
import ImgdlCore

extension EasyHandle {
    /// The URL of its next request, on the server that it is set up for.
    ///
    /// A text is parsed by curl for each transfer, and its normal form is printed byte by byte. Parts are taken as they
    /// are: for a small body that is a fifth of all that curl does.
    func setNextURL(_ url: ParsedURL, keepsEscapes: Bool) {
        let isSet = url.withUTF8 { setParts($0) }
        if !isSet {
            if usesParts { note(ccurl_set_parts(easy, nil)) }
            setURL(url, keepsEscapes: keepsEscapes)
        } else {
            if !usesParts { note(ccurl_set_parts(easy, parts)) }
            setTarget(nil)
        }
        usesParts = isSet
    }

    /// `keepsEscapes`: "%2f" is sent as "%2f", since signatures are made over it; of its own newer versions of curl send
    /// "%2F".
    func setURL(_ url: ParsedURL, keepsEscapes: Bool) {
        let text = url.canonical
        set(CURLOPT_URL, text)
        guard keepsEscapes, let path = url.withUTF8({ Self.hasEscapes($0) ? Self.path($0) : nil }) else {
            return setTarget(nil)
        }
        setTarget(String(decoding: text.utf8.dropFirst(path), as: UTF8.self))
    }

    private static func hasEscapes(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = text.baseAddress else { return false }
        return memchr(start, Int32(UInt8(ascii: "%")), text.count) != nil
    }

    private func setTarget(_ target: String?) {
        guard target != nil || usesTarget else { return }
        set(CURLOPT_REQUEST_TARGET, target)
        usesTarget = target != nil
    }

    func dropParts() {
        curl_url_cleanup(parts)
        parts = nil
        usesParts = false
        usesTarget = false
    }

    /// False for what would not be sent as it is: curl makes "%2f" of "%2F" in a part, and an empty query is no part.
    private func setParts(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = text.baseAddress, text.last != UInt8(ascii: "?"), !Self.hasEscapes(text),
            let path = Self.path(text), let parts = parts ?? makeParts(text)
        else { return false }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: text.count - path + 1) { buffer in
            let target = buffer.baseAddress!
            memcpy(target, start + path, text.count - path)
            target[text.count - path] = 0
            var query = strchr(target, Int32(UInt8(ascii: "?")))
            if let mark = query {
                mark.pointee = 0
                query = mark + 1
            }
            return curl_url_set(parts, CURLUPART_PATH, target, 0) == CURLUE_OK
                && curl_url_set(parts, CURLUPART_QUERY, query, 0) == CURLUE_OK
        }
    }

    private func makeParts(_ text: UnsafeBufferPointer<UInt8>) -> OpaquePointer? {
        parts = curl_url()
        let code = String(decoding: text, as: UTF8.self).withCString {
            curl_url_set(parts, CURLUPART_URL, $0, UInt32(CURLU_PATH_AS_IS))
        }
        if code != CURLUE_OK {
            curl_url_cleanup(parts)
            parts = nil
        }
        return parts
    }

    /// Where the path begins, behind "scheme://authority".
    private static func path(_ text: UnsafeBufferPointer<UInt8>) -> Int? {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), colon + 3 < text.count else { return nil }
        return text[(colon + 3)...].firstIndex(of: UInt8(ascii: "/"))
    }
}
