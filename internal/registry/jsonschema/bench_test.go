package jsonschema

import (
	"fmt"
	"sync"
	"testing"
)

// typical is a typical schema: twenty properties, a nested object, an array and a union.
func typical(d draft, leaf string) string {
	return inDraft(d, `{"$id":"http://example.com/order.json","title":"Order",`+
		obj(list(20, func(i int) string {
			return fmt.Sprintf(`"field%d":{"type":"string","maxLength":%d,"description":"a field"}`, i, i+10)
		})+
			`,"customer":{"$ref":"#/definitions/customer"},"lines":{"type":"array",`+
			`"items":{"$ref":"#/definitions/line"}},`+
			`"payment":{"oneOf":[{"$ref":"#/definitions/card"},{"type":"null"}]}`,
			`,"required":["field0","customer"],"additionalProperties":false,"definitions":{`+
				`"customer":{"type":"object","properties":{"id":{"type":"`+leaf+
				`"},"mail":{"type":"string","pattern":"@"}}},`+
				`"line":{"type":"object","properties":{"sku":{"type":"string"},"n":{"type":"integer","minimum":1}}},`+
				`"card":{"type":"object","properties":{"number":{"type":"string"}}}}`)[1:])
}

func BenchmarkParse(b *testing.B) {
	for _, d := range []draft{draft7, draft2020} {
		b.Run(d.String(), func(b *testing.B) {
			text := typical(d, "string")
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				mustParse(b, text)
			}
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	old, next := mustParse(b, typical(draft7, "integer")), mustParse(b, typical(draft7, "number"))
	b.ReportAllocs()
	for b.Loop() {
		mustCompare(b, old, next)
	}
}

// The race detector checks here that a schema is safe for concurrent use.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	common := mustParse(t, `{"definitions":{"mail":{"type":"string","pattern":"@"}},"if":{"type":"null"},"then":true}`)
	text := obj(`"a":{"$ref":"c.json#/definitions/mail"},"m":{"$ref":"http://json-schema.org/draft-07/schema#"},`+
		`"t":{"format":"date-time"}`, "")
	old, next := mustParse(t, text, Reference{"c.json", common}), mustParse(t, text, Reference{"c.json", common})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if differences, err := Compare(old, next, nil); err != nil || len(differences) > 0 {
					t.Errorf("Compare: %v, %v", differences, err)
				}
				mustParse(t, text, Reference{"c.json", common})
			}
		})
	}
	wg.Wait()
}
