package kafkaapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/identity/access"
)

func anyACL() *kmsg.DescribeACLsRequest {
	r := kmsg.NewPtrDescribeACLsRequest()
	r.Version, r.ResourceType, r.ResourcePatternType = 3, kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	r.Operation, r.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	return r
}

// lines formats ACLs, one resource per line.
func lines(r *kmsg.DescribeACLsResponse) (all []string) {
	for _, row := range r.Resources {
		var ops []string
		for _, a := range row.ACLs {
			ops = append(ops, fmt.Sprintf("%s %s %s from %s", a.PermissionType, a.Principal, a.Operation, a.Host))
		}
		all = append(all, fmt.Sprintf("%s %s %s: %s", row.ResourceType, row.ResourcePatternType, row.ResourceName,
			strings.Join(ops, ", ")))
	}
	return all
}

// TestDescribeACLs checks that callers who may list role bindings see them as ACLs.
func TestDescribeACLs(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.wire(w.token)
	if got := roundTrip[*kmsg.DescribeACLsResponse](r, anyACL()); got.ErrorCode != 0 || len(got.Resources) != 0 {
		t.Errorf("without bindings: got code %d, %q; want none", got.ErrorCode, lines(got))
	}
	for i, restriction := range []*access.Restriction{
		nil,
		{Tenant: "public", Namespace: "default", Topic: "orders"},
		{Tenant: "sales", Namespace: "eu", Topic: "or*"},
		{Tenant: "sales", Namespace: "eu"},
		{Cluster: "another"},
		{Topic: "somewhere"},
		{Tenant: "public", Subscription: "team-*"},
	} {
		w.ok(w.policy.SetBinding(access.Binding{
			Organization: organization, Name: fmt.Sprint("b", i), RoleKind: "ClusterRole", Role: "topic-consumer",
			Restriction: restriction,
			Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: fmt.Sprint("a", i)}},
		}))
	}
	w.ok(w.policy.SetBinding(access.Binding{
		Organization: organization, Name: "c", RoleKind: "ClusterRole", Role: "topic-producer", CEL: "1 == 1",
		Subjects: []access.Subject{{Kind: access.SubjectUser, Name: "conditional"}},
	}))
	topics := anyACL()
	topics.ResourceType, topics.Operation = kmsg.ACLResourceTypeTopic, kmsg.ACLOperationRead
	want := []string{
		"TOPIC LITERAL *: ALLOW User:a0@acme READ from *",
		"TOPIC LITERAL orders: ALLOW User:a1@acme READ from *",
		"TOPIC PREFIXED sales.eu.: ALLOW User:a3@acme READ from *",
		"TOPIC PREFIXED sales.eu.or: ALLOW User:a2@acme READ from *",
	}
	if got := lines(roundTrip[*kmsg.DescribeACLsResponse](r, topics)); !slices.Equal(got, want) {
		t.Errorf("topics: got %q, want %q", got, want)
	}
	match := anyACL()
	match.ResourcePatternType, match.ResourceName, match.Operation = kmsg.ACLResourcePatternTypeMatch,
		str("sales.eu.orders"), kmsg.ACLOperationRead
	match.ResourceType = kmsg.ACLResourceTypeTopic
	if got := lines(roundTrip[*kmsg.DescribeACLsResponse](r, match)); len(got) != 3 {
		t.Errorf("matching a name: got %q, want three lines", got)
	}
	groups := anyACL()
	groups.ResourceType, groups.Operation, groups.Principal = kmsg.ACLResourceTypeGroup, kmsg.ACLOperationRead,
		str("User:a6@acme")
	if got, want := fmt.Sprint(lines(roundTrip[*kmsg.DescribeACLsResponse](r, groups))),
		"[GROUP PREFIXED team-: ALLOW User:a6@acme READ from *]"; got != want {
		t.Errorf("groups: got %s, want %s", got, want)
	}
	denies := anyACL()
	denies.PermissionType = kmsg.ACLPermissionTypeDeny
	if got := lines(roundTrip[*kmsg.DescribeACLsResponse](r, denies)); len(got) > 0 {
		t.Errorf("denials: got %q, want none", got)
	}
	unknown := anyACL()
	unknown.Operation = 0
	if got := roundTrip[*kmsg.DescribeACLsResponse](r, unknown); got.ErrorCode != 42 {
		t.Errorf("unknown operation: got code %d, want 42", got.ErrorCode)
	}
	for _, role := range []string{"topic-consumer", "namespace-owner"} {
		token := w.account("x-" + role)
		w.bind("x-"+role, role)
		if got := roundTrip[*kmsg.DescribeACLsResponse](w.wire(token), anyACL()); got.ErrorCode != 31 ||
			len(got.Resources) > 0 {
			t.Errorf("%s: got code %d, %q; want 31", role, got.ErrorCode, lines(got))
		}
	}
}
