package access_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// loopOver is an expression with a loop over n elements that compares with no
// name at all.
func loopOver(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "].all(x, x < 2) && srn.tenant == 'none'"
}

func conditional(name, cel string) access.Binding {
	return access.Binding{
		Organization: "acme", Name: name, RoleKind: "ClusterRole", Role: "topic-consumer", CEL: cel,
		Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: "mallory"}},
	}
}

var mallory = &identity.Principal{Name: "mallory@acme", Organization: "acme", ServiceAccount: "mallory"}

// TestAttackCostlyConditions makes bindings as costly as they can be made.
func TestAttackCostlyConditions(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for _, cel := range []string{
		loopOver(1200), loopOver(400),
		"srn.topic_name.matches('" + strings.Repeat("(a|b|c)*", 100) + "')",
	} {
		attempts++
		b := conditional("costly", cel)
		if err := b.Validate(); err == nil || !strings.Contains(err.Error(), "units to evaluate") {
			successes++
			t.Errorf("an expression of %d bytes: error %v, want that it costs too much", len(cel), err)
		}
	}
	for _, cel := range []string{
		"srn.tenant == 'public' && srn.topic_name.startsWith('orders-')",
		"srn.topic_name.matches('^orders-[a-z]+-[0-9]{4}$')",
		"srn.namespace in ['" + strings.Join(strings.Split(strings.Repeat("name ", 200)+"last", " "), "','") + "']",
	} {
		b := conditional("fine", cel)
		if err := b.Validate(); err != nil {
			t.Errorf("%.60s: error %v, want none", cel, err)
		}
	}
	tally.Attack(t, "store a costly condition", attempts, successes)
}

func TestConditionsPerSubjectAreBounded(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	refused := ""
	for i := range 300 {
		b := conditional(fmt.Sprint("b", i), "srn.tenant == 'x'")
		if err := policy.MayAdd(&b); err != nil {
			refused = fmt.Sprintf("%d: %v", i, err)
			break
		}
		if err := policy.SetBinding(b); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(refused, "50: exceeded quota: ServiceAccount mallory has 50") {
		t.Errorf("the refusal is %q, want one of the binding after 50, with the figures", refused)
	}
	again := conditional("b0", "srn.tenant == 'y'")
	if err := policy.MayAdd(&again); err != nil {
		t.Errorf("changing a binding that is there: %v, want no error", err)
	}
}

// TestDecisionsAreBounded stores more conditions than can be made now, as an
// older version may have, and asks.
func TestDecisionsAreBounded(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	for i := range 300 {
		if err := policy.SetBinding(conditional(fmt.Sprint("b", i), loopOver(150))); err != nil {
			t.Fatal(err)
		}
	}
	scope := access.Scope{Organization: "acme", Tenant: "public", Namespace: "default", Topic: "t"}
	ask := func(ctx context.Context) string {
		_, err := policy.Authorize(ctx, mallory, "messaging.topics.consume", scope)
		if err == nil {
			t.Fatal("a decision without a matching condition is allowed, want a denial")
		}
		return err.Error()
	}
	if got := ask(t.Context()); !strings.Contains(got, "cost too much") {
		t.Errorf("the denial is %q, want that the conditions cost too much", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := ask(ended); !strings.Contains(got, "ended") {
		t.Errorf("the denial after the request's end is %q, want that it ended", got)
	}
	// What costs nothing is decided first.
	plain := conditional("plain", "")
	if err := policy.SetBinding(plain); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Authorize(t.Context(), mallory, "messaging.topics.consume", scope); err != nil {
		t.Errorf("a binding without a condition: %v, want it to allow", err)
	}
}
