package protobuf

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

var update = flag.Bool("update", false, "write the printed texts to testdata")

// TestPrintedTexts compares testdata/print/X.input.proto, printed, with
// X.canonical.proto and X.normalized.proto.
func TestPrintedTexts(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/print/*.input.proto")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no inputs", err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(input, ".input.proto")
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			s := mustParse(t, string(text))
			golden(t, name+".canonical.proto", s.Canonical())
			golden(t, name+".normalized.proto", s.Normalized())
			for _, printed := range []string{s.Canonical(), s.Normalized()} {
				again := mustParse(t, printed)
				if again.Normalized() != s.Normalized() {
					t.Errorf("the normalized text depends on the layout:\n%s",
						cmp.Diff(s.Normalized(), again.Normalized()))
				}
			}
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s:\n%s", path, d)
	}
}

func TestCanonicalKeepsMeaning(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"proto2", "proto3", "nosyntax", "edition"} {
		text, err := os.ReadFile("testdata/print/" + name + ".input.proto")
		if err != nil {
			t.Fatal(err)
		}
		s := mustParse(t, string(text))
		want := compile(t, string(text))
		checkPrinted(t, want, s.Canonical(), (*Schema).Canonical, false)
		checkPrinted(t, want, s.Normalized(), (*Schema).Normalized, true)
	}
}

// A record contains the index of its message type, and a Protobuf group defines
// a message: printing must keep the order of both.
func TestGroupsKeepTheOrderOfMessages(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"after a message": `message M { message A {} optional group G = 1 {} message B {} }`,
		"by number":       `message M { optional group Z = 2 {} optional group Y = 1 {} }`,
		"in a oneof": `message M { message A {} oneof o { group Z = 4 {} group Y = 3 {} int32 i = 2; } oneof p ` +
			`{ int32 j = 1; } optional group G = 5 {} }`,
		"two oneofs": `message M { oneof o { group Z = 4 {} } oneof p { group Y = 3 {} } }`,
		"in an extension": `extend M { optional group G = 4 {} } message M { extensions 4 to 9; } extend M { ` +
			`optional int32 i = 6; } message N {} extend M { optional group H = 5 {} }`,
		"nested extension": `message M { extensions 4 to 9; message A {} extend M { optional group G = 4 {} } ` +
			`message B {} extend M { optional group H = 5 {} } }`,
		"inside a group": `message M { message A {} optional group G = 1 { message B {} optional group H = 2 {} } }`,
		"with enums":     `message M { enum E { X = 0; } message A {} optional group G = 1 {} optional E e = 2; }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := compile(t, text)
			s := mustParse(t, text)
			for form, printed := range map[string]string{
				"canonical": s.Canonical(), "normalized": s.Normalized(),
				"descriptor": mustParse(t, toBase64(t, source)).Canonical(),
			} {
				if got, want := messageOrder(compile(t, printed).GetMessageType()),
					messageOrder(source.GetMessageType()); got != want {
					t.Errorf("%s: got the messages %s, want %s:\n%s", form, got, want, printed)
				}
				again := mustParse(t, printed)
				if twice := again.Canonical(); form != "normalized" && twice != printed {
					t.Errorf("%s: printing is not stable:\n%s\n---\n%s", form, printed, twice)
				}
				if twice := again.Normalized(); form == "normalized" && twice != printed {
					t.Errorf("%s: printing is not stable:\n%s\n---\n%s", form, printed, twice)
				}
			}
		})
	}
}

func messageOrder(messages []*descriptorpb.DescriptorProto) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(m.GetName() + "(" + messageOrder(m.GetNestedType()) + ")")
	}
	return b.String()
}

// A text with only the declaration syntax = "proto2" keeps this declaration.
func TestNormalizedIsNeverEmpty(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `syntax = "proto2";`)
	if got, want := s.Normalized(), "syntax = \"proto2\";\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestQuoteRoundTrip(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", "plain", `"'\`, "\a\b\f\n\r\t\v\x00\x1f\x7f", "é 世界 \U0001f600", "\xff\xfe1", "\xc3",
		"\u2028\ufeff\ufffd", "\x009",
	}
	for _, text := range texts {
		s := mustParse(t, `message M { optional bytes b = 1 [default = `+quote(text)+`]; }`)
		got := s.written.messages[0].fields[0].options[0].val.text
		if got != text {
			t.Errorf("%s is parsed as %q, want %q", quote(text), got, text)
		}
	}
}

func TestPlainNumber(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"123": "123", "0123": "83", "0x1F": "31", "-0x10": "-16", "0": "0", "-0": "0", "00": "0",
		"1.0": "1", "1.50": "1.5", ".5": "0.5", "5.": "5", "0123.0": "123", "-2.00": "-2", "-0.0": "-0.0", "0.0": "0",
		"1e3": "1000", "1.23E+3": "1230", "123E-1": "12.3", "123.4567E+2": "12345.67", "1e30": "1e+30",
		"-1.5e-30":             "-1.5e-30",
		"18446744073709551615": "18446744073709551615", "18446744073709551616": "1.8446744073709552e+19",
		"1e-999999999": "0", "1e999999999": "1e999999999",
	}
	for text, want := range tests {
		if got := plainNumber(text); got != want {
			t.Errorf("plainNumber(%s) = %s, want %s", text, got, want)
		}
	}
}

// A descriptor is printed as its original text, except for the orders that a
// descriptor does not contain.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	text := `syntax = "proto3";
package a.b;

import "google/protobuf/timestamp.proto";
import public "google/protobuf/any.proto";

option java_package = "x";
option optimize_for = SPEED;

message M {
  reserved 20;
  reserved 30 to 32;
  reserved "gone";

  optional int32 a = 1;
  repeated string names = 2 [json_name = "n"];
  map<string, .a.b.M> children = 3 [deprecated = true];
  .google.protobuf.Timestamp at = 4;

  oneof pick {
    .a.b.M.Inner in = 5;
    .a.b.E e = 6;
  }

  message Inner {
    bytes b = 1;
  }
}
enum E {
  ZERO = 0;
  ONE = 1 [deprecated = true];
}

service S {
  rpc R (.a.b.M) returns (stream .a.b.M);
}
`
	plain := mustParse(t, text)
	if d := cmp.Diff(text, plain.Canonical()); d != "" {
		t.Fatalf("text of the test is not canonical:\n%s", d)
	}
	encoded := toBase64(t, compile(t, text))
	for name, sent := range map[string]string{
		"padded": encoded, "unpadded": strings.TrimRight(encoded, "="),
		"broken into lines": encoded[:40] + "\r\n" + encoded[40:],
		"url safe":          strings.NewReplacer("+", "-", "/", "_").Replace(encoded),
	} {
		if d := cmp.Diff(text, mustParse(t, sent).Canonical()); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
	if d, err := Compare(plain, mustParse(t, encoded), nil); err != nil || len(d) > 0 {
		t.Error(d, err)
	}
}

// Some clients omit the labels, types and JSON names of fields: they have defaults.
func TestDescriptorWithGaps(t *testing.T) {
	t.Parallel()
	fd := compile(t, `syntax = "proto3"; message M { int32 a = 1; M m = 2; }`)
	for _, f := range fd.GetMessageType()[0].GetField() {
		f.Label, f.JsonName = nil, nil
	}
	fd.GetMessageType()[0].GetField()[1].Type = nil
	want := "syntax = \"proto3\";\n\nmessage M {\n  int32 a = 1;\n  .M m = 2;\n}\n"
	if d := cmp.Diff(want, mustParse(t, toBase64(t, fd)).Canonical()); d != "" {
		t.Error(d)
	}
	fd.Syntax = nil
	want = "\nmessage M {\n  optional int32 a = 1;\n  optional .M m = 2;\n}\n"
	if d := cmp.Diff(want, mustParse(t, toBase64(t, fd)).Canonical()); d != "" {
		t.Error(d)
	}
}

func TestDescriptorErrors(t *testing.T) {
	t.Parallel()
	fd := compile(t, `syntax = "proto3"; message M { int32 a = 1; int32 b = 2; }`)
	fd.GetMessageType()[0].GetField()[1].Number = proto.Int32(1)
	if _, err := Parse(toBase64(t, fd), nil); err == nil || !strings.Contains(err.Error(), "same tag 1") {
		t.Errorf("duplicate tag: got %v, want an error with \"same tag 1\"", err)
	}
	fd.Dependency = []string{"gone.proto"}
	if _, err := Parse(toBase64(t, fd), nil); err == nil || !strings.Contains(err.Error(), "gone.proto") {
		t.Errorf("missing import: got %v, want an error with \"gone.proto\"", err)
	}
}
