import CCurl
import Foundation
import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// A client's certificate and its key are tried when they are read: what libcurl takes is taken, and what it does not is
/// told with its one cause.
final class ClientPairTests: XCTestCase {
    private var folder = ""

    override func setUpWithError() throws {
        folder = NSTemporaryDirectory() + "imgdl-pairs-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    }

    override func tearDown() { try? FileManager.default.removeItem(atPath: folder) }

    private func options(_ certificate: String, _ key: String?, _ password: String?) throws -> TLSOptions {
        func write(_ text: String, _ name: String) throws -> String {
            try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
            return "\(folder)/\(name)"
        }
        var options = TLSOptions()
        options.clientCertificate = try write(certificate, "certificate")
        options.clientKey = try key.map { try write($0, "key") }
        options.clientKeyPassword = password
        try options.readFiles()
        return options
    }

    private let broken = "-----BEGIN %@-----\nAAAA\n-----END %@-----\n"

    private func broken(_ name: String) -> String { broken.replacingOccurrences(of: "%@", with: name) }

    func testWhatCanBeUsed() throws {
        typealias Files = ClientFiles
        let cases: [(certificate: String, key: String?, password: String?)] = [
            (Files.rsa, Files.rsaKey, nil), (Files.rsa, Files.rsaKey, "of no use"), (Files.rsa, Files.rsaKey, ""),
            (Files.rsa, Files.encryptedRSAKey, Files.password), (Files.ec, Files.ecKeyWithParameters, nil),
            (Files.ec, Files.encryptedECKey, Files.password), (Files.ed25519, Files.ed25519Key, nil),
            (Files.rsa + Files.rsaKey, nil, nil), (Files.rsaKey + Files.rsa, nil, nil),
            (Files.encryptedECKey + "a line\n" + Files.ec, nil, Files.password),
            // With those that it is signed by.
            (Files.rsa + Files.ec + Files.ed25519, Files.rsaKey, nil),
            (Files.rsa + Files.ec + Files.rsaKey + Files.ed25519, nil, nil),
            (Files.rsa, Files.ec + Files.rsaKey, nil),
        ]
        for (index, each) in cases.enumerated() {
            let unusable = try options(each.certificate, each.key, each.password).unusable
            XCTAssertNil(unusable, "\(index)")
        }
    }

    func testWhatCannot() throws {
        typealias Files = ClientFiles
        let certificateFile = "client_certificate “\(folder)/certificate” cannot be used: "
        let keyFile = "client_key “\(folder)/key” cannot be used: "
        let format = "its key has a format or a cipher that OpenSSL does not take"
        let another = "its key is not that of client_certificate “\(folder)/certificate”"
        let wrong = "client_key_password is not the password of its key"
        let none = "its key is encrypted, and there is no client_key_password"
        let cases: [(certificate: String, key: String?, password: String?, message: String)] = [
            (broken("CERTIFICATE"), Files.rsaKey, nil, certificateFile + "a certificate in it is broken"),
            (Files.rsa + broken("CERTIFICATE"), Files.rsaKey, nil, certificateFile + "a certificate in it is broken"),
            (Files.rsa, broken("PRIVATE KEY"), nil, keyFile + "the key in it is broken"),
            (Files.rsa, broken("RSA PRIVATE KEY"), nil, keyFile + "the key in it is broken"),
            (Files.rsa, broken("ENCRYPTED PRIVATE KEY"), "x", keyFile + "the key in it is broken"),
            (Files.rsa + broken("PRIVATE KEY"), nil, nil, certificateFile + "the key in it is broken"),
            (Files.rsa, Files.encryptedRSAKey, nil, keyFile + none),
            (Files.ec, Files.encryptedECKey, nil, keyFile + none),
            (Files.rsa, Files.encryptedRSAKey, "wrong", keyFile + wrong),
            (Files.ec, Files.encryptedECKey, "wrong", keyFile + wrong),
            (Files.ec, Files.encryptedECKey, "", keyFile + wrong),
            (Files.ec, Files.encryptedECKey, String(repeating: "x", count: 5_000), keyFile + wrong),
            (Files.ec + Files.encryptedECKey, nil, nil, certificateFile + none),
            (Files.rsa, Files.ecKeyWithParameters, nil, keyFile + another),
            (Files.ec, Files.encryptedRSAKey, Files.password, keyFile + another),
            (Files.ec + Files.rsaKey, nil, nil, certificateFile + "its key is not that of its certificate"),
            (Files.ed25519, Files.sshKey, nil, keyFile + format),
            (Files.ec, Files.oldCipherECKey, Files.password, keyFile + format),
        ]
        for _ in 0..<2 {
            for each in cases {
                let unusable = try options(each.certificate, each.key, each.password).unusable
                XCTAssertEqual(unusable, each.message)
            }
        }
    }

    /// One password opens a key, and another one that is the same text to a reader does not.
    func testEachPasswordIsAnother() throws {
        for _ in 0..<2 {
            for (password, opens) in [
                (ClientFiles.password, true), ("open sesame ", false), ("Open sesame", false),
                ("open\u{A0}sesame", false),
            ] {
                let unusable = try options(ClientFiles.ec, ClientFiles.encryptedECKey, password).unusable
                XCTAssertEqual(unusable == nil, opens, password)
            }
        }
        let contents = try FileDigest.contents(of: folder + "/key")
        let marks = ["\u{E9}", "e\u{301}"].map { ClientPair(certificate: contents, key: nil, password: $0).mark }
        XCTAssertNotEqual(marks[0], marks[1])
    }

    /// However many requests name them.
    func testTheyAreTriedOnce() throws {
        let contents = try FileDigest.contents(of: "/bin/sh")
        let mark = ClientPair(certificate: contents, key: nil, password: UUID().uuidString).mark
        var count = 0
        for _ in 0..<3 {
            let found = FileDigest.finding(of: mark) {
                count += 1
                return CCURL_PAIR_KEY_BROKEN
            }
            XCTAssertEqual(found, CCURL_PAIR_KEY_BROKEN)
        }
        XCTAssertEqual(count, 1)
        // Without memory nothing was found.
        let other = ClientPair(certificate: contents, key: nil, password: UUID().uuidString).mark
        for _ in 0..<2 {
            let found = FileDigest.finding(of: other) {
                count += 1
                return CCURL_PAIR_UNKNOWN
            }
            XCTAssertEqual(found, CCURL_PAIR_UNKNOWN)
        }
        XCTAssertEqual(count, 3)
    }
}
