package signin

// Hashed returns how many password hashes were computed.
func (s *Service) Hashed() int64 { return s.hasher.hashed.Load() }
