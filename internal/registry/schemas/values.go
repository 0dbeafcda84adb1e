package schemas

import (
	"math"
	"strconv"
	"strings"

	"freshet/internal/base/names"
)

// Type is a schema language.
type Type uint8

// The schema languages, in the order in which clients are told of them. The
// numbers are stored.
const (
	Avro Type = iota + 1
	JSON
	Protobuf
)

var typeNames = [...]string{Avro: "AVRO", JSON: "JSON", Protobuf: "PROTOBUF"}

// Types lists the schema languages.
func Types() []Type { return []Type{Avro, JSON, Protobuf} }

// String returns the name on the wire.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "TYPE(" + strconv.Itoa(int(t)) + ")"
}

// ParseType reads the name of a schema language, exactly as spelt on the wire;
// the empty name means Avro.
func ParseType(s string) (Type, error) {
	if s == "" {
		return Avro, nil
	}
	for _, t := range Types() {
		if s == typeNames[t] {
			return t, nil
		}
	}
	return 0, refuse(ErrInvalidSchema, "Invalid schema type %s", clip(s, 256))
}

// Level is a compatibility level; the zero value means that none was set. The
// numbers are stored.
type Level uint8

// The levels.
const (
	None Level = iota + 1
	Backward
	BackwardTransitive
	Forward
	ForwardTransitive
	Full
	FullTransitive
	AlwaysIncompatible // refuses every further version
)

// DefaultLevel is in force where none was set.
const DefaultLevel = Backward

var levelNames = [...]string{
	None:               "NONE",
	Backward:           "BACKWARD",
	BackwardTransitive: "BACKWARD_TRANSITIVE",
	Forward:            "FORWARD",
	ForwardTransitive:  "FORWARD_TRANSITIVE",
	Full:               "FULL",
	FullTransitive:     "FULL_TRANSITIVE",
	AlwaysIncompatible: "ALWAYS_INCOMPATIBLE",
}

// Levels lists the levels.
func Levels() []Level {
	return []Level{
		None, Backward, BackwardTransitive, Forward, ForwardTransitive, Full, FullTransitive,
		AlwaysIncompatible,
	}
}

// String returns the name on the wire.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "LEVEL(" + strconv.Itoa(int(l)) + ")"
}

// ParseLevel reads the name of a level in any case.
func ParseLevel(s string) (Level, error) {
	for _, l := range Levels() {
		if strings.EqualFold(s, levelNames[l]) {
			return l, nil
		}
	}
	return 0, invalidLevel()
}

// Transitive says whether every active version is checked, and not only the
// latest one.
func (l Level) Transitive() bool {
	return l == BackwardTransitive || l == ForwardTransitive || l == FullTransitive
}

// backward says whether the new schema must read old data.
func (l Level) backward() bool {
	return l == Backward || l == BackwardTransitive || l == Full || l == FullTransitive
}

// forward says whether old schemas must read new data.
func (l Level) forward() bool {
	return l == Forward || l == ForwardTransitive || l == Full || l == FullTransitive
}

// Mode says what the registry as a whole lets clients do. The numbers are
// stored.
type Mode uint8

// The modes. ReadOnlyOverride differs from ReadOnly only where subjects have
// modes of their own, which docs/spec/registry.md#config-and-mode does not
// know.
const (
	ReadWrite Mode = iota + 1
	ReadOnly
	ReadOnlyOverride
	Import // takes schemas with the ids and versions of another registry
)

var modeNames = [...]string{
	ReadWrite:        "READWRITE",
	ReadOnly:         "READONLY",
	ReadOnlyOverride: "READONLY_OVERRIDE",
	Import:           "IMPORT",
}

// Modes lists the modes.
func Modes() []Mode { return []Mode{ReadWrite, ReadOnly, ReadOnlyOverride, Import} }

// String returns the name on the wire.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "MODE(" + strconv.Itoa(int(m)) + ")"
}

// ParseMode reads the name of a mode in any case.
func ParseMode(s string) (Mode, error) {
	for _, m := range Modes() {
		if strings.EqualFold(s, modeNames[m]) {
			return m, nil
		}
	}
	return 0, invalidMode()
}

func (m Mode) readOnly() bool { return m == ReadOnly || m == ReadOnlyOverride }

// VersionID names a version of a subject: a positive number, or Latest.
type VersionID int32

// Latest is the highest active version of a subject.
const Latest VersionID = -1

// String returns the number, or "latest".
func (v VersionID) String() string {
	if v == Latest {
		return "latest"
	}
	return strconv.Itoa(int(v))
}

// ParseVersion reads a version as it stands in a path: a number of 1 to
// 2^31-1, or "latest" in any case, or -1 for the same.
func ParseVersion(s string) (VersionID, error) {
	text := strings.TrimSpace(s)
	if strings.EqualFold(text, "latest") {
		return Latest, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || (n < 1 && n != int64(Latest)) {
		return 0, invalidVersion(s)
	}
	return VersionID(n), nil
}

// maxID is the largest schema id: clients keep it in a signed 32-bit integer.
const maxID = math.MaxInt32

// Reference says that a schema uses another one. What Name means depends on
// the language: Avro the full name of a type, JSON the URI in $ref, Protobuf
// the path of the import.
type Reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int32  `json:"version"` // Latest in a request is stored as the real number
}

// Draft is a schema as a client sends it.
type Draft struct {
	Type       Type
	Text       string
	References []Reference
	Normalize  bool
	// ID and Version are chosen by the client in mode IMPORT only; 0 means
	// none, and so does a negative Version.
	ID      int32
	Version int32
	// MayRead says whether whoever sends the draft may read a subject that it
	// refers to; what they may not read does not exist for them. nil lets them
	// read all.
	MayRead func(subject string) (bool, error)
}

// CheckSubject returns nil when the name may be a subject's.
func CheckSubject(subject string) error {
	if names.CheckSubject(subject) != nil {
		return invalidSubject(subject)
	}
	return nil
}
