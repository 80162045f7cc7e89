/// What a cache keeps of a response besides its body: enough to decide whether and how it may be used again (RFC 9111
/// sections 3 and 4). Times are seconds since 1970.
package struct StoredResponse: Equatable, Sendable {
    package enum Extent: Equatable, Sendable {
        /// The whole body.
        case whole
        /// The first bytes of a body that broke off; `total`: of how many, nil when the server did not tell. Used to resume,
        /// never to answer.
        case beginning(total: Int64?)
        /// What a 206 brought of the body for the caller's own Range: these bytes, of so many (nil: unknown). Answers ranges
        /// within it.
        case part(Range<Int64>, total: Int64?)
        /// A redirect that was followed: nobody received its body. Answers those alone who follow it, too.
        case headAlone
    }

    package var status: Int32
    package var httpVersion: Int32
    /// As received, less what a cache must not store (section 3.1); what validations changed is changed.
    package var fields: [HeaderField]
    /// When the request was sent and its response received (section 4.2.3); of the last validation, if there was one.
    package var requestTime: Int64
    package var responseTime: Int64
    /// Microseconds missing of those two, for the order of answers within one second (`isOlder`); nil: not known.
    package var fractions: TimeFractions?
    /// What the request sent in the fields that Vary names (section 4.1), normalized; a field that was not sent has nil.
    package var varying: [VaryingField]
    /// A Content-Encoding was undone before the body was stored.
    package var wasEncoded: Bool
    /// A decoder found no picture in the body, or a damaged one: it is validated before each use.
    package var isUndecodable = false
    /// Whether the body as it was received may have been cut.
    package var bodyEnd = BodyEnd.whole
    /// Since when another answer has overtaken it that is not stored, in seconds since 1970: it is stale from then on, and its
    /// server is asked first. nil: none has.
    package var overtakenTime: Int64?
    /// In which it was answered.
    package var context: StoredContext
    package var bodyLength: Int64
    package var extent: Extent

    package init(
        status: Int32, httpVersion: Int32, fields: [HeaderField], requestTime: Int64, responseTime: Int64,
        varying: [VaryingField] = [], context: StoredContext, wasEncoded: Bool = false, bodyLength: Int64 = 0,
        extent: Extent = .whole
    ) {
        self.status = status
        self.httpVersion = httpVersion
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.varying = varying
        self.context = context
        self.wasEncoded = wasEncoded
        self.bodyLength = bodyLength
        self.extent = extent
    }
}

extension StoredResponse {
    /// What tells one state of a stored response from the states before and after it: whoever has asked about one says nothing of
    /// another.
    package struct Version: Equatable, Sendable {
        let requestTime: Int64
        let responseTime: Int64
        let fractions: TimeFractions?
        let overtakenTime: Int64?
        let isUndecodable: Bool
    }

    package var version: Version {
        Version(
            requestTime: requestTime, responseTime: responseTime, fractions: fractions, overtakenTime: overtakenTime,
            isUndecodable: isUndecodable)
    }
}

/// Microseconds that have passed of the second in which a request was sent, and of that in which its response was received.
package struct TimeFractions: Equatable, Sendable {
    package var request: Int64
    package var response: Int64

    package init(request: Int64, response: Int64) {
        self.request = request
        self.response = response
    }
}

/// One field of the secondary key. `name` in lower case.
package struct VaryingField: Equatable, Sendable {
    package var name: String
    @ExactOptionalText package var value: String?

    package init(name: String, value: String?) {
        self.name = name
        self.value = value
    }
}
