package messageapi

// ParseID lets tests of other packages turn one form of an id into the other.
func ParseID(b []byte) (string, error) {
	id, err := parseID(b)
	return id.String(), err
}
