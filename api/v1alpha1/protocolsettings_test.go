package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"freshet/api/v1alpha1"
)

func TestProtocolSettingsAreReadInOneForm(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{}`:                          `{}`,
		` { "b" : 1.0, "a" : [ 2 ] }`: `{"a":[2],"b":1}`,
		`{"a":"<&>"}`:                 `{"a":"<&>"}`,
		`{"a":"\u003c"}`:              `{"a":"<"}`,
		`null`:                        ``,
		`"on"`:                        `"on"`,
	} {
		var fromJSON, fromProtobuf v1alpha1.ProtocolSettings
		if err := json.Unmarshal([]byte(input), &fromJSON); err != nil {
			t.Fatal(err)
		}
		binary, err := (&v1alpha1.ProtocolSettings{Raw: []byte(input)}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := fromProtobuf.Unmarshal(binary); err != nil {
			t.Fatal(err)
		}
		if string(fromJSON.Raw) != want || string(fromProtobuf.Raw) != want {
			t.Errorf("%s: got %q from JSON and %q from protobuf, want %q", input, fromJSON.Raw, fromProtobuf.Raw, want)
		}
	}
}

// TestProtocolsThatAreStored checks that clusters that were stored before there were settings keep
// their enabled protocols.
func TestProtocolsThatAreStored(t *testing.T) {
	t.Parallel()
	entry := "\x0a\x06stream\x12\x00" // key and an empty message
	stored := append([]byte{0x22, byte(len(entry))}, entry...)
	var config v1alpha1.ClusterConfig
	if err := config.Unmarshal(stored); err != nil {
		t.Fatal(err)
	}
	if got := string(config.Protocols["stream"].Raw); got != "{}" {
		t.Errorf("got settings %q, want {}", got)
	}
}

// FuzzProtocolSettings checks that settings that can be decoded can be encoded, and decode to the
// same value again.
func FuzzProtocolSettings(f *testing.F) {
	for _, seed := range []string{
		"", "\x0a\x02{}", "\x0a\x04null", "\x0a\x0e{\"b\":1e3,\"a\":1}", "\x0a\x03{\"a",
		"\x12\x01x", "\x0a\xff\xff\xff\xff\x7f",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var read, again, fromJSON v1alpha1.ProtocolSettings
		if read.Unmarshal(data) != nil {
			return
		}
		binary, err := read.Marshal()
		if err != nil || len(binary) != read.Size() {
			t.Fatalf("encoding %q: got %q, %v, want %d bytes", read.Raw, binary, err, read.Size())
		}
		text, err := json.Marshal(read)
		if err != nil {
			t.Fatalf("encoding %q as JSON: %v", read.Raw, err)
		}
		if err := json.Unmarshal(text, &fromJSON); err != nil {
			t.Fatal(err)
		}
		if len(read.Raw) == 0 {
			return // null, which is encoded as an empty message
		}
		if err := again.Unmarshal(binary); err != nil || string(again.Raw) != string(read.Raw) ||
			string(fromJSON.Raw) != string(read.Raw) {
			t.Errorf("decoding %q again: got %q from protobuf and %q from JSON, %v",
				read.Raw, again.Raw, fromJSON.Raw, err)
		}
	})
}
