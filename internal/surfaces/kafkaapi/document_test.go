package kafkaapi_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var documented = regexp.MustCompile(`(?m)^\| (\d+) \| (\w+) \| (\d+)–(\d+) \|`)

// TestDocumentHasEveryAPI checks that docs/spec/stream.md#apis lists every advertised API with its
// name and versions.
func TestDocumentHasEveryAPI(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/spec/stream.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		name     string
		min, max int16
	}
	table := make(map[int16]row)
	for _, m := range documented.FindAllStringSubmatch(string(page), -1) {
		var n [3]int64
		for i, text := range []string{m[1], m[3], m[4]} {
			if n[i], err = strconv.ParseInt(text, 10, 16); err != nil {
				t.Fatal(err)
			}
		}
		table[int16(n[0])] = row{m[2], int16(n[1]), int16(n[2])}
	}
	w := newHarness(t)
	request := kmsg.NewPtrApiVersionsRequest()
	request.ClientSoftwareName, request.ClientSoftwareVersion = "test", "1"
	response, err := request.RequestWith(t.Context(), w.client())
	w.ok(err)
	if len(response.ApiKeys) == 0 {
		t.Fatal("server advertises no APIs")
	}
	for _, served := range response.ApiKeys {
		got, ok := table[served.ApiKey]
		if name := fmt.Sprint(kmsg.NameForKey(served.ApiKey)); !ok || !sameName(got.name, name) {
			t.Errorf("API %d, %s, is documented as %q", served.ApiKey, name, got.name)
		}
		if ok && (got.min != served.MinVersion || got.max != served.MaxVersion) {
			t.Errorf("versions of %s: documented %d–%d, advertised %d–%d", got.name, got.min, got.max,
				served.MinVersion, served.MaxVersion)
		}
	}
}

// sameName ignores case, because the library writes SASLHandshake.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }
