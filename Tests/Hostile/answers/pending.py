"""Answers that do not come out as they must, yet: the name, or name/protocol, and the line of the issue that they wait for.
One that passes is a failure of the suite: strike it out. `at times`: in some ways of sending it alone."""

PENDING = {
    "status-lower-case": "none: an answer that is not HTTP is PROTOCOL, not CONNECTION_LOST, which is tried again",
}
