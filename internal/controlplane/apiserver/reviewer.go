package apiserver

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	reviewv1alpha1 "freshet/api/authorization/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// reviewer evaluates reviews with the same policy as real calls.
type reviewer struct{ policy policy }

func userReviewStatus(principal *identity.Principal) reviewv1alpha1.SelfSubjectUserReviewStatus {
	user := reviewv1alpha1.UserRef{
		APIGroup: v1alpha1.GroupName, Kind: access.SubjectServiceAccount, Name: principal.ServiceAccount,
		Namespace: principal.Organization, Organization: principal.Organization,
	}
	if principal.ServiceAccount == "" {
		user.Kind, user.Name = access.SubjectUser, principal.User
	}
	status := reviewv1alpha1.SelfSubjectUserReviewStatus{
		Users:               []reviewv1alpha1.UserRef{user},
		Principal:           principal.Name,
		SystemAdministrator: principal.System,
		Administrator:       principal.Admin || principal.System,
		APIKey:              principal.KeyName,
	}
	if !principal.ExpiresAt.IsZero() {
		end := metav1.NewTime(principal.ExpiresAt)
		status.ExpirationTime = &end
	}
	return status
}

func userInfo(principal *identity.Principal) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{
		Username: principal.Name,
		UID:      principal.UID,
		Groups:   []string{user.AllAuthenticated, "freshet:organization:" + principal.Organization},
		Extra:    map[string]authenticationv1.ExtraValue{},
	}
	if principal.Admin || principal.System {
		info.Groups = append(info.Groups, "freshet:administrators:"+principal.Organization)
	}
	if principal.System {
		info.Groups = append(info.Groups, "freshet:system-administrators")
	}
	if principal.KeyName != "" {
		info.Extra["cloud.vendor.io/apikey"] = authenticationv1.ExtraValue{principal.KeyName}
	}
	return info
}

func (r *reviewer) rules(principal *identity.Principal,
	spec reviewv1alpha1.SelfSubjectRulesReviewSpec,
) reviewv1alpha1.SelfSubjectRulesReviewStatus {
	if spec.Namespace == "" {
		spec.Namespace = principal.Organization
	}
	scope := access.Scope{Organization: spec.Namespace, Instance: spec.Instance, Cluster: spec.Cluster}
	status := reviewv1alpha1.SelfSubjectRulesReviewStatus{
		ResourceRules: []reviewv1alpha1.ResourceRule{}, Rules: []reviewv1alpha1.PermissionRule{},
	}
	for _, rule := range r.policy.authorizer.Rules(principal, scope) {
		status.Rules = append(status.Rules, permissionRule(rule))
		verbs, whole := r.resourceRules(rule)
		for _, v := range verbs {
			status.ResourceRules = append(status.ResourceRules, reviewv1alpha1.ResourceRule{
				Verbs: v.verbs, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{v.resource},
				ResourceNames: v.names,
			})
		}
		status.Incomplete = status.Incomplete || !whole
	}
	if status.Incomplete {
		status.EvaluationError = incompleteRules
	}
	return status
}

const incompleteRules = "some rules have restrictions or conditions that cannot be expressed as resource names"

func permissionRule(rule access.Rule) reviewv1alpha1.PermissionRule {
	out := reviewv1alpha1.PermissionRule{By: string(rule.By), Role: rule.Role, Binding: rule.Binding, CEL: rule.CEL}
	for _, p := range rule.Permissions {
		out.Permissions = append(out.Permissions, string(p))
	}
	for _, restriction := range rule.Restrictions {
		out.Restrictions = append(out.Restrictions, reviewv1alpha1.Restriction(restriction))
	}
	return out
}

func (r *reviewer) kubernetesRules(principal *identity.Principal,
	namespace string,
) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{},
		NonResourceRules: []authorizationv1.NonResourceRule{{
			Verbs: []string{"get"},
			NonResourceURLs: []string{
				"/apis", "/apis/*", "/openapi/*", "/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz",
				"/readyz/*", "/version",
			},
		}},
	}
	status.ResourceRules = append(status.ResourceRules,
		authorizationv1.ResourceRule{
			Verbs: eventVerbs, APIGroups: []string{""}, Resources: []string{"namespaces"},
			ResourceNames: []string{principal.Organization},
		},
		authorizationv1.ResourceRule{
			Verbs: eventVerbs, APIGroups: []string{"", eventsv1.GroupName},
			Resources: []string{"events"},
		},
		authorizationv1.ResourceRule{Verbs: quotaVerbs, APIGroups: []string{""}, Resources: []string{"resourcequotas"}})
	for _, kind := range reviewKinds {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: []string{"create"}, APIGroups: []string{kind.version.Group}, Resources: []string{kind.plural},
		})
	}
	for _, rule := range r.policy.authorizer.Rules(principal, access.Scope{Organization: namespace}) {
		verbs, whole := r.resourceRules(rule)
		for _, v := range verbs {
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: v.verbs, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{v.resource},
				ResourceNames: v.names,
			})
		}
		status.Incomplete = status.Incomplete || !whole
	}
	if status.Incomplete {
		status.EvaluationError = incompleteRules
	}
	return status
}

// resourceVerbs contains the allowed verbs on one resource of the API.
type resourceVerbs struct {
	resource string
	verbs    []string
	names    []string
}

