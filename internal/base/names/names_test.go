package names_test

import (
	"errors"
	"strings"
	"testing"

	"freshet/internal/base/names"
)

func TestCheckTenant(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		ok   bool
	}{
		{"public", true},
		{"a-b=c:d.e_F9", true},
		{"", false},
		{"a/b", false},
		{"a b", false},
		{"ä", false},
		{".", false},
		{"..", false},
		{"...", true},
		{"persistent", false},
		{"non-persistent", false},
		{strings.Repeat("a", 255), true},
		{strings.Repeat("a", 256), false},
	} {
		err := names.CheckTenant(tc.name)
		if (err == nil) != tc.ok {
			t.Errorf("CheckTenant(%q) = %v, want ok %v", tc.name, err, tc.ok)
		}
		if err != nil && !errors.Is(err, names.ErrName) {
			t.Errorf("CheckTenant(%q) = %v, want an ErrName", tc.name, err)
		}
	}
	if err := names.CheckSubscription("persistent"); err != nil {
		t.Errorf("CheckSubscription(persistent) = %v, want no error", err)
	}
}

func TestNewTopic(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, local string
		ok          bool
	}{
		{"plain", "orders", true},
		{"slash", "a/b", true},
		{"inner blank", "a b", true},
		{"unicode", "größe", true},
		{"percent", "a%2Fb", true},
		{"empty", "", false},
		{"blank", "  ", false},
		{"leading blank", " a", false},
		{"trailing newline", "a\n", false},
		{"control", "a\x00b", false},
		{"c1 control", "a\u0085b", false},
		{"not utf-8", "a\xff", false},
		{"dot dot", "..", false},
		{"longest", strings.Repeat("x", 512), true},
		{"too long", strings.Repeat("x", 513), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := names.NewTopic("t", "n", tc.local); (err == nil) != tc.ok {
				t.Errorf("NewTopic(%q) = %v, want ok %v", tc.local, err, tc.ok)
			}
		})
	}
}

func TestParseTopic(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"orders", "persistent://public/default/orders"},
		{"t/n/orders", "persistent://t/n/orders"},
		{"persistent://t/n/orders", "persistent://t/n/orders"},
		{"non-persistent://t/n/orders", ""},
		{"persistent://t/c/n/orders", ""},
		{"persistent://orders", ""},
		{"t/orders", ""},
		{"t/n/a/b", ""},
		{"", ""},
	} {
		topic, err := names.ParseTopic(tc.in)
		if tc.want == "" {
			if err == nil {
				t.Errorf("ParseTopic(%q) = %v, want an error", tc.in, topic)
			}
			continue
		}
		if err != nil || topic.String() != tc.want {
			t.Errorf("ParseTopic(%q) = %v, %v; want %s", tc.in, topic, err, tc.want)
		}
	}
}

func TestPartition(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		local, parent string
		index         int32
		ok            bool
	}{
		{"orders-partition-0", "orders", 0, true},
		{"orders-partition-17", "orders", 17, true},
		{"a-partition-1-partition-2", "a-partition-1", 2, true},
		{"orders-partition-", "", 0, false},
		{"orders-partition-01", "", 0, false},
		{"orders-partition-+1", "", 0, false},
		{"orders-partition--1", "", 0, false},
		{"orders-partition-2147483648", "", 0, false},
		{"-partition-1", "", 0, false},
		{"orders", "", 0, false},
	} {
		topic := names.Topic{Namespace: names.PublicDefault, Local: tc.local}
		parent, index, ok := topic.Partition()
		if ok != tc.ok {
			t.Errorf("%s: ok = %v, want %v", tc.local, ok, tc.ok)
			continue
		}
		if ok && (parent.Local != tc.parent || index != tc.index || parent.WithPartition(index) != topic) {
			t.Errorf("%s: got parent %s and index %d, want %s and %d", tc.local, parent.Local, index, tc.parent,
				tc.index)
		}
	}
}

func TestKafkaName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"orders":              "orders",
		"acme/sales/orders":   "acme.sales.orders",
		"public/other/orders": "public.other.orders",
	} {
		topic, err := names.ParseTopic(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := topic.KafkaName(); got != want {
			t.Errorf("KafkaName(%s) = %s, want %s", in, got, want)
		}
	}
	if (names.Topic{Local: "orders"}).Internal() || !(names.Topic{Local: "__offsets"}).Internal() {
		t.Error("Internal: got a wrong result, want true only for a name with two leading underscores")
	}
}

