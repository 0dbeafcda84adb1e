package filter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"freshet/internal/base/errs"
	"freshet/internal/broker/filter"
	"freshet/test/tally"
)

func compileContract(t testing.TB, text string) *filter.Contract {
	t.Helper()
	c, err := filter.CompileContract(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// describe returns a breach as text.
func describe(b *filter.Breach) string {
	var parts []string
	if b.Reason != nil {
		parts = append(parts, b.Reason.Error())
	}
	for _, r := range b.Reads {
		parts = append(parts, r.Name+"="+r.Value)
	}
	return strings.Join(parts, "; ")
}

// TestContract checks which messages break a contract, and the values that are shown for them: those that
// the expression reads, and no others.
func TestContract(t *testing.T) {
	t.Parallel()
	json := `{"total":-5,"name":"Ann","lines":[{"n":1},{"n":-2}],"note":"` + strings.Repeat("ä", 500) + `","x.y":1}`
	avro := schemas{topic: avroSchema(t, orderSchema)}
	message := filter.Message{
		Payload: []byte(json), Key: []byte("k1"), SchemaVersion: -1, PublishTime: 1_700_000_000_000,
		Headers: []filter.Header{{Name: []byte("region"), Value: []byte("eu")}},
	}
	datum := filter.Message{Payload: order, SchemaVersion: 0}
	cases := []struct {
		text string
		of   filter.Message
		want string // "" for a message that keeps the contract
	}{
		{`payload.total >= -5`, message, ""},
		{`payload.total >= 0`, message, "payload.total=-5"},
		{`payload.total >= 0 && key.startsWith("k")`, message, `payload.total=-5; key="k1"`},
		{`payload["total"] >= 0`, message, `payload["total"]=-5`},
		{`payload.lines[1].n > 0`, message, `payload.lines[1].n=-2`},
		{`payload.lines.all(l, l.n > 0)`, message, `payload.lines=[{"n": 1}, {"n": -2}]`},
		{`payload.price > 0`, message, "no such key: price"},
		{`has(payload.price) && payload.price > 0`, message, "has(payload.price)=false"},
		{`payload.name > 0`, message, `no such overload; payload.name="Ann"`},
		{`type(payload.total) == string`, message, "payload.total=-5"},
		{`properties.region == "us"`, message, `properties.region="eu"`},
		{`headers[0].value == "us"`, message, `headers[0].value="eu"`},
		{`headers == []`, message, `headers=[{"name": "region", "value": "eu"}]`},
		{
			`eventTime > publishTime`, message,
			"eventTime=2023-11-14T22:13:20Z; publishTime=2023-11-14T22:13:20Z",
		},
		{`size == 1`, message, fmt.Sprintf("size=%d", len(json))},
		{`payload.note == ""`, message, `payload.note="` + strings.Repeat("ä", 199) + "…"},
		{`payload != null`, filter.Message{NullPayload: true, SchemaVersion: -1}, "payload=null"},
		{`payload.total >= 101.0`, datum, ""},
		{`payload.total > 101.0 && payload.state == "PAID"`, datum, `payload.total=101; payload.state="PAID"`},
	}
	for _, c := range cases {
		breach, err := compileContract(t, c.text).Checker(t.Context(), avro).Check(&c.of)
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want == "" && breach != nil:
			t.Errorf("%s: got the breach %q, want none", c.text, describe(breach))
		case c.want != "" && (breach == nil || describe(breach) != c.want):
			t.Errorf("%s: got %+v, want %q", c.text, breach, c.want)
		}
	}
}

// TestContractOutage checks that a schema that cannot be read now is no breach.
func TestContractOutage(t *testing.T) {
	t.Parallel()
	m := filter.Message{Payload: []byte("{}"), SchemaVersion: 1}
	breach, err := compileContract(t, `payload.total >= 0`).Checker(t.Context(), unavailable{}).Check(&m)
	if breach != nil || errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %+v, %v, want an error of kind Unavailable", breach, err)
	}
}

