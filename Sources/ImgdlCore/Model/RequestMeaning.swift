/// What a request says besides its URL, however it is spelled: two that are equal in it ask a server for the same, in the
/// same security context.
package struct RequestMeaning: Hashable, Sendable {
    package let context: SecurityContext
    let method: String
    /// Those that say nothing of who asks, named alike: what `Vary` makes of them is not known before the answer.
    private let fieldsForAll: [HeaderField]

    /// `cookies`: the line of the Cookie field that is made of a jar; nil: none.
    init(_ manner: RequestManner, cookies: [UInt8]?) {
        context = SecurityContext(manner, cookies: cookies)
        method = manner.method
        fieldsForAll = ContextFields.named(manner.fields).filter { ContextFields.areForAll($0.name) }
    }

    /// Of memory.
    var byteCount: Int {
        fieldsForAll.reduce(context.byteCount + method.utf8.count) {
            $0 + $1.name.utf8.count + $1.value.utf8.count
        }
    }
}
