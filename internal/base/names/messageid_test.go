package names_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"freshet/internal/base/names"
)

// encoded contains the bytes that Pulsar's clients write; see docs/spec/messages.md#message-ids.
var encoded = []struct {
	name, base64 string
	id           names.MessageID
	goForm       bool // Pulsar's Go client writes -1 where the Java client omits the field
}{
	{"java unbatched", "CAgQADAA", names.MessageID{Ledger: 8, Partition: -1, Batch: -1}, false},
	{"java unbatched on a partition", "CAgQABgAMAA=", names.MessageID{Ledger: 8, Batch: -1}, false},
	{"batch of one", "CAgQACAAMAE=", names.MessageID{Ledger: 8, Partition: -1, BatchSize: 1}, false},
	{"batch of one on a partition", "CAgQABgAIAAwAQ==", names.MessageID{Ledger: 8, BatchSize: 1}, false},
	{"larger numbers", "CNIJEDgYAjAA", names.MessageID{Ledger: 1234, Entry: 56, Partition: 2, Batch: -1}, false},
	{"earliest", "CP///////////wEQ////////////ATAA", names.EarliestID, false},
	{"latest", "CP//////////fxD//////////38wAA==", names.LatestID, false},
	{
		"go unbatched", "CAgQABj///////////8BIP///////////wEwAA==",
		names.MessageID{Ledger: 8, Partition: -1, Batch: -1},
		true,
	},
}

func TestMessageIDBase64(t *testing.T) {
	t.Parallel()
	for _, tc := range encoded {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.id.Base64(); !tc.goForm && got != tc.base64 {
				t.Errorf("Base64() = %s, want %s", got, tc.base64)
			}
			url := strings.NewReplacer("+", "-", "/", "_").Replace(tc.base64)
			for _, spelling := range []string{
				tc.base64, strings.TrimRight(tc.base64, "="), url,
				strings.TrimRight(url, "="),
			} {
				got, err := names.DecodeMessageID(spelling)
				if err != nil || got != tc.id {
					t.Errorf("DecodeMessageID(%s) = %+v, %v; want %+v", spelling, got, err, tc.id)
				}
			}
		})
	}
	if !names.EarliestID.IsEarliest() || !names.LatestID.IsLatest() || names.EarliestID.IsLatest() {
		t.Error("IsEarliest and IsLatest: got a wrong result, want each true only for its own id")
	}
}

func TestMessageIDPrivateField(t *testing.T) {
	t.Parallel()
	id := names.MessageID{Ledger: 8, Entry: 3, Partition: -1, BatchSize: 1, Redeliveries: 4}
	got, err := names.DecodeMessageID(id.Base64())
	if err != nil || got != id {
		t.Fatalf("DecodeMessageID = %+v, %v; want %+v", got, err, id)
	}
	raw := id.AppendBinary(nil)
	want := "08 08 10 03 20 00 30 01 a8 06 04"
	if hex := hexBytes(raw); hex != want {
		t.Errorf("AppendBinary = %s, want %s", hex, want)
	}
}

func TestDecodeMessageIDRefuses(t *testing.T) {
	t.Parallel()
	enc := base64.StdEncoding.EncodeToString
	for name, in := range map[string]string{
		"empty":            "",
		"not base64":       "§§§",
		"mixed alphabets":  "CAgQADA-/_A",
		"too much padding": "CAgQADAA===",
		"text":             enc([]byte("hello world")),
		"no ledger":        enc([]byte{0x10, 0x00}),
		"no entry":         enc([]byte{0x08, 0x08}),
		"cut varint":       enc([]byte{0x08, 0x80}),
		"endless varint": enc([]byte{
			0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0x01, 0x10, 0x00,
		}),
		"ledger as bytes":   enc([]byte{0x0a, 0x01, 0x08, 0x10, 0x00}),
		"field zero":        enc([]byte{0x00, 0x08, 0x08, 0x08, 0x10, 0x00}),
		"group":             enc([]byte{0x08, 0x08, 0x10, 0x00, 0x0b, 0x0c}),
		"length too long":   enc([]byte{0x08, 0x08, 0x10, 0x00, 0x3a, 0x7f, 0x00}),
		"partition too big": enc([]byte{0x08, 0x08, 0x10, 0x00, 0x18, 0xff, 0xff, 0xff, 0xff, 0x7f}),
		"far too long":      strings.Repeat("A", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if id, err := names.DecodeMessageID(in); !errors.Is(err, names.ErrMessageID) {
				t.Errorf("got %+v, %v; want an ErrMessageID", id, err)
			}
		})
	}
}

