import CImgdl
import Origin
import XCTest

/// Every fault at every point of an exchange: one terminal for each who asked, the right code, and no socket left over.
final class FaultMatrixTests: XCTestCase {
    /// The specification. A fault that leaves the answer well framed costs nobody the connection (`kept`).
    private static let cells: [FaultCell] = [
        cell(.connect, .reset, "CONNECT_FAILED", .nobody),
        cell(.connect, .close, "CONNECTION_LOST", .server),
        cell(.connect, .stall, "CONNECT_TIMEOUT", .nobody),

        cell(.tls, .reset, "CONNECTION_LOST", .server),
        cell(.tls, .close, "CONNECTION_LOST", .server),
        cell(.tls, .stall, "CONNECT_TIMEOUT", .client),
        cell(.tls, .garbage, "TLS_FAILED", .client),

        cell(.statusLine, .reset, "CONNECTION_LOST", .server),
        cell(.statusLine, .close, "CONNECTION_LOST", .server),
        cell(.statusLine, .stall, "IDLE_TIMEOUT", .client),
        cell(.statusLine, .garbage, "PROTOCOL", .client),

        cell(.headers, .reset, "CONNECTION_LOST", .server),
        cell(.headers, .close, "CONNECTION_LOST", .server),
        cell(.headers, .stall, "IDLE_TIMEOUT", .client),
        cell(.headers, .garbage, "PROTOCOL", .client),

        cell(.firstBodyByte, .reset, "CONNECTION_LOST", .server),
        cell(.firstBodyByte, .close, "TRUNCATED", .server),
        cell(.firstBodyByte, .stall, "IDLE_TIMEOUT", .client),
        cell(.firstBodyByte, .garbage, "BAD_IMAGE_DATA", .client, isKept: true),

        cell(.midBody, .reset, "CONNECTION_LOST", .server),
        cell(.midBody, .close, "TRUNCATED", .server),
        cell(.midBody, .stall, "IDLE_TIMEOUT", .client),
        cell(.midBody, .garbage, "BAD_IMAGE_DATA", .client, isKept: true),

        cell(.lastByte, .reset, "CONNECTION_LOST", .server),
        cell(.lastByte, .close, "TRUNCATED", .server),
        cell(.lastByte, .stall, "IDLE_TIMEOUT", .client),
        // The mark of the picture's end: nothing is missing of what is shown.
        cell(.lastByte, .garbage, "OK", .client, isKept: true),

        cell(.betweenChunks, .reset, "CONNECTION_LOST", .server),
        cell(.betweenChunks, .close, "TRUNCATED", .server),
        cell(.betweenChunks, .stall, "IDLE_TIMEOUT", .client),
        cell(.betweenChunks, .garbage, "PROTOCOL", .client),

        cell(.afterInterim, .reset, "CONNECTION_LOST", .server),
        cell(.afterInterim, .close, "CONNECTION_LOST", .server),
        cell(.afterInterim, .stall, "IDLE_TIMEOUT", .client),
        cell(.afterInterim, .garbage, "PROTOCOL", .client),

        cell(.trailers, .reset, "CONNECTION_LOST", .server),
        cell(.trailers, .close, "TRUNCATED", .server),
        cell(.trailers, .stall, "IDLE_TIMEOUT", .client),
        cell(.trailers, .garbage, "PROTOCOL", .client),
    ]

    private static func cell(
        _ point: FaultPoint, _ fault: Fault, _ code: String, _ closedBy: FaultCell.Side, isKept: Bool = false
    ) -> FaultCell {
        FaultCell(
            point: point, fault: fault, code: code == "OK" ? "IMGDL_OK" : "IMGDL_ERROR_" + code, closedBy: closedBy,
            isKept: isKept)
    }

    private let picture = Picture(Pictures.bytes("rgba.png"), type: "image/png")
    private var authority: Authority!
    private var servers: [FaultyServer] = []
    /// Few wait for a timeout, and only for the one that is meant: the others have time on the slowest machine.
    private var downloaders: [Patience: OpaquePointer] = [:]

    private enum Patience: CaseIterable { case patient, connecting, idle }

    override func setUpWithError() throws { authority = try Authority(TLS(), protocols: ["http/1.1"]) }

