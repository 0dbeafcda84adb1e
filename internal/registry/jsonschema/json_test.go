package jsonschema

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"freshet/internal/base/errs"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"space goes":  {" {\n \"type\" :\t\"string\" }\r\n", `{"type":"string"}`},
		"order stays": {`{"b":1,"a":{"d":2,"c":3}}`, `{"b":1,"a":{"d":2,"c":3}}`},
		"numbers stay": {
			`{"minimum":1.0,"maximum":1E+2,"multipleOf":0.10}`,
			`{"minimum":1.0,"maximum":1E+2,"multipleOf":0.10}`,
		},
		"large numbers stay": {
			`{"default":123456789012345678901234567890.5}`,
			`{"default":123456789012345678901234567890.5}`,
		},
		"html is not escaped":     {`{"title":"a<b>&c"}`, `{"title":"a<b>&c"}`},
		"escapes are undone":      {`{"title":"\u0061\/\u00e9\ud83d\ude00"}`, `{"title":"a/é😀"}`},
		"controls are escaped":    {`{"title":"\u0001\u001f\b\f\n\r\t\"\\"}`, `{"title":"\u0001\u001F\b\f\n\r\t\"\\"}`},
		"separators are not":      {`{"title":"\u2028\u007f"}`, "{\"title\":\"\u2028\u007f\"}"},
		"half a pair":             {`{"title":"\ud800x\udc00"}`, "{\"title\":\"\uFFFDx\uFFFD\"}"},
		"the last duplicate wins": {`{"title":"a","type":"string","title":"b"}`, `{"title":"b","type":"string"}`},
		"many members":            {manyMembers(40), manyMembers(40)},
		"true":                    {"true", "true"},
		"false":                   {" false ", "false"},
		"empty":                   {"{ }", "{}"},
		"null default":            {`{"default":null}`, `{"default":null}`},
		"empty names and arrays":  {`{"properties":{"":{"examples":[ ]}}}`, `{"properties":{"":{"examples":[]}}}`},
		"unknown keywords survive": {
			`{"x-a":[1,{"b":null}],"connect.type":"int8"}`,
			`{"x-a":[1,{"b":null}],"connect.type":"int8"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, c.in)
			if s.Canonical() != c.want {
				t.Errorf("got  %s\nwant %s", s.Canonical(), c.want)
			}
			if s.Normalized() != s.Canonical() {
				t.Errorf("normalized differs: %s", s.Normalized())
			}
			if again := mustParse(t, s.Canonical()); again.Canonical() != s.Canonical() {
				t.Errorf("not stable: %s", again.Canonical())
			}
		})
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"x` + strings.Repeat("y", i) + `":0`)
	}
	return b.String() + "}"
}

func TestInvalidText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"nothing":           {"", "empty schema"},
		"space":             {" \n", "empty schema"},
		"a number":          {"5", "object or a boolean"},
		"a string":          {`"string"`, "object or a boolean"},
		"null":              {"null", "object or a boolean"},
		"an array":          {"[{}]", "object or a boolean"},
		"trailing text":     {"{} x", "after the JSON value at line 1, column 4"},
		"two values":        {"{}{}", "after the JSON value"},
		"trailing comma":    {`{"type":"string",}`, "member name"},
		"missing comma":     {`{"a":1 "b":2}`, "expected ','"},
		"missing colon":     {`{"a" 1}`, "expected ':'"},
		"unclosed":          {"{\n\"a\": 1", "line 2, column 7"},
		"unclosed string":   {`{"a`, "not closed"},
		"single quotes":     {`{'a':1}`, "member name"},
		"comment":           {`{/**/}`, "member name"},
		"NaN":               {`{"default":NaN}`, `unexpected word "NaN" at line 1, column 12`},
		"Infinity":          {`{"default":-Infinity}`, "invalid number"},
		"leading zero":      {`{"default":01}`, "leading zero"},
		"leading plus":      {`{"default":+1}`, "unexpected character '+'"},
		"bare point":        {`{"default":1.}`, "decimal point"},
		"bare exponent":     {`{"default":1e}`, "exponent"},
		"bad escape":        {`{"title":"\x"}`, "unknown escape"},
		"bad unicode":       {`{"title":"\u00g0"}`, "invalid \\u escape"},
		"short unicode":     {`{"title":"\u00`, "incomplete \\u escape"},
		"control character": {"{\"title\":\"a\nb\"}", "control character"},
		"too deep": {
			strings.Repeat(`{"not":`, 1200) + "{}" + strings.Repeat("}", 1200),
			"nested deeper than 1000",
		},
		"only brackets":      {strings.Repeat("[", 1<<20), "nested deeper than 1000"},
		"an unknown type":    {`{"type":"strin"}`, "not a valid draft-07 JSON Schema: at '#/type'"},
		"a bad property":     {`{"properties":{"a/b":{"minLength":-1}}}`, "at '#/properties/a~1b/minLength'"},
		"a schema as text":   {`{"properties":{"a":"string"}}`, "at '#/properties/a'"},
		"a bad pattern":      {`{"pattern":"("}`, "invalid regular expression"},
		"a bad pattern name": {inDraft(draft2020, `{"patternProperties":{"[":{}}}`), "invalid regular expression"},
		"draft-03 required":  {`{"properties":{"a":{"required":true}}}`, "at '#/properties/a/required'"},
		"multiple of zero":   {`{"multipleOf":0}`, "at '#/multipleOf'"},
		"a long pattern":     {`{"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`, "longer than"},
		"only itself":        {`{"$ref":"#"}`, "leads back to itself"},
		"itself and a type":  {inDraft(draft2020, `{"$ref":"#","type":"string"}`), "leads back to itself"},
		"one and the other": {
			`{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}}`,
			"leads back to itself",
		},
		"a loop in a property": {`{"properties":{"p":{"$ref":"#/properties/p"}}}`, "leads back to itself"},
		"allOf of itself":      {`{"allOf":[{"type":"string"},{"$ref":"#"}]}`, "leads back to itself"},
		"$schema is a number":  {`{"$schema":42}`, "at '#/$schema'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(c.in, nil, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if !errors.Is(err, ErrInvalid) || errs.KindOf(err) != errs.Invalid {
				t.Errorf("not ErrInvalid: %v", err)
			}
		})
	}
}