func TestDecodeMessageIDSkipsUnknownFields(t *testing.T) {
	t.Parallel()
	raw := []byte{
		0x08, 0x08, 0x10, 0x00,
		0x2a, 0x02, 0x01, 0x02, // acknowledgement set, packed
		0x28, 0x05, // acknowledgement set, one by one
		0x3a, 0x04, 0x08, 0x01, 0x10, 0x01, // first chunk's id
		0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8, // field 100, eight bytes
		0xb5, 0x06, 1, 2, 3, 4, // field 102, four bytes
	}
	id, err := names.ParseBinaryMessageID(raw)
	if err != nil || id.Ledger != 8 || id.Entry != 0 {
		t.Fatalf("ParseBinaryMessageID = %+v, %v; want ledger 8, entry 0", id, err)
	}
}

func TestMessageIDString(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, out string }{
		{"8:0:-1:0", "8:0:-1:0"},
		{"8:0:2", "8:0:2:0"},
		{"8:0", "8:0:-1:0"},
		{"-1:-1:-1:-1", "-1:-1:-1:-1"},
		{"9223372036854775807:9223372036854775807", "9223372036854775807:9223372036854775807:-1:0"},
	} {
		id, err := names.ParseMessageID(tc.in)
		if err != nil || id.String() != tc.out {
			t.Errorf("ParseMessageID(%s) = %s, %v; want %s", tc.in, id, err, tc.out)
		}
	}
	for _, in := range []string{
		"", "8", "8:", ":0", "8:0:1:2:3", "8:0:", "a:b", "08:0", "+8:0", "-:0", "8: 0", "--1:0", "-0:0",
		"9223372036854775808:0", "8:0:2147483648", strings.Repeat("1:", 1000),
	} {
		if id, err := names.ParseMessageID(in); !errors.Is(err, names.ErrMessageID) {
			t.Errorf("ParseMessageID(%q) = %s, %v; want an ErrMessageID", in, id, err)
		}
	}
}

func FuzzMessageID(f *testing.F) {
	for _, tc := range encoded {
		f.Add(tc.base64)
		f.Add(tc.id.String())
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := names.DecodeMessageID(s); err == nil {
			again, err := names.DecodeMessageID(id.Base64())
			if err != nil || again != id {
				t.Fatalf("%q: %+v is encoded as %s, which decodes to %+v, %v", s, id, id.Base64(), again, err)
			}
		}
		if id, err := names.ParseMessageID(s); err == nil {
			again, err := names.ParseMessageID(id.String())
			if err != nil || again != id {
				t.Fatalf("%q: %+v is formatted as %s, which parses as %+v, %v", s, id, id, again, err)
			}
		}
	})
}

func hexBytes(b []byte) string {
	const digits = "0123456789abcdef"
	var sb strings.Builder
	for i, c := range b {
		if i > 0 {
			sb.WriteByte(' ')
		}
		sb.WriteByte(digits[c>>4])
		sb.WriteByte(digits[c&15])
	}
	return sb.String()
}

func BenchmarkMessageID(b *testing.B) {
	id := names.MessageID{Ledger: 123456, Entry: 7890123, Partition: 3, BatchSize: 1}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := names.DecodeMessageID(id.Base64()); err != nil {
			b.Fatal(err)
		}
	}
}
