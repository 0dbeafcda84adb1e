package jsontree

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

var lax = Limits{Depth: 1000}

func mustRead(t testing.TB, text string) *Value {
	t.Helper()
	v, rest, err := Read(text, lax)
	if err != nil || v == nil || strings.TrimSpace(rest) != "" {
		t.Fatalf("Read(%q): got %v, rest %q, error %v, want a value", text, v, rest, err)
	}
	return v
}

func printed(v *Value, sorted bool) string {
	w := Writer{Limit: math.MaxInt}
	w.Value(v, sorted)
	return string(w.Buf)
}

func TestReadAndPrint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want, sorted string }{
		"literals":    {" [ null , true,false ] ", "[null,true,false]", ""},
		"order stays": {`{"b":1,"a":{"d":2,"c":3}}`, `{"b":1,"a":{"d":2,"c":3}}`, `{"a":{"c":3,"d":2},"b":1}`},
		"numbers stay": {
			`[-0,1.0,1E+2,0.10,123456789012345678901234567890.5e-7]`,
			`[-0,1.0,1E+2,0.10,123456789012345678901234567890.5e-7]`, "",
		},
		"last value wins": {`{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`, ""},
		"escapes are undone": {
			`"\u0061\/\u00e9\ud83d\ude00\"\\\b\f\n\r\t\u0001\u001f"`,
			`"a/é😀\"\\\b\f\n\r\t\u0001\u001F"`, "",
		},
		"half a pair":     {`["\ud800x\udc00","\ud800\u0041"]`, "[\"\uFFFDx\uFFFD\",\"\uFFFDA\"]", ""},
		"no HTML escapes": {`"<a>&\u2028\u007f"`, "\"<a>&\u2028\u007f\"", ""},
		"Java's order": {
			`{"\ue000":1,"\ud83d\ude00":2,"é":3,"z":4}`, "{\"\ue000\":1,\"😀\":2,\"é\":3,\"z\":4}",
			"{\"z\":4,\"é\":3,\"😀\":2,\"\ue000\":1}",
		},
		"empty": {`{ "":[ ], "x":{ } }`, `{"":[],"x":{}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := mustRead(t, c.in)
			if got := printed(v, false); got != c.want {
				t.Errorf("printed: got %s, want %s", got, c.want)
			}
			if c.sorted == "" {
				c.sorted = c.want
			}
			if got := printed(v, true); got != c.sorted {
				t.Errorf("sorted: got %s, want %s", got, c.sorted)
			}
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]SyntaxError{
		`{"a":`:                          {Problem: NoValue, Line: 1, Column: 6, Character: AtEnd},
		`[1,]`:                           {Problem: NoValue, Line: 1, Column: 4, Character: ']'},
		"[\n  é]":                        {Problem: NoValue, Line: 2, Column: 3, Character: 'é'},
		`+1`:                             {Problem: NoValue, Line: 1, Column: 1, Character: '+'},
		`/* no */ 1`:                     {Problem: NoValue, Line: 1, Column: 1, Character: '/'},
		`[nullx]`:                        {Problem: UnknownWord, Line: 1, Column: 2, Character: 'n', Word: "nullx"},
		`{'a':1}`:                        {Problem: NoMemberName, Line: 1, Column: 2, Character: '\''},
		`{"a":1,}`:                       {Problem: NoMemberName, Line: 1, Column: 8, Character: '}'},
		`{"a" 1}`:                        {Problem: NoColon, Line: 1, Column: 6, Character: '1'},
		`{"a":1 "b":2}`:                  {Problem: NoComma, Line: 1, Column: 8, Character: '"', Close: '}'},
		`[1`:                             {Problem: NoComma, Line: 1, Column: 3, Character: AtEnd, Close: ']'},
		`-`:                              {Problem: NoDigit, Line: 1, Column: 2, Character: AtEnd},
		`1.`:                             {Problem: NoFractionDigit, Line: 1, Column: 3, Character: AtEnd},
		`1e+`:                            {Problem: NoExponentDigit, Line: 1, Column: 4, Character: AtEnd},
		`-01`:                            {Problem: LeadingZero, Line: 1, Column: 2, Character: '0'},
		`1x`:                             {Problem: TrailingCharacter, Line: 1, Column: 2, Character: 'x'},
		"\"a\tb\"":                       {Problem: ControlCharacter, Line: 1, Column: 3, Character: '\t'},
		"\"\\n\x01\"":                    {Problem: ControlCharacter, Line: 1, Column: 4, Character: 1},
		`"a`:                             {Problem: OpenString, Line: 1, Column: 3, Character: AtEnd},
		`"a\`:                            {Problem: OpenString, Line: 1, Column: 4, Character: AtEnd},
		`"\x"`:                           {Problem: BadEscape, Line: 1, Column: 2, Character: '\\'},
		`"\u00g0"`:                       {Problem: BadUnicodeEscape, Line: 1, Column: 2, Character: '\\'},
		`"\ud800\u00`:                    {Problem: ShortUnicodeEscape, Line: 1, Column: 8, Character: '\\'},
		strings.Repeat("[", 1<<20):       {Problem: TooDeep, Line: 1, Column: 1001, Character: '['},
		`{"n":` + strings.Repeat("{", 3): {Problem: NoMemberName, Line: 1, Column: 7, Character: '{'},
	} {
		t.Run(fmt.Sprintf("%.20q", text), func(t *testing.T) {
			t.Parallel()
			_, _, err := Read(text, lax)
			var got *SyntaxError
			if !errors.As(err, &got) || *got != want {
				t.Errorf("Read(%.40q): got %+v, want %+v", text, err, want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	limits := Limits{Depth: 2, Values: 4, NumberBytes: 3, Comments: true}
	for text, want := range map[string]Problem{
		`[[1]]`:         255,
		`[[[]]]`:        TooDeep,
		`[1,2,3]`:       255,
		`[1,2,3,4]`:     TooManyValues,
		`-12`:           255,
		`-123`:          NumberTooLong,
		"// a\n/*b*/ 1": 255,
		`[/**/1/**/]`:   255,
		`[1 /* 2]`:      OpenComment,
		`[1 / 2]`:       BadComment,
	} {
		_, _, err := Read(text, limits)
		var got *SyntaxError
		switch {
		case errors.As(err, &got) && got.Problem == want:
		case err == nil && want == 255:
		default:
			t.Errorf("Read(%q): got %v, want problem %d", text, err, want)
		}
	}
	if v, rest, err := Read(" \n ", lax); v != nil || rest != "" || err != nil {
		t.Errorf("Read of white space: got %v, %q, %v, want no value", v, rest, err)
	}
	if _, rest, err := Read("{} \x01x", lax); rest != " \x01x" || err != nil {
		t.Errorf("rest: got %q, %v, want %q", rest, err, " \x01x")
	}
}

func TestWriterLimits(t *testing.T) {
	t.Parallel()
	v := mustRead(t, `{"a":["long","text"]}`)
	for _, c := range []struct {
		w    Writer
		want error
	}{
		{Writer{Limit: 21, Depth: 2}, nil},
		{Writer{Limit: 20, Depth: 2}, ErrLongOutput},
		{Writer{Limit: 100, Depth: 1}, ErrDeepOutput},
		{Writer{Limit: 3, Depth: 2}, ErrLongOutput},
	} {
		w := c.w
		w.Value(v, false)
		if !errors.Is(w.Err, c.want) {
			t.Errorf("limit %d, depth %d: got %v, want %v", c.w.Limit, c.w.Depth, w.Err, c.want)
		}
		if most := w.Limit + len(`{"a":["long","text"]}`); len(w.Buf) > most {
			t.Errorf("limit %d: got %d bytes, want at most %d", w.Limit, len(w.Buf), most)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 3 * indexFrom {
		fmt.Fprintf(&text, `,"k%d":"v%d"`, i, i)
	}
	v := mustRead(t, "{"+text.String()[1:]+"}")
	for i := range 3 * indexFrom {
		key, want := fmt.Sprintf("k%d", i), fmt.Sprintf("v%d", i)
		if got, ok := v.GetText(key); got != want || !ok {
			t.Errorf("GetText(%s): got %q, %v, want %q", key, got, ok, want)
		}
	}
	if got := v.Get("none"); got != nil {
		t.Errorf("Get(none): got %v, want nil", got)
	}
	var missing *Value
	if got := missing.Get("k"); got != nil {
		t.Errorf("Get on nil: got %v, want nil", got)
	}
	if got := v.Len(); got != 3*indexFrom {
		t.Errorf("Len: got %d, want %d", got, 3*indexFrom)
	}
	for range v.Elements() {
		t.Error("an object has elements, want none")
	}
}

// FuzzRead compares the reader with encoding/json: both accept the same texts, and printing
// is stable and keeps the meaning.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-0.5e+7,"\ud83d\ude00\u0000",null,true,false],"a":{}}`, `[[[`, `"\ud800"`,
		"{\"é\":\"\x7f\"}", ` 1 x`, `01`,
		`{"b":1,"a":2}`, "\"\\u00", `nullx`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		v, rest, err := Read(text, lax)
		good := err == nil && v != nil && strings.Trim(rest, " \t\r\n") == ""
		var syntax *SyntaxError
		if err != nil && !errors.As(err, &syntax) {
			t.Fatalf("got error %T, want a *SyntaxError", err)
		}
		if err != nil && syntax.Problem == TooDeep {
			return
		}
		if valid := json.Valid([]byte(text)); good != valid {
			t.Fatalf("%q: got valid %v (%v), want %v", text, good, err, valid)
		}
		if !good {
			return
		}
		once := printed(v, false)
		if again := printed(mustRead(t, once), false); again != once {
			t.Fatalf("printed again: got %s, want %s", again, once)
		}
		var before, after any
		if json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal([]byte(once), &after) != nil {
			return // a number is out of the range of float64
		}
		if got, want := fmt.Sprint(after), fmt.Sprint(before); got != want {
			t.Fatalf("meaning: got %s, want %s", got, want)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	text := `{"type":"record","name":"R","fields":[` +
		strings.Repeat(`{"name":"field","type":["null","string"],"default":null},`, 20) + `1]}`
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		mustRead(b, text)
	}
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{indexFrom - 1, 4 * indexFrom} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `,"member%d":0`, i)
		}
		v := mustRead(b, "{"+text.String()[1:]+"}")
		last := fmt.Sprintf("member%d", n-1)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Get(last)
			}
		})
	}
}
