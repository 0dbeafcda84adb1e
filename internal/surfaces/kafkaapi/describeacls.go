package kafkaapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// maxRules bounds the rules, by subject of a role binding, that one response is derived from.
const maxRules = 10_000

// clusterResource is Kafka's name of the cluster resource in ACLs.
const clusterResource = "kafka-cluster"

// acl is one ACL that is derived from a role binding.
type acl struct {
	kind      kmsg.ACLResourceType
	name      string
	pattern   kmsg.ACLResourcePatternType
	principal string
	op        operation
}

// describeACLs returns the rules of role bindings on the topics and groups of the cluster as Kafka
// ACLs (docs/spec/stream.md#acls). The view is read-only: role bindings are changed in the resource
// API.
func describeACLs(ctx context.Context, c *call, request *kmsg.DescribeACLsRequest,
	response *kmsg.DescribeACLsResponse,
) error {
	all, err := c.acls(ctx, request)
	if err != nil {
		response.ErrorCode, response.ErrorMessage = c.errorResponse(err)
		return nil
	}
	slices.SortFunc(all, func(a, b acl) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.pattern, b.pattern),
			cmp.Compare(a.principal, b.principal), cmp.Compare(a.op, b.op))
	})
	all = slices.Compact(all)
	for i, line := range all {
		if i == 0 || line.kind != all[i-1].kind || line.name != all[i-1].name || line.pattern != all[i-1].pattern {
			row := kmsg.NewDescribeACLsResponseResource()
			row.ResourceType, row.ResourceName, row.ResourcePatternType = line.kind, line.name, line.pattern
			response.Resources = append(response.Resources, row)
		}
		row := &response.Resources[len(response.Resources)-1]
		row.ACLs = append(row.ACLs, kmsg.DescribeACLsResponseResourceACL{
			Principal: line.principal, Host: "*", PermissionType: kmsg.ACLPermissionTypeAllow,
			Operation: kmsg.ACLOperation(line.op), //nolint:gosec // small numbers
		})
	}
	return nil
}

// acls returns the ACLs that match a request.
func (c *call) acls(ctx context.Context, request *kmsg.DescribeACLsRequest) ([]acl, error) {
	if request.ResourceType == 0 || request.ResourcePatternType == 0 || request.Operation == 0 ||
		request.PermissionType == 0 {
		return nil, fmt.Errorf("%w: filter has an unknown type", errInvalid)
	}
	scope := c.session.cluster.Scope
	_, err := c.conn.server.opts.Authorizer.Authorize(ctx, c.session.principal, permitListBindings, scope)
	if err != nil && errs.KindOf(err) == errs.Denied {
		c.auditDenied(permitListBindings, scope)
		return nil, errClusterDenied
	}
	if err != nil {
		return nil, err
	}
	rules, complete := c.conn.server.opts.Policy.RulesWithin(scope, maxRules)
	if !complete {
		return nil, fmt.Errorf("%w: organization has too many role bindings to return them as ACLs; list them "+
			"in the resource API", errInvalid)
	}
	var all []acl
	for i := range rules {
		for _, line := range c.aclsOf(&rules[i]) {
			if matchesFilter(request, &line) {
				all = append(all, line)
			}
		}
	}
	return all, nil
}

// aclsOf returns the ACLs of one subject of a role binding. It omits rules with conditions or with
// restrictions that ACLs cannot express.
func (c *call) aclsOf(rule *access.SubjectRule) (all []acl) {
	if rule.CEL != "" {
		return nil
	}
	principal := "User:" + rule.Subject.Name
	if rule.Subject.Kind == access.SubjectServiceAccount {
		principal = "User:" + messaging.FormatRole(rule.Subject.Name, c.session.cluster.Scope.Organization)
	}
	restrictions := rule.Restrictions
	if len(restrictions) == 0 {
		restrictions = []access.Restriction{{}}
	}
	add := func(kind kmsg.ACLResourceType, name string, pattern kmsg.ACLResourcePatternType, rows []operationRule) {
		for _, row := range rows {
			if slices.ContainsFunc(row.anyOf,
				func(p access.Permission) bool { return slices.Contains(rule.Permissions, p) }) {
				all = append(all, acl{kind, name, pattern, principal, row.op})
			}
		}
	}
	for i := range restrictions {
		r := &restrictions[i]
		if r.Subject != "" || r.ServiceAccount != "" || r.APIKey != "" || r.Secret != "" {
			continue
		}
		if name, pattern, ok := c.topicPattern(r); ok {
			add(kmsg.ACLResourceTypeTopic, name, pattern, topicOperations)
		}
		// A restriction to topics allows the groups that read only these, which ACLs cannot express.
		if restrictionAllows(r.Tenant, c.session.namespace.Tenant) && r.Namespace == "" && r.Topic == "" {
			name, pattern := patternOf(r.Subscription)
			add(kmsg.ACLResourceTypeGroup, name, pattern, groupOperations)
		}
		add(kmsg.ACLResourceTypeCluster, clusterResource, kmsg.ACLResourcePatternTypeLiteral, clusterOperations)
	}
	return all
}

