package signin

// Hashed returns how many password hashes were computed.
func (s *Passwords) Hashed() int64 { return s.hasher.hashed.Load() }
