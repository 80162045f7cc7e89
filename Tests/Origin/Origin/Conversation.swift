/// A connection's life in HTTP/1: request after request, each answered by a script.
package struct Conversation {
    package var journal: Journal
    package var settings: () -> Settings
    /// Requests under `/_` leave no trace in the log; nil answers them like others.
    var control: Origin.Script?
    package var script: (Request) -> Origin.Script

    package init(journal: Journal, settings: @escaping () -> Settings, script: @escaping (Request) -> Origin.Script) {
        self.journal = journal
        self.settings = settings
        self.script = script
    }

    /// On the connection's thread, to its end.
    package func run(on connection: Connection) {
        var reader = RequestReader(connection)
        while true {
            do {
                guard var request = try reader.next() else { return }
                let control = request.target.hasPrefix("/_") ? control : nil
                connection.noteDepartures()
                if control != nil { journal.hide(connection.number) } else { request = journal.arrived(request) }
                let exchange = Exchange(request, on: connection, settings: control != nil ? Settings() : settings())
                do { try (control ?? script(request))(exchange) } catch {
                    // A script that fails for a reason of its own is not the client's doing: say so where it can.
                    if !(error is ConnectionEnded) { exchange.fail(error) }
                }
                guard exchange.conclude() else { return }
            } catch RequestReader.Failure.malformed(let reason) {
                let text = "cannot read the request: \(reason)\n"
                let answer =
                    "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
                try? Array(answer.utf8).withUnsafeBytes { try connection.send($0) }
                return
            } catch {
                return
            }
        }
    }
}

extension Exchange {
    /// Answers 500 with the error when nothing has been sent, else cuts the connection.
    fileprivate func fail(_ error: any Error) {
        if hasBegun { reset() } else { try? respond(500, text: "the script failed: \(error)\n") }
    }
}
