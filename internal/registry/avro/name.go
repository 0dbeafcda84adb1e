package avro

import "strings"

// typeName is the name of a record, enum or fixed, or one of its aliases. An
// empty space is the null namespace.
type typeName struct {
	space string
	name  string
	full  string
}

// newTypeName parses a name in a schema: with dots it is a full name, without dots it
// belongs to the given namespace. It validates only the last part, as Java does for an
// alias.
func newTypeName(name, space string) (typeName, error) {
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		space, name = name[:dot], name[dot+1:]
	}
	if err := validateName(name); err != nil {
		return typeName{}, err
	}
	if space == "" {
		return typeName{name: name, full: name}, nil
	}
	return typeName{space: space, name: name, full: space + "." + name}, nil
}

// validateSpace checks each part of the namespace.
func (t typeName) validateSpace() error {
	if t.space == "" {
		return nil
	}
	for part := range strings.SplitSeq(t.space, ".") {
		if err := validateName(part); err != nil {
			return invalid("Namespace part %q is invalid: %w", part, err)
		}
	}
	return nil
}

// relative returns the name as it is written inside the given namespace. A name that equals
// one of Avro's own types is written in full.
func (t typeName) relative(space string) string {
	if t.space == "" || t.space != space {
		return t.full
	}
	if _, isType := kindsByName[t.name]; isType {
		return t.full
	}
	return t.name
}

// alias returns an alias of the type of in full. A leading dot distinguishes an alias in the
// null namespace from a name in the namespace of the type.
func (t typeName) alias(of typeName) string {
	if t.space == "" && of.space != "" {
		return "." + t.name
	}
	return t.full
}

// validateName checks a name, or one part of a full name. The error texts are Java's.
func validateName(name string) error {
	if name == "" {
		return invalid("Empty name")
	}
	if c := name[0]; !isNameByte(c) || c >= '0' && c <= '9' {
		return invalid("Illegal initial character: %s", shorten(name))
	}
	for i := 1; i < len(name); i++ {
		if !isNameByte(name[i]) {
			return invalid("Illegal character in: %s", shorten(name))
		}
	}
	return nil
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