// clusterOperations are the operations that need a permission on something in the cluster.
var clusterOperations = []operationRule{{opIdempotentWrite, []access.Permission{permitProduce}}}

// restrictionAllows reports whether a restriction allows a name. An empty restriction allows every name.
func restrictionAllows(value, name string) bool {
	prefix, isPrefix := strings.CutSuffix(value, "*")
	return value == "" || value == name || isPrefix && strings.HasPrefix(name, prefix)
}

// patternOf converts a restriction to an ACL pattern.
func patternOf(value string) (name string, pattern kmsg.ACLResourcePatternType) {
	if prefix, ok := strings.CutSuffix(value, "*"); ok && prefix != "" {
		return prefix, kmsg.ACLResourcePatternTypePrefixed
	}
	return cmp.Or(value, "*"), kmsg.ACLResourcePatternTypeLiteral
}

// topicPattern converts the topics of a restriction to an ACL pattern, with the topic names that
// the caller uses. ok is false for restrictions that ACLs cannot express.
func (c *call) topicPattern(r *access.Restriction) (name string, pattern kmsg.ACLResourcePatternType, ok bool) {
	exact := func(value string) bool { return value != "" && !strings.HasSuffix(value, "*") }
	topic := r.Topic
	if inner, is := strings.CutPrefix(topic, "allPartition("); is {
		topic = strings.Trim(inner, "'\")")
	}
	const literal, prefixed = kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLResourcePatternTypePrefixed
	switch {
	case r.Subscription != "":
		return "", 0, false // the restriction is about a group, not about the topic
	case r.Tenant == "" && r.Namespace == "" && topic == "":
		return "*", literal, true
	case exact(r.Tenant) && exact(r.Namespace) && topic == "":
		return r.Tenant + "." + r.Namespace + ".", prefixed, true
	case exact(r.Tenant) && exact(r.Namespace):
		name, pattern = patternOf(topic)
		if r.Tenant != c.session.namespace.Tenant || r.Namespace != c.session.namespace.Name {
			name = r.Tenant + "." + r.Namespace + "." + strings.TrimPrefix(name, "*")
			if topic == "*" {
				pattern = prefixed
			}
		}
		return name, pattern, true
	case exact(r.Tenant) && topic == "":
		return r.Tenant + "." + strings.TrimSuffix(r.Namespace, "*"), prefixed, true
	case r.Namespace == "" && topic == "":
		name, pattern = patternOf(r.Tenant)
		return name, pattern, true
	}
	return "", 0, false
}

// matchesFilter reports whether an ACL matches the filter of a request.
func matchesFilter(request *kmsg.DescribeACLsRequest, line *acl) bool {
	fits := func(filter *string, value string) bool { return filter == nil || *filter == value }
	switch {
	case request.ResourceType != kmsg.ACLResourceTypeAny && request.ResourceType != line.kind:
		return false
	case request.Operation != kmsg.ACLOperationAny &&
		request.Operation != kmsg.ACLOperation(line.op): //nolint:gosec // small numbers
		return false
	case request.PermissionType != kmsg.ACLPermissionTypeAny && request.PermissionType != kmsg.ACLPermissionTypeAllow:
		return false
	case !fits(request.Principal, line.principal) || !fits(request.Host, "*"):
		return false
	}
	switch request.ResourcePatternType {
	case kmsg.ACLResourcePatternTypeAny:
		return fits(request.ResourceName, line.name)
	case kmsg.ACLResourcePatternTypeMatch:
		return request.ResourceName == nil || *request.ResourceName == line.name || line.name == "*" ||
			line.pattern == kmsg.ACLResourcePatternTypePrefixed && strings.HasPrefix(*request.ResourceName, line.name)
	}
	return request.ResourcePatternType == line.pattern && fits(request.ResourceName, line.name)
}