// TestContractShowsBounded checks that the values of a large message are short.
func TestContractShowsBounded(t *testing.T) {
	t.Parallel()
	list := strings.TrimSuffix(strings.Repeat(`{"a":"bcd"},`, 20_000), ",")
	m := filter.Message{Payload: []byte(`{"list":[` + list + `],"text":"` + strings.Repeat("x", 1<<20) + `"}`)}
	var text []string
	for i := range 20 {
		text = append(text, fmt.Sprintf(`payload.list[%d].a == "x"`, i))
	}
	c := compileContract(t, `size(payload.list) == 0 || payload == 0 || payload.text == "" || `+
		strings.Join(text, " || "))
	breach, err := c.Checker(t.Context(), schemas{}).Check(&m)
	if err != nil || breach == nil || len(breach.Reads) != 8 {
		t.Fatalf("got %+v, %v, want a breach with 8 values", breach, err)
	}
	for _, r := range breach.Reads {
		if n := utf8.RuneCountInString(r.Value); n > 201 || n == 0 {
			t.Errorf("%s: %d characters are shown, want 1 to 201", r.Name, n)
		}
	}
}

// TestAttackContracts compiles contracts that would be costly for every message, however small.
func TestAttackContracts(t *testing.T) {
	t.Parallel()
	ones := "[" + strings.TrimSuffix(strings.Repeat("1,", 500), ",") + "]"
	long := strings.TrimSuffix(strings.Repeat(`x == 1 && `, 90), " && ")
	texts := []string{
		ones + ".all(x, " + long + ")",
		"(" + ones + " + [1]).all(x, " + long + ")",
		"true ? " + ones + ".exists(x, " + long + ") : false",
		`"` + strings.Repeat("x", 1900) + `".matches("(x{20}){48}y")`,
		`[1, 2].all(a, [3, 4].all(b, a < b))`,
		`offset > 0`,
		`payload.a == partition`,
	}
	accepted := 0
	for _, text := range texts {
		if _, err := filter.CompileContract(text); !errors.Is(err, filter.ErrExpression) {
			accepted++
			t.Errorf("%.60s: got %v, want ErrExpression", text, err)
		}
	}
	tally.Attack(t, "contract that is too costly for every message", len(texts), accepted)
	for _, text := range []string{
		`["EUR", "CHF", "USD"].exists(c, payload.currency == c)`,
		`payload.currency in ["EUR", "CHF", "USD"] && payload.lines.all(l, l.count > 0 && l.price >= 0.0)`,
		`key.matches("^[a-z]{3}-[0-9]{1,12}$") && payload.note.matches("^[^<>]{0,20}$")`,
	} {
		compileContract(t, text)
	}
}

// TestContractWork checks that the work of a checker grows with the messages and their sizes.
func TestContractWork(t *testing.T) {
	t.Parallel()
	work := func(text, payload string, times int) int64 {
		checker := compileContract(t, text).Checker(t.Context(), schemas{})
		for range times {
			if _, err := checker.Check(&filter.Message{Payload: []byte(payload), SchemaVersion: -1}); err != nil {
				t.Fatal(err)
			}
		}
		return checker.Work()
	}
	one := work(`payload.a > 0`, `{"a":1}`, 1)
	if many := work(`payload.a > 0`, `{"a":1}`, 100); one == 0 || many != 100*one {
		t.Errorf("100 messages took %d, one took %d", many, one)
	}
	large := strings.Repeat("x", 1<<16)
	if got := work(`payload.a > 0`, `{"b":"`+large+`","a":1}`, 1); got < 1<<16 {
		t.Errorf("a large message took %d", got)
	}
	loop := work(`payload.a.all(x, x == 0)`, `{"a":[`+strings.Repeat("0,", 10_000)+`0]}`, 1)
	if loop < 100_000 {
		t.Errorf("a loop of 10,000 turns took %d", loop)
	}
}

// unavailable is a registry that cannot be read now.
type unavailable struct{ schemas }

func (unavailable) TopicSchema(context.Context, int64) (*filter.Schema, error) {
	return nil, errs.New(errs.Unavailable, "registry is starting")
}
