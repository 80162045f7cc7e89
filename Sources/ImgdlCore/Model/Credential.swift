/// A name and a password, for Basic or Digest as the server asks. Never in a message, an event or a log.
package struct Credential: Hashable, Sendable {
    @ExactText package var user: String
    @ExactText package var password: String

    package init(user: String, password: String) {
        self.user = user
        self.password = password
    }
}
