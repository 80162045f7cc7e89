/// Port: where responses are kept between downloads. Not consulted yet: the HTTP cache brings the rules that use it.
package protocol Store: AnyObject, Sendable {
    /// Whether anything would be kept.
    var isEnabled: Bool { get }
}
