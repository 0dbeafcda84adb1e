package natsserver

// IsMetaLeader reports whether this server is the JetStream meta leader, which decides on the
// placement of streams.
func (s *Server) IsMetaLeader() bool { return s.nats.Load().JetStreamIsLeader() }
