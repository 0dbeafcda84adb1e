package server

// HasSpace implements audit.Disk and telemetry.Disk.
func (r *diskReserve) HasSpace() bool { return r.hasSpace() }
