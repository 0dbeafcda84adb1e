package signin

// Hashed counts the hashes of passwords that were computed.
func (s *Service) Hashed() int64 { return s.hasher.hashed.Load() }
