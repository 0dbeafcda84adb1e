package provision

// JournalLost is the error of a cluster whose journals have lost records and are closed, because the
// members cannot decide on their own how to continue.
type JournalLost struct{ Problem string } // which journals, why, and what to do

// Error returns the problem.
func (e *JournalLost) Error() string { return e.Problem }
