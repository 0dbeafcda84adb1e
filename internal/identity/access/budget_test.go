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

// loopOver returns an expression with a loop over n elements.
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

// TestAttackCostlyConditions checks that a binding with a costly condition is rejected.
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
			t.Errorf("expression of %d bytes: error %v, want one about its cost", len(cel), err)
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
		t.Errorf("first error is %q, want one for the binding after 50, with the figures", refused)
	}
	again := conditional("b0", "srn.tenant == 'y'")
	if err := policy.MayAdd(&again); err != nil {
		t.Errorf("changing an existing binding: %v, want no error", err)
	}
}

// TestDecisionsAreBounded checks the budget of a decision with more conditions than
// MayAdd allows, which an older version may have stored.
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
			t.Fatal("Authorize allows a call without a matching condition, want a denial")
		}
		return err.Error()
	}
	if got := ask(t.Context()); !strings.Contains(got, "cost too much") {
		t.Errorf("denial is %q, want one about the cost of conditions", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := ask(ended); !strings.Contains(got, "ended") {
		t.Errorf("denial of a canceled request is %q, want one that it ended", got)
	}
	// Bindings without a condition are checked first.
	plain := conditional("plain", "")
	if err := policy.SetBinding(plain); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Authorize(t.Context(), mallory, "messaging.topics.consume", scope); err != nil {
		t.Errorf("binding without a condition: %v, want the call to be allowed", err)
	}
}