    override func tearDown() {
        destroyDownloaders()
        for server in servers { server.stop() }
        servers = []
        authority = nil
    }

    private func begin(
        faults: Int = .max, isHeld: Bool = false, isSecure: Bool = false, timeout: UInt32 = 1_000
    ) throws {
        servers = try Self.cells.map {
            try FaultyServer($0, picture, authority: authority, faults: faults, isHeld: isHeld, isSecure: isSecure)
        }
        for patience in Patience.allCases {
            var config = imgdl_config()
            imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
            config.max_concurrent = UInt32(servers.count)
            config.connect_timeout_ms = patience == .connecting ? timeout : 60_000
            config.idle_timeout_ms = patience == .idle ? timeout : 60_000
            var downloader: OpaquePointer?
            let status = authority.file.withCString { file in
                config.ca_file = file
                return imgdl_downloader_create(&config, &downloader)
            }
            XCTAssertEqual(status, 0, String(cString: imgdl_last_error()))
            downloaders[patience] = downloader
        }
    }

    private func destroyDownloaders() {
        for downloader in downloaders.values { XCTAssertEqual(imgdl_downloader_destroy(downloader), 0) }
        downloaders = [:]
    }

    private func downloader(for cell: FaultCell) -> OpaquePointer? {
        if cell.fault != .stall { return downloaders[.patient] }
        return downloaders[cell.point == .connect || cell.point == .tls ? .connecting : .idle]
    }

    private func start(_ server: FaultyServer, _ configure: (inout imgdl_request) -> Void = { _ in }) -> Download {
        Download().start(downloader(for: server.cell), server.url, configure)
    }

    private func setSuspended(_ isSuspended: Bool) {
        for downloader in downloaders.values {
            XCTAssertEqual(imgdl_downloader_set_suspended(downloader, isSuspended ? 1 : 0), 0)
        }
    }