// apiVerbs maps the verb of a permission to the verbs of the API.
var apiVerbs = map[string][]string{
	"describe": {"get"}, "list": {"list", "watch"}, "create": {"create"},
	"update": {"update", "patch"}, "delete": {"delete", "deletecollection"},
}

// resourceRules converts a rule to verbs on resources. whole is false if its restrictions cannot be
// expressed as names.
func (r *reviewer) resourceRules(rule access.Rule) (list []resourceVerbs, whole bool) {
	byResource := map[string]int{}
	whole = true
	for _, p := range rule.Permissions {
		parts := strings.Split(string(p), ".")
		verbs, known := apiVerbs[parts[2]]
		if parts[0] != "cloud" || !known || !r.policy.kinds.serves(parts[1]) {
			continue
		}
		i, ok := byResource[parts[1]]
		if !ok {
			names, exact := r.policy.kinds.namesOf(rule, parts[1])
			whole = whole && exact
			i = len(list)
			byResource[parts[1]] = i
			list = append(list, resourceVerbs{resource: parts[1], names: names})
		}
		list[i].verbs = append(list[i].verbs, verbs...)
	}
	return list, whole
}

// namesOf converts restrictions to names of one resource. exact is false if that is not possible.
func (k kinds) namesOf(rule access.Rule, resource string) (names []string, exact bool) {
	if rule.CEL != "" {
		return nil, false
	}
	for _, r := range rule.Restrictions {
		r.Organization = ""
		var name string
		if field := k.restrictedName(resource, &r); field != nil {
			name, *field = *field, ""
		}
		switch {
		case r != (access.Restriction{}) || strings.ContainsAny(name, "*("):
			return nil, false
		case name == "":
			return nil, true // no restriction is left
		}
		names = append(names, name)
	}
	return names, true
}

// restrictedName returns the field of a restriction that contains the names of a kind's objects; nil if
// there is none.
func (k kinds) restrictedName(resource string, r *access.Restriction) *string {
	definition := k.byResource[resource]
	if definition == nil {
		return nil
	}
	const name = "name"
	switch scope := definition.ScopeOfName("", name); name {
	case scope.Instance:
		return &r.Instance
	case scope.Cluster:
		return &r.Cluster
	case scope.ServiceAccount:
		return &r.ServiceAccount
	case scope.APIKey:
		return &r.APIKey
	}
	return nil
}

// access decides whether one call would be allowed.
func (r *reviewer) access(ctx context.Context, principal *identity.Principal,
	review *authorizationv1.SelfSubjectAccessReview,
) error {
	at, path := review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes
	if (at == nil) == (path == nil) {
		return apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview").GroupKind(),
			"", field.ErrorList{
				field.Invalid(field.NewPath("spec"), field.OmitValueType{},
					"exactly one of resourceAttributes and nonResourceAttributes must be set"),
			})
	}
	// The decisions about the reviewed call must not appear in the audit record of the review.
	ctx = context.WithValue(ctx, auditNotesKey{}, &auditNotes{})
	record := authorizer.AttributesRecord{User: caller.Caller{Principal: principal}}
	if path != nil {
		record.Path, record.Verb = path.Path, path.Verb
	} else {
		if slices.Contains([]string{at.Verb, at.Resource, at.Group}, "*") {
			review.Status.Allowed, review.Status.Reason = r.allowsEverything(principal, at.Namespace)
			return nil
		}
		record.ResourceRequest = true
		record.Verb, record.Namespace, record.Name = at.Verb, at.Namespace, at.Name
		record.APIGroup, record.APIVersion, record.Resource, record.Subresource = at.Group, at.Version, at.Resource,
			at.Subresource
	}
	decision, reason, err := r.policy.Authorize(ctx, record)
	if err != nil {
		return err
	}
	review.Status.Allowed, review.Status.Reason = decision == authorizer.DecisionAllow, reason
	if review.Status.Allowed && at != nil {
		review.Status.Allowed, review.Status.Reason = r.authorizeObject(ctx, principal, at)
	}
	return nil
}

// authorizeObject authorizes one object, whose scope the path alone may not determine.
func (r *reviewer) authorizeObject(ctx context.Context, principal *identity.Principal,
	at *authorizationv1.ResourceAttributes,
) (allowed bool, reason string) {
	kind, ok := r.policy.kinds.byResource[at.Resource]
	if !ok || at.Group != v1alpha1.GroupName || at.Name == "" || kind.Info().ClusterScoped {
		return true, ""
	}
	permission, _ := access.ForVerb(at.Resource, at.Subresource, at.Verb)
	_, err := r.policy.authorizer.Authorize(ctx, principal, permission, kind.Scope(ctx, at.Namespace, at.Name))
	if err != nil {
		return false, err.Error()
	}
	return true, ""
}

// allowsEverything decides reviews with a wildcard.
func (r *reviewer) allowsEverything(principal *identity.Principal, namespace string) (allowed bool, reason string) {
	switch {
	case principal.System, principal.Admin && principal.Organization == namespace && namespace != "":
		return true, ""
	}
	for _, rule := range r.policy.authorizer.Rules(principal, access.Scope{Organization: namespace}) {
		if len(rule.Permissions) == len(access.Permissions()) && len(rule.Restrictions) == 0 && rule.CEL == "" {
			return true, ""
		}
	}
	return false, principal.Name + " does not have all permissions in this organization"
}