func TestIsKafkaTopic(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"orders": true, "a.B_c-9": true, "...": true, strings.Repeat("x", 249): true,
		"": false, ".": false, "..": false, strings.Repeat("x", 250): false,
		"two words": false, "größe": false, "a/b": false, "a:b": false, "a\x00": false,
	} {
		if got := names.IsKafkaTopic(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

func TestSubjectTopic(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ subject, want string }{
		{"orders-value", "persistent://public/default/orders-value"},
		{"acme.sales.orders", "persistent://acme/sales/orders"},
		{"a.b", "persistent://public/default/a.b"},
		{"a.b.c.d", "persistent://public/default/a.b.c.d"},
		{"a..b", "persistent://public/default/a..b"},
		{".a.b", "persistent://public/default/.a.b"},
		{"persistent.a.b", "persistent://public/default/persistent.a.b"},
		{"persistent://acme/sales/orders-value", "persistent://acme/sales/orders-value"},
		{"persistent://acme/sales", ""},
		{"persistent://acme//orders", ""},
		{"persistent://a b/sales/orders", ""},
		{"non-persistent://acme/sales/orders", ""},
		{"a b", ""},
		{"a/b", ""},
		{"", ""},
		{strings.Repeat("s", 249), "persistent://public/default/" + strings.Repeat("s", 249)},
		{strings.Repeat("s", 250), ""},
	} {
		topic, err := names.SubjectTopic(tc.subject)
		if tc.want == "" {
			if !errors.Is(err, names.ErrName) {
				t.Errorf("SubjectTopic(%q) = %v, %v; want an ErrName", tc.subject, topic, err)
			}
			continue
		}
		if err != nil || topic.String() != tc.want {
			t.Errorf("SubjectTopic(%q) = %v, %v; want %s", tc.subject, topic, err, tc.want)
		}
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key         string
		four, three int32
	}{
		{"a", 2, 2},
		{"key-1", 0, 1},
		{"order-42", 2, 2},
	} {
		if got := names.Route(tc.key, 4); got != tc.four {
			t.Errorf("Route(%q, 4) = %d, want %d", tc.key, got, tc.four)
		}
		if got := names.Route(tc.key, 3); got != tc.three {
			t.Errorf("Route(%q, 3) = %d, want %d", tc.key, got, tc.three)
		}
	}
	if got := names.Route("a", 1<<30); got != 1009084850 {
		t.Errorf("Route(a, 1<<30) = %d, want 1009084850", got)
	}
	if names.Route("anything", 1) != 0 || names.Route("anything", 0) != 0 {
		t.Error("Route with one partition: got another partition, want 0")
	}
}

func FuzzTopic(f *testing.F) {
	for _, s := range []string{"orders", "t/n/x", "persistent://t/n/x-partition-3", "a\x00", "persistent://a/b/c/d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		topic, err := names.ParseTopic(s)
		if err != nil {
			return
		}
		again, err := names.ParseTopic(topic.String())
		if err != nil || again != topic {
			t.Fatalf("%q is formatted as %q, which parses as %v, %v", s, topic, again, err)
		}
		if parent, index, ok := topic.Partition(); ok && parent.WithPartition(index) != topic {
			t.Fatalf("%q: partition %d of %v is %v, want %v", s, index, parent, parent.WithPartition(index), topic)
		}
		if n := names.Route(s, 7); n < 0 || n >= 7 {
			t.Fatalf("Route(%q, 7) = %d, want 0 to 6", s, n)
		}
	})
}

func FuzzSubject(f *testing.F) {
	for _, s := range []string{"orders", "a.b.c", "persistent://t/n/x", "..."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if topic, err := names.SubjectTopic(s); err == nil && (topic.Local == "" || topic.Namespace.Tenant == "") {
			t.Fatalf("SubjectTopic(%q) = %v, want a tenant and a local name", s, topic)
		}
	})
}

// TestListNamesAreDistinct checks that no two topics have the same name in the topic list, and
// that ParseListName parses these names.
func TestListNamesAreDistinct(t *testing.T) {
	t.Parallel()
	ns := func(tenant, name string) names.Namespace { return names.Namespace{Tenant: tenant, Name: name} }
	seen := map[string]names.Topic{}
	for topic, want := range map[names.Topic]string{
		{Namespace: names.PublicDefault, Local: "orders"}:                "orders",
		{Namespace: names.PublicDefault, Local: "orders.v1"}:             "orders.v1",
		{Namespace: names.PublicDefault, Local: "sales.web.clash"}:       "public.default.sales.web.clash",
		{Namespace: ns("sales", "web"), Local: "clash"}:                  "sales.web.clash",
		{Namespace: ns("sales", "web"), Local: "a.b"}:                    "sales.web.a.b",
		{Namespace: ns("sales.web", "clash"), Local: "x"}:                "persistent://sales.web/clash/x",
		{Namespace: ns("sales", "web.clash"), Local: "x"}:                "persistent://sales/web.clash/x",
		{Namespace: ns("sales", "web"), Local: "clash.x"}:                "sales.web.clash.x",
		{Namespace: names.PublicDefault, Local: "a/b"}:                   "persistent://public/default/a/b",
		{Namespace: names.PublicDefault, Local: "public.default.orders"}: "public.default.public.default.orders",
		{Namespace: names.PublicDefault, Local: "..x"}:                   "..x",
		{Namespace: ns("public", "other"), Local: "orders"}:              "public.other.orders",
	} {
		got := topic.ListName()
		if got != want {
			t.Errorf("ListName(%s) = %s, want %s", topic, got, want)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("ListName of %s and %s: got %s for both, want distinct names", topic, other, got)
		}
		seen[got] = topic
		if back, err := names.ParseListName(got); topic.Local != "a/b" && (err != nil || back != topic) {
			t.Errorf("ParseListName(%s) = %s, %v, want %s", got, back, err, topic)
		}
	}
}
