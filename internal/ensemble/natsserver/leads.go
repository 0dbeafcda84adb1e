package natsserver

// Leads says whether this server leads the group's streams as a whole: where they are
// is decided by it.
func (s *Server) Leads() bool { return s.nats.Load().JetStreamIsLeader() }
