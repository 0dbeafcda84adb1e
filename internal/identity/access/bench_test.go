package access_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

func BenchmarkAuthorize(b *testing.B) {
	policy := access.NewPolicy()
	for i := range 10_000 {
		must(b, policy.SetBinding(binding(fmt.Sprintf("sa-%d", i), "topic-producer",
			&access.Restriction{Instance: "prod", Tenant: "public"})))
	}
	for i := range 10 {
		r := binding("many", "topic-producer", &access.Restriction{Instance: "prod", Topic: fmt.Sprintf("topic-%d", i)})
		r.Name = fmt.Sprint("many-", i)
		must(b, policy.SetBinding(r))
	}
	cel := binding("cel", "topic-producer", nil)
	cel.CEL = "srn.instance == 'prod' && srn.tenant == 'public' && srn.topic_name == 'orders'"
	must(b, policy.SetBinding(cel))
	ctx := context.Background()
	cases := map[string]*identity.Principal{
		"binding":       account("sa-777"),
		"denied of ten": account("many"),
		"cel":           account("cel"),
		"admin":         {Name: "x", Organization: "acme", ServiceAccount: "x", Admin: true},
	}
	for name, principal := range cases {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = policy.Authorize(ctx, principal, "messaging.topics.produce", everything)
			}
		})
	}
	b.Run("filter", func(b *testing.B) {
		f := policy.Filter(account("sa-777"), "messaging.topics.produce", access.Scope{Organization: "acme"})
		for b.Loop() {
			f.Allows(everything)
		}
	})
	b.Run("set one of 10000", func(b *testing.B) {
		set := binding("sa-777", "topic-producer", nil)
		for b.Loop() {
			must(b, policy.SetBinding(set))
		}
	})
}

// FuzzBinding sets bindings with arbitrary restrictions and conditions. They must not
// panic, permissions must be inherited downwards, and other organizations are denied.
func FuzzBinding(f *testing.F) {
	f.Add("orders", "srn.tenant == 'x'")
	f.Add("allPartition('orders')", "")
	f.Add("allPartition(", "has(srn.tenant)")
	f.Add("a*", "[1].all(x, x > 0)")
	f.Add("", strings.Repeat("!", 100)+"true")
	f.Add("'", "srn.topic_name.matches('((a*)*)*$')")
	f.Fuzz(func(t *testing.T, topic, cel string) {
		for _, b := range []access.Binding{
			binding("ci", "topic-owner", &access.Restriction{Topic: topic}),
			func() access.Binding { b := binding("ci", "topic-owner", nil); b.CEL = cel; return b }(),
		} {
			policy := access.NewPolicy()
			if err := policy.SetBinding(b); err != nil {
				if errs.KindOf(err) != errs.Invalid {
					t.Fatalf("kind of %v is %v, want %v", err, errs.KindOf(err), errs.Invalid)
				}
				continue
			}
			wide := allowed(t, policy, account("ci"), "messaging.topics.produce",
				access.Scope{Organization: "acme", Instance: "prod"})
			narrow := allowed(t, policy, account("ci"), "messaging.topics.produce", everything)
			if wide && !narrow {
				t.Fatalf("%q %q allows a scope, but not a scope within it", topic, cel)
			}
			foreign := everything
			foreign.Organization = "other"
			if allowed(t, policy, account("ci"), "messaging.topics.produce", foreign) {
				t.Fatal("another organization is allowed")
			}
		}
	})
}