    private func assertEnds(_ download: Download, _ name: String, _ cell: FaultCell, _ line: UInt = #line) {
        download.wait(#filePath, line)
        XCTAssertEqual(download.name, name, "\(cell): \(download.record.message)", line: line)
    }

    /// Nothing is open that should not be, and then nothing at all; and the right side was first to close.
    private func assertSocketsAreAccountedFor(_ line: UInt = #line) {
        for server in servers where !server.cell.isKept {
            XCTAssertTrue(
                server.wait { $0.openConnections == 0 && $0.inFlight == 0 }, "\(server.cell): still open", line: line)
        }
        destroyDownloaders()
        for server in servers {
            XCTAssertTrue(
                server.wait { $0.openConnections == 0 && $0.inFlight == 0 }, "\(server.cell): left over", line: line)
            let connections = server.log.connections
            let expected = server.cell.closedBy == .nobody ? 0 : 1
            XCTAssertEqual(connections.count, expected, "\(server.cell): connections", line: line)
            let isByClient = connections.last?.closedByClient != nil
            XCTAssertEqual(isByClient, server.cell.closedBy == .client, "\(server.cell): who closed", line: line)
            let isBeforeHTTP = server.cell.point == .connect || server.cell.point == .tls
            XCTAssertEqual(server.log.requests.count, isBeforeHTTP ? 0 : 1, "\(server.cell): requests", line: line)
        }
    }

    func testTheTableIsWhole() {
        // Nothing can be garbled before anything is said.
        let count = FaultPoint.allCases.count * Fault.allCases.count - 1
        XCTAssertEqual(Set(Self.cells.map(\.description)).count, count)
    }

    func testPlain() throws {
        try begin()
        let downloads = servers.map { start($0) }
        for (download, server) in zip(downloads, servers) { assertEnds(download, server.cell.code, server.cell) }
        assertSocketsAreAccountedFor()
    }

    func testPlainOverTLS() throws {
        try begin(isSecure: true)
        let downloads = servers.map { start($0) }
        for (download, server) in zip(downloads, servers) { assertEnds(download, server.cell.code, server.cell) }
        assertSocketsAreAccountedFor()
    }

    func testCoalesced() throws {
        try begin()
        // Nobody's transfer ends before all three are there.
        setSuspended(true)
        let downloads = servers.map { server in (0..<3).map { _ in start(server) } }
        setSuspended(false)
        for (three, server) in zip(downloads, servers) {
            for download in three { assertEnds(download, server.cell.code, server.cell) }
        }
        assertSocketsAreAccountedFor()
    }

    /// Each exchange stands where its fault would strike.
    private func startAndReachFaults() -> [Download] {
        let downloads = servers.map { start($0) }
        for (download, server) in zip(downloads, servers) {
            if server.isKernels {
                download.waitFor(IMGDL_EVENT_STARTED)
            } else {
                XCTAssertTrue(server.gate.waitUntilReached(), "\(server.cell)")
            }
        }
        return downloads
    }

    func testCancelledAtThatMoment() throws {
        try begin(isHeld: true, timeout: 60_000)
        let downloads = startAndReachFaults()
        for download in downloads { download.cancel() }
        for (download, server) in zip(downloads, servers) {
            download.wait()
            // A refused connection cannot be held.
            if server.cell.point == .connect, server.cell.fault == .reset, download.name == server.cell.code {
                continue
            }
            XCTAssertEqual(download.name, "IMGDL_ERROR_CANCELLED", "\(server.cell)")
        }
        for server in servers {
            XCTAssertTrue(server.wait { $0.openConnections == 0 && $0.inFlight == 0 }, "\(server.cell): still open")
            XCTAssertEqual(
                server.log.connectionsClosedByClient, server.cell.closedBy == .nobody ? 0 : 1, "\(server.cell)")
        }
    }

    /// The fault and the cancel at the same time, whichever is first.
    func testCancelledAsTheFaultStrikes() throws {
        for cancelIsFirst in [true, false] {
            try begin(isHeld: true, timeout: 60_000)
            let downloads = startAndReachFaults()
            for (download, server) in zip(downloads, servers) {
                if cancelIsFirst { download.cancel() }
                server.gate.open()
                if !cancelIsFirst { download.cancel() }
            }
            for (download, server) in zip(downloads, servers) {
                download.wait()
                let isSure = cancelIsFirst && !server.isKernels
                let codes = ["IMGDL_ERROR_CANCELLED"] + (isSure ? [] : [server.cell.code])
                XCTAssertTrue(codes.contains(download.name), "\(server.cell): \(download.name)")
            }
            destroyDownloaders()
            for server in servers {
                XCTAssertTrue(server.wait { $0.openConnections == 0 && $0.inFlight == 0 }, "\(server.cell): left over")
                XCTAssertLessThanOrEqual(server.log.connections.count, 1, "\(server.cell)")
                server.stop()
            }
        }
    }

    /// The first attempt fails, the second finds a server that is well again. What will not pass is not tried again.
    func testRetried() throws {
        try begin(faults: 1, timeout: 3_000)
        setSuspended(true)
        let downloads = servers.map { server in
            start(server) { request in
                // The kernel's faults end when the test ends them: see below.
                request.retry_count = server.isKernels ? 200 : 1
                request.retry_base_ms = 10
                request.retry_max_ms = 20
            }
        }
        // These fail like the first attempts of the others, which were asked for before them.
        let kernels = servers.filter(\.isKernels)
        let scouts = kernels.map { server in
            Download().start(downloader(for: server.cell), server.url + "?scout")
        }
        setSuspended(false)
        for (scout, server) in zip(scouts, kernels) {
            assertEnds(scout, server.cell.code, server.cell)
            try server.recover()
        }
        for (download, server) in zip(downloads, servers) {
            assertEnds(download, server.cell.isTransient ? "IMGDL_OK" : server.cell.code, server.cell)
        }
        destroyDownloaders()
        for server in servers {
            XCTAssertTrue(server.wait { $0.openConnections == 0 && $0.inFlight == 0 }, "\(server.cell): left over")
            let (log, cell) = (server.log, server.cell)
            let isBeforeHTTP = cell.point == .connect || cell.point == .tls
            let attempts = cell.isTransient ? 2 : 1
            XCTAssertEqual(log.requests.count, isBeforeHTTP ? attempts - 1 : attempts, "\(cell): requests")
            if server.isKernels { continue }
            XCTAssertEqual(log.connections.count, attempts, "\(cell): connections")
            XCTAssertEqual(
                log.connections.first?.closedByClient != nil, cell.closedBy == .client, "\(cell): who closed")
        }
    }
}
