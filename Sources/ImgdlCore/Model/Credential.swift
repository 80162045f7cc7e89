/// A name and a password, for Basic or Digest as the server asks. Never in a message, an event or a log.
package struct Credential: Hashable, Sendable {
    package var user: String
    package var password: String

    package init(user: String, password: String) {
        self.user = user
        self.password = password
    }
}
