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

// maxRules bounds the role bindings, by their subjects, that one answer is made of.
const maxRules = 10_000

// clusterResource is how the protocol calls the cluster in access lists.
const clusterResource = "kafka-cluster"

// acl is a line of the view of role bindings that describeACLs gives.
type acl struct {
	kind      kmsg.ACLResourceType
	name      string
	pattern   kmsg.ACLResourcePatternType
	principal string
	op        operation
}

// describeACLs shows what role bindings grant on the topics and groups of the
// cluster, in the words of the protocol (docs/spec/stream.md#acls). It is for
// reading: bindings are changed in the resource API.
func describeACLs(ctx context.Context, c *call, request *kmsg.DescribeACLsRequest,
	response *kmsg.DescribeACLsResponse,
) error {
	all, err := c.acls(ctx, request)
	if err != nil {
		response.ErrorCode, response.ErrorMessage = c.fail(err)
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
			Principal: line.principal, Host: "*", Operation: kmsg.ACLOperation(line.op), PermissionType: kmsg.ACLPermissionTypeAllow, //nolint:gosec // a few
		})
	}
	return nil
}

// acls returns the lines that a request asks for.
func (c *call) acls(ctx context.Context, request *kmsg.DescribeACLsRequest) ([]acl, error) {
	if request.ResourceType == 0 || request.ResourcePatternType == 0 || request.Operation == 0 ||
		request.PermissionType == 0 {
		return nil, fmt.Errorf("%w: filter has a type that is not known", errInvalid)
	}
	scope := c.session.cluster.Scope
	_, err := c.conn.server.opts.Authorizer.Authorize(ctx, c.session.who, permitListBindings, scope)
	if err != nil && errs.KindOf(err) == errs.Denied {
		c.denied(permitListBindings, scope)
		return nil, errClusterDenied
	}
	if err != nil || c.conn.server.opts.Rules == nil {
		return nil, err
	}
	rules, complete := c.conn.server.opts.Rules(scope, maxRules)
	if !complete {
		return nil, fmt.Errorf("%w: organization has too many role bindings to show them as access lists; list them "+
			"in the resource API", errInvalid)
	}
	var all []acl
	for i := range rules {
		for _, line := range c.aclsOf(&rules[i]) {
			if wantsACL(request, &line) {
				all = append(all, line)
			}
		}
	}
	return all, nil
}

// aclsOf returns what one subject of a binding may do. Conditions, and restrictions
// that the protocol has no words for, are left out.
func (c *call) aclsOf(rule *access.SubjectRule) (all []acl) {
	if rule.CEL != "" {
		return nil
	}
	principal := "User:" + rule.Subject.Name
	if rule.Subject.Kind == access.SubjectServiceAccount {
		principal = "User:" + messaging.RoleOf(rule.Subject.Name, c.session.cluster.Scope.Organization)
	}
	restrictions := rule.Restrictions
	if len(restrictions) == 0 {
		restrictions = []access.Restriction{{}}
	}
	add := func(kind kmsg.ACLResourceType, name string, pattern kmsg.ACLResourcePatternType, rows []granted) {
		for _, row := range rows {
			if slices.ContainsFunc(row.wanted,
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
		if reaches(r.Tenant, c.session.namespace.Tenant) {
			name, pattern := patternOf(r.Subscription)
			add(kmsg.ACLResourceTypeGroup, name, pattern, groupOperations)
		}
		add(kmsg.ACLResourceTypeCluster, clusterResource, kmsg.ACLResourcePatternTypeLiteral, clusterOperations)
	}
	return all
}

// clusterOperations are those that need a permission on something of the cluster.
var clusterOperations = []granted{{opIdempotentWrite, []access.Permission{permitProduce}}}

// reaches says whether a value of a restriction, if there is one, fits a name.
func reaches(value, name string) bool {
	prefix, isPrefix := strings.CutSuffix(value, "*")
	return value == "" || value == name || isPrefix && strings.HasPrefix(name, prefix)
}

// patternOf is a value of a restriction in the protocol's words.
func patternOf(value string) (name string, pattern kmsg.ACLResourcePatternType) {
	if prefix, ok := strings.CutSuffix(value, "*"); ok && prefix != "" {
		return prefix, kmsg.ACLResourcePatternTypePrefixed
	}
	return cmp.Or(value, "*"), kmsg.ACLResourcePatternTypeLiteral
}

// topicPattern is the topics of a restriction in the protocol's words: by the names
// that the caller has for them. Not all restrictions can be said.
func (c *call) topicPattern(r *access.Restriction) (name string, pattern kmsg.ACLResourcePatternType, ok bool) {
	exact := func(value string) bool { return value != "" && !strings.HasSuffix(value, "*") }
	topic := r.Topic
	if inner, is := strings.CutPrefix(topic, "allPartition("); is {
		topic = strings.Trim(inner, "'\")")
	}
	const literal, prefixed = kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLResourcePatternTypePrefixed
	switch {
	case r.Subscription != "":
		return "", 0, false // it is for a group, not for the topic
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

// wantsACL says whether a line fits the filter of a request.
func wantsACL(request *kmsg.DescribeACLsRequest, line *acl) bool {
	fits := func(filter *string, value string) bool { return filter == nil || *filter == value }
	switch {
	case request.ResourceType != kmsg.ACLResourceTypeAny && request.ResourceType != line.kind:
		return false
	case request.Operation != kmsg.ACLOperationAny && request.Operation != kmsg.ACLOperation(line.op): //nolint:gosec // a few
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
