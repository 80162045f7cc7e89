import CImgdl
import Glibc
import ImgdlCore

/// The functions of an imgdl_transport_table (features K6, T06, B23). Its end is the table's: when it was taken out, or
/// the downloader has ended, and no transfer runs on it any more.
final class HostLoader: SchemeLoader, @unchecked Sendable {
    private let startFunction:
        (UnsafePointer<imgdl_outgoing>?, OpaquePointer?, UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
    private let cancelFunction: (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void
    private let resumeFunction: ((UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void)?
    private let table: imgdl_transport_table
    private var isOwned = true

    init(_ table: imgdl_transport_table) throws(Failure) {
        guard let start = table.start, let cancel = table.cancel else {
            throw Failure(.invalidArgument, "a function of imgdl_transport_table is NULL")
        }
        guard table.reserved == 0 else { throw Failure(.unsupportedOption, "imgdl_transport_table.reserved is not 0") }
        startFunction = start
        cancelFunction = cancel
        resumeFunction = table.resume
        self.table = table
    }

    deinit {
        if isOwned { dispose(table.destructor, table.user_data) }
    }

    /// Nothing of the table is called any more. Before anybody else has it.
    func disown() { isOwned = false }

    var waits: Bool { resumeFunction != nil }

    func start(_ request: OutgoingRequest, _ receiver: any LoadReceiver) -> LoadControls {
        let transfer = HandleTable.shared.insert(TransferObject(receiver), .transfer)
        var started = StartedPointer()
        OutgoingStruct(request).withPointer { outgoing in
            started.value = HostCode.ask { startFunction(outgoing, transfer, table.user_data) } ?? nil
        }
        return LoadControls(
            cancel: { [self, started] in HostCode.run { cancelFunction(started.value, table.user_data) } },
            resume: resumeFunction.map { (resume) -> @Sendable () -> Void in
                { [self, started] in HostCode.run { resume(started.value, table.user_data) } }
            })
    }
}

/// Of the host's; only carried.
private struct StartedPointer: @unchecked Sendable {
    var value: UnsafeMutableRawPointer?
}

/// What an imgdl_transfer handle stands for.
final class TransferObject {
    let receiver: any LoadReceiver

    init(_ receiver: any LoadReceiver) { self.receiver = receiver }
}
