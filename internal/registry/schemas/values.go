package schemas

import (
	"math"
	"strconv"
	"strings"

	"freshet/internal/base/names"
)

// Type is a schema language.
type Type uint8

// The schema languages, in the order in which Types and the API list them. The
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

// ParseType returns the schema language with a name. The name is case-sensitive;
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
	return 0, reject(ErrInvalidSchema, "Invalid schema type %s", clip(s, 256))
}

// Level is a compatibility level. The zero value means that no level was set. The
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
	AlwaysIncompatible // rejects every further version
)

// DefaultLevel is the level of a subject for which no level was set.
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

// ParseLevel returns the level with a name. The name is case-insensitive.
func ParseLevel(s string) (Level, error) {
	for _, l := range Levels() {
		if strings.EqualFold(s, levelNames[l]) {
			return l, nil
		}
	}
	return 0, invalidLevel()
}

// Transitive reports whether a new schema is checked against every active version,
// and not only against the latest.
func (l Level) Transitive() bool {
	return l == BackwardTransitive || l == ForwardTransitive || l == FullTransitive
}

// backward reports whether the new schema must read data of older schemas.
func (l Level) backward() bool {
	return l == Backward || l == BackwardTransitive || l == Full || l == FullTransitive
}

// forward reports whether older schemas must read data of the new schema.
func (l Level) forward() bool {
	return l == Forward || l == ForwardTransitive || l == Full || l == FullTransitive
}

// Mode determines which operations the whole registry allows. The numbers are
// stored.
type Mode uint8

// The modes. ReadOnlyOverride has the same effect as ReadOnly, because subjects do
// not have modes of their own (docs/spec/registry.md#config-and-mode).
const (
	ReadWrite Mode = iota + 1
	ReadOnly
	ReadOnlyOverride
	Import // registers schemas with the ids and versions of another registry
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

// ParseMode returns the mode with a name. The name is case-insensitive.
func ParseMode(s string) (Mode, error) {
	for _, m := range Modes() {
		if strings.EqualFold(s, modeNames[m]) {
			return m, nil
		}
	}
	return 0, invalidMode()
}

func (m Mode) readOnly() bool { return m == ReadOnly || m == ReadOnlyOverride }

// VersionID identifies a version of a subject: a positive number, or Latest.
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

// ParseVersion parses the version of a path: a number from 1 to 2^31-1, or "latest"
// in any case, or -1, which also means the latest version.
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

// maxID is the largest schema id: clients store ids as signed 32-bit integers.
const maxID = math.MaxInt32

// Reference is a reference of a schema to another schema. Name is the full name of
// a type in Avro, the URI of a $ref in JSON Schema, and the path of an import in
// Protobuf.
type Reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int32  `json:"version"` // a request may use Latest; the number is stored
}

// Draft is a schema as a client sends it.
type Draft struct {
	Type       Type
	Text       string
	References []Reference
	Normalize  bool
	// ID is the id that the client requests, in mode IMPORT only. Version is the
	// number that it requests; outside of IMPORT, it must be that of the existing
	// version with this schema, or the next number. 0 and negative values mean
	// that the server chooses.
	ID      int32
	Version int32
	// Reader is the caller, who may refer only to subjects that the caller may read. Other
	// subjects are treated as missing. nil allows all subjects.
	Reader Reader
}

// Reader is a caller with permissions.
type Reader interface {
	// MayRead reports whether the caller may read a subject.
	MayRead(subject string) (bool, error)
}

// CheckSubject returns an error if a subject cannot have this name.
func CheckSubject(subject string) error {
	if names.CheckSubject(subject) != nil {
		return invalidSubject(subject)
	}
	return nil
}
