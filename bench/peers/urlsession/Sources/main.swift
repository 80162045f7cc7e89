import Foundation
import FoundationNetworking

/// URLSession with its delegate queue's own thread: data tasks, bodies handed over, nothing decoded. HTTP/2 where the
/// server offers it. On Linux it cannot be told whom to trust, so --cacert is of no use to it.
final class Client: @unchecked Sendable {
    private let lock = NSCondition()
    private let session: URLSession
    private var urls: ArraySlice<URL>
    private var outstanding = 0
    private var images = 0
    private var bytes = 0
    private var errors = 0

    init(urls: [URL], concurrency: Int) {
        self.urls = urls[...]
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = concurrency
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        session = URLSession(configuration: configuration)
    }

    func run(window: Int) {
        for _ in 0..<window { handOver() }
        lock.withLock { while outstanding > 0 { lock.wait() } }
        print("{\"images\":\(images),\"bytes\":\(bytes),\"pixels\":0,\"errors\":\(errors)}")
    }

    private func handOver() {
        let url = lock.withLock { () -> URL? in
            guard let url = urls.popFirst() else { return nil }
            outstanding += 1
            return url
        }
        guard let url else { return }
        session.dataTask(with: url) { [self] data, response, error in
            lock.withLock {
                if let data, (response as? HTTPURLResponse)?.statusCode == 200 {
                    images += 1
                    bytes += data.count
                } else {
                    errors += 1
                    if errors <= 5 { complain("urlsession: \(String(describing: error))") }
                }
            }
            handOver()
            lock.withLock {
                outstanding -= 1
                if outstanding == 0 { lock.signal() }
            }
        }.resume()
    }
}

func complain(_ message: String) { FileHandle.standardError.write(Data("\(message)\n".utf8)) }

var options: [String: String] = [:]
var arguments = CommandLine.arguments.dropFirst()
while let name = arguments.popFirst(), let value = arguments.popFirst() { options[name] = value }
guard let path = options["--urls"], let text = try? String(contentsOfFile: path, encoding: .utf8),
    let concurrency = options["--concurrency"].flatMap({ Int($0) }), options["--decode"] != "1"
else {
    complain("usage: urlsession --urls FILE --concurrency N --decode 0 [--cacert FILE]")
    exit(2)
}
let urls = text.split(separator: "\n").compactMap { URL(string: String($0)) }
Client(urls: urls, concurrency: concurrency).run(window: concurrency)
