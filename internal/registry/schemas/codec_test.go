package schemas

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"freshet/internal/storage/engine"
)

func records() []*record {
	refs := []Reference{{Name: "n", Subject: "s", Version: 3}, {Name: "m", Subject: "t", Version: 1}}
	return []*record{
		{
			op: opRegister, at: 1, subject: "s", version: 1, id: 1, fresh: true, algorithm: 1, typ: Avro,
			text: `"string"`,
		},
		{
			op: opRegister, at: 2, subject: "t", version: 7, id: 9, fresh: true, unchecked: true,
			algorithm: 1, typ: JSON,
			text: `{}`, refs: refs,
		},
		{op: opRegister, at: 3, subject: "u", version: 1, id: 9},
		{op: opSoftDelete, at: 4, subject: "u", versions: []int32{1, 5}},
		{op: opHardDelete, at: 5, subject: "u", versions: []int32{1}},
		{op: opSetLevel, at: 6, subject: "v", level: FullTransitive},
		{op: opSetMode, at: 7, mode: Import, purge: true},
		{op: opReserve, at: 8, id: 77},
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range records() {
		got, err := decodeRecord(want.encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestNewerFormatsAreRejected(t *testing.T) {
	t.Parallel()
	data := records()[0].encode()
	data[0] = recordVersion + 1
	if _, err := decodeRecord(data); !errors.Is(err, engine.ErrNewerFormat) {
		t.Errorf("record: got %v, want %v", err, engine.ErrNewerFormat)
	}
	var snapshot bytes.Buffer
	if err := newState().Snapshot(&snapshot); err != nil {
		t.Fatal(err)
	}
	data = snapshot.Bytes()
	data[1] = recordVersion + 1
	if err := newState().Restore(bytes.NewReader(data)); !errors.Is(err, engine.ErrNewerFormat) {
		t.Errorf("snapshot: got %v, want %v", err, engine.ErrNewerFormat)
	}
}

// Apply rejects records that contradict the rules.
func TestReplayAssertsInvariants(t *testing.T) {
	t.Parallel()
	base := []*record{
		{op: opRegister, subject: "s", version: 1, id: 1, fresh: true, typ: Avro, text: `"string"`},
		{op: opRegister, subject: "s", version: 2, id: 2, fresh: true, typ: Avro, text: `"int"`},
		{op: opSoftDelete, subject: "s", versions: []int32{2}},
	}
	for name, bad := range map[string]*record{
		"id bound twice": {
			op: opRegister, subject: "t", version: 1, id: 1, fresh: true, typ: Avro,
			text: `"long"`,
		},
		"id not bound":              {op: opRegister, subject: "t", version: 1, id: 5},
		"version taken":             {op: opRegister, subject: "s", version: 1, id: 2},
		"deleted version, other id": {op: opRegister, subject: "s", version: 2, id: 1},
		"no id": {
			op: opRegister, subject: "t", version: 1, fresh: true, typ: Avro, text: `"long"`,
		},
		"no version": {op: opRegister, subject: "t", id: 7, fresh: true, typ: Avro, text: `"long"`},
		"no name":    {op: opRegister, subject: "a b", version: 1, id: 1},
		"unknown type": {
			op: opRegister, subject: "t", version: 1, id: 7, fresh: true, typ: 9, text: `"long"`,
		},
		"soft delete twice":             {op: opSoftDelete, subject: "s", versions: []int32{2}},
		"soft delete of nothing":        {op: opSoftDelete, subject: "x", versions: []int32{2}},
		"hard delete of an active one":  {op: opHardDelete, subject: "s", versions: []int32{1}},
		"hard delete twice in a record": {op: opHardDelete, subject: "s", versions: []int32{2, 2}},
		"unknown level":                 {op: opSetLevel, subject: "s", level: 99},
		"unknown mode":                  {op: opSetMode, mode: 99},
		"unknown operation":             {op: 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newState()
			for i, rec := range base {
				if err := s.Apply(uint64(i+1), rec.encode()); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Apply(4, bad.encode()); err == nil {
				t.Error("invalid record was applied")
			}
		})
	}
}

func FuzzApply(f *testing.F) {
	for _, rec := range records() {
		f.Add(rec.encode(), records()[0].encode())
	}
	f.Add([]byte{1, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s := newState()
		if s.Apply(1, first) != nil {
			s = newState() // a state that rejected a record may be inconsistent
		}
		if s.Apply(2, second) != nil {
			return
		}
		sameAfterSnapshot(t, s)
	})
}

func FuzzRestore(f *testing.F) {
	s := newState()
	for i, rec := range records()[:2] {
		if err := s.Apply(uint64(i), rec.encode()); err != nil {
			f.Fatal(err)
		}
	}
	var snapshot bytes.Buffer
	if err := s.Snapshot(&snapshot); err != nil {
		f.Fatal(err)
	}
	f.Add(snapshot.Bytes())
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if s := newState(); s.Restore(bytes.NewReader(data)) == nil {
			sameAfterSnapshot(t, s)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("plain")
	f.Add("\"\\\n\r\t\b\f\x00\x1f\x7f<>&\u2028é")
	f.Fuzz(func(t *testing.T, text string) {
		quoted := appendQuoted(nil, text)
		if got := unquote(quoted); got != text {
			t.Fatalf("quoting and unquoting %q: got %q", text, got)
		}
		if !utf8.ValidString(text) {
			return
		}
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil || got != text {
			t.Fatalf("encoding/json decodes %q as %q: %v", text, got, err)
		}
	})
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{
		"1", "latest", "LaTeSt", " 7 ", "-1", "0", "-2", "2147483647", "2147483648", "1.0",
		"+5", "", "１",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(s)
		if err == nil && v < 1 && v != Latest {
			t.Errorf("%q: got version %d, want a positive number or the latest version", s, v)
		}
		if err != nil && !errors.Is(err, ErrInvalidVersion) {
			t.Error(err)
		}
		if strings.EqualFold(strings.TrimSpace(s), "latest") && v != Latest {
			t.Errorf("%q: got %d, want the latest version", s, v)
		}
	})
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]VersionID{
		"1": 1, "latest": Latest, "Latest": Latest, "-1": Latest, " 12 ": 12,
		"2147483647": 2147483647,
	} {
		if got, err := ParseVersion(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-2", "abc", "2147483648", "1a", "1.0", "0x1"} {
		if got, err := ParseVersion(text); !errors.Is(err, ErrInvalidVersion) {
			t.Errorf("%q: got %d, %v, want %v", text, got, err, ErrInvalidVersion)
		}
	}
}

// TestStoredBytes compares encoded records and a snapshot with those of earlier versions, which
// journals contain.
func TestStoredBytes(t *testing.T) {
	t.Parallel()
	var stored bytes.Buffer
	s := newState()
	for i, r := range records()[:3] {
		data := r.encode()
		stored.Write(data)
		if err := s.Apply(uint64(i+1), data); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range records()[3:] {
		stored.Write(r.encode())
	}
	const wantRecords = "010102017302020101010822737472696e67220001010401740e12030102027b7d04016e01730601" +
		"6d0174020101060175021200010208017504020a01030a0175020201040c01760701050e000401010610009a01"
	if got := hex.EncodeToString(stored.Bytes()); got != wantRecords {
		t.Errorf("records: got %s, want %s", got, wantRecords)
	}
	var snapshot bytes.Buffer
	if err := s.Snapshot(&snapshot); err != nil {
		t.Fatal(err)
	}
	const wantSnapshot = "060112010004060d010100020022737472696e6722110102011204016e017306016d0174027b7d08" +
		"017300020202020008017400020e12040008017500020212060000"
	if got := hex.EncodeToString(snapshot.Bytes()); got != wantSnapshot {
		t.Errorf("snapshot: got %s, want %s", got, wantSnapshot)
	}
}
