package schemas

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/ops/quota"
)

// TestAttackImportOverTheQuota imports schemas that are within the quota as text, but not as they are
// stored and counted: with escaped characters.
func TestAttackImportOverTheQuota(t *testing.T) {
	t.Parallel()
	doc := strings.Repeat(`"`, 2000)
	text := fmt.Sprintf(`{"type":"fixed","name":"F","size":1,"doc":%s}`, quoted(t, doc))
	for name, c := range map[string]struct {
		limit   int64
		subject []string // a version of the same schema in each
		allowed bool
	}{
		"between text and stored size": {int64(len(text)) + 100, []string{"a"}, false},
		"one schema":                   {3 * int64(len(text)), []string{"a"}, true},
		"two subjects with one schema": {3 * int64(len(text)), []string{"a", "b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := quota.Limits{quota.SchemaBytes: c.limit}
			cluster := quota.New(limits, nil).Organization("acme").Open("prod", limits)
			r, err := Open(context.WithoutCancel(t.Context()), openJournal(t), Options{Quota: cluster})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
			cluster.SetCounter(func(quota.Resource) int64 { _, bytes := r.QuotaUsage(); return bytes })
			file := `{"kind":"registry","format":"` + exportFormat + `","edition":` + fmt.Sprint(exportVersion) + "}\n"
			for _, subject := range c.subject {
				file += fmt.Sprintf(`{"kind":"version","subject":%q,"version":1,"id":7,"schema":%s}`+"\n", subject,
					quoted(t, text))
			}
			file += fmt.Sprintf(`{"kind":"end","lines":%d}`+"\n", len(c.subject)+1)
			_, err = r.Import(t.Context(), strings.NewReader(file), nil)
			if _, bytes := r.QuotaUsage(); bytes > c.limit {
				t.Errorf("registry has %d bytes, the quota is %d", bytes, c.limit)
			}
			if allowed := err == nil; allowed != c.allowed || err != nil && errs.KindOf(err) != errs.Exhausted {
				t.Errorf("got %v, want allowed: %t", err, c.allowed)
			}
		})
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	out, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