// The parser accepts what the text of a draft only advises against.
func TestLenient(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"enum":[]}`,
		`{"enum":["a","a"]}`,
		`{"properties":{"a":{"enum":[1,1.0]}}}`,
		inDraft(draft4, `{"required":[],"items":[{"required":[]}]}`),
		`{"$schema":"http://example.com/mine#","type":"string"}`,
		`{"$schema":"http://json-schema.org/schema#","exclusiveMinimum":1}`,
		`{"$schema":"","type":"string"}`,
		`{"$id":"not a uri at all"}`,
		`{"pattern":"^(?=a)(?!b).*\\p{L}[\\p{Alpha}_]\\p{IsLatin}$"}`,
		`{"minimum":1e999999999,"maximum":-1E-999999999,"default":1e99999999999999999999}`,
	} {
		mustParse(t, text)
	}
}

func TestDecimal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"0", "-0", 0},
		{"0.0", "0e9", 0},
		{"1", "1.0", 0},
		{"100", "1e2", 0},
		{"0.001", "1E-3", 0},
		{"1", "2", -1},
		{"-1", "-2", 1},
		{"-1", "1", -1},
		{"0", "0.1", -1},
		{"0", "-0.1", 1},
		{"9", "10", -1},
		{"0.9", "0.10", 1},
		{"1e400", "9e399", 1},
		{"-1e400", "-9e399", -1},
		{"1e99999999999999999999", "1", 1},
		{"1e-99999999999999999999", "0", 1},
		{"12.5", "12.49", 1},
	} {
		a, b := parseDecimal(c.a), parseDecimal(c.b)
		if got := a.compare(b); got != c.want {
			t.Errorf("compare(%s, %s) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := b.compare(a); got != -c.want {
			t.Errorf("compare(%s, %s) = %d, want %d", c.b, c.a, got, -c.want)
		}
		if (a.key() == b.key()) != (c.want == 0) {
			t.Errorf("keys of %s and %s: %s, %s", c.a, c.b, a.key(), b.key())
		}
	}
}

// The expected results come from exact arithmetic, on numbers that are small enough for it.
func TestDecimalAgainstRat(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	literal := func() string {
		b := []byte{}
		if r.IntN(3) == 0 {
			b = append(b, '-')
		}
		b = append(b, "0123456789"[r.IntN(10)])
		if b[len(b)-1] != '0' {
			for range r.IntN(4) {
				b = append(b, "0123456789"[r.IntN(10)])
			}
		}
		if r.IntN(2) == 0 {
			b = append(b, '.')
			for range 1 + r.IntN(4) {
				b = append(b, "0123456789"[r.IntN(10)])
			}
		}
		if r.IntN(3) == 0 {
			b = append(b, 'e', "+-"[r.IntN(2)], "0123456789"[r.IntN(10)])
		}
		return string(b)
	}
	for range 20_000 {
		x, y := literal(), literal()
		rx, _ := new(big.Rat).SetString(x)
		ry, _ := new(big.Rat).SetString(y)
		dx, dy := parseDecimal(x), parseDecimal(y)
		if got, want := dx.compare(dy), rx.Cmp(ry); got != want {
			t.Fatalf("compare(%s, %s) = %d, want %d", x, y, got, want)
		}
		if ry.Sign() != 0 {
			if got, want := dx.multipleOf(dy), new(big.Rat).Quo(rx, ry).IsInt(); got != want {
				t.Fatalf("multipleOf(%s, %s) = %v, want %v", x, y, got, want)
			}
		}
	}
}

func TestPatternClasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, yes, no string
	}{
		{`^\p{Letter}+$`, "aé", "1"},
		{`^\P{Letter}+$`, "12", "1a"},
		{`^[\p{Alpha}_]+$`, "a_B", "é"},
		{`^\p{Digit}\P{Digit}$`, "1a", "11"},
		{`^[^\p{Lower}]$`, "A", "a"},
		{`^\p{IsGreek}$`, "α", "a"},
		{`^\p{Script=Greek}$`, "α", "a"},
		{`^[\P{Letter}]$`, "1", "a"},
		{`^\d(?!x)`, "1", "1x"},
		{`a.c`, "xabcx", "ac"},
	} {
		p, err := compilePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if found, err := p.find(c.yes); !found || err != nil {
			t.Errorf("%s does not find %q: %v", c.pattern, c.yes, err)
		}
		if found, err := p.find(c.no); found || err != nil {
			t.Errorf("%s finds %q: %v", c.pattern, c.no, err)
		}
	}
}
