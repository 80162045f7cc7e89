/// A charge that terminals hold, for the next terminal that carries the same. Their transfer holds it as well only where it is
/// over and is about to be forgotten: one that goes on, such as for somebody else's decoder, keeps nothing that a host has
/// taken.
struct TerminalCharge<Charge: AnyObject> {
    private let held: Charge?
    private weak var known: Charge?

    init(_ charge: Charge, goesOn: Bool) {
        held = goesOn ? nil : charge
        if goesOn { known = charge }
    }

    /// nil: all terminals have let it go.
    var charge: Charge? { held ?? known }
}
