import ImgdlCore

/// Keeps nothing: every download goes to the network.
package final class PassThroughStore: Store {
    package init() {}

    package var isEnabled: Bool { false }
}
