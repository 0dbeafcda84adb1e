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

func whoIs(who *identity.Principal) reviewv1alpha1.SelfSubjectUserReviewStatus {
	user := reviewv1alpha1.UserRef{
		APIGroup: v1alpha1.GroupName, Kind: "ServiceAccount", Name: who.ServiceAccount,
		Namespace: who.Organization, Organization: who.Organization,
	}
	if who.ServiceAccount == "" {
		user.Kind, user.Name = "User", who.User
	}
	status := reviewv1alpha1.SelfSubjectUserReviewStatus{
		Users:               []reviewv1alpha1.UserRef{user},
		Principal:           who.Name,
		SystemAdministrator: who.System,
		Administrator:       who.Admin || who.System,
		APIKey:              who.KeyName,
	}
	if !who.ExpiresAt.IsZero() {
		end := metav1.NewTime(who.ExpiresAt)
		status.ExpirationTime = &end
	}
	return status
}

func userInfo(who *identity.Principal) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{
		Username: who.Name,
		UID:      who.UID,
		Groups:   []string{user.AllAuthenticated, "freshet:organization:" + who.Organization},
		Extra:    map[string]authenticationv1.ExtraValue{},
	}
	if who.Admin || who.System {
		info.Groups = append(info.Groups, "freshet:administrators:"+who.Organization)
	}
	if who.System {
		info.Groups = append(info.Groups, "freshet:system-administrators")
	}
	if who.KeyName != "" {
		info.Extra["cloud.vendor.io/apikey"] = authenticationv1.ExtraValue{who.KeyName}
	}
	return info
}

func (r *reviewer) rules(who *identity.Principal,
	spec reviewv1alpha1.SelfSubjectRulesReviewSpec,
) reviewv1alpha1.SelfSubjectRulesReviewStatus {
	if spec.Namespace == "" {
		spec.Namespace = who.Organization
	}
	scope := access.Scope{Organization: spec.Namespace, Instance: spec.Instance, Cluster: spec.Cluster}
	status := reviewv1alpha1.SelfSubjectRulesReviewStatus{
		ResourceRules: []reviewv1alpha1.ResourceRule{}, Rules: []reviewv1alpha1.PermissionRule{},
	}
	for _, rule := range r.policy.authorizer.Rules(who, scope) {
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
		status.EvaluationError = incomplete
	}
	return status
}

const incomplete = "some rules have restrictions or conditions that cannot be expressed as resource names"

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

func (r *reviewer) kubernetesRules(who *identity.Principal, namespace string) authorizationv1.SubjectRulesReviewStatus {
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
			ResourceNames: []string{who.Organization},
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
	for _, rule := range r.policy.authorizer.Rules(who, access.Scope{Organization: namespace}) {
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
		status.EvaluationError = incomplete
	}
	return status
}

// verbsOn contains the allowed verbs on one resource of the API.
type verbsOn struct {
	resource string
	verbs    []string
	names    []string
}

// machineVerbs maps the verb of a permission to the verbs of the API.
var machineVerbs = map[string][]string{
	"describe": {"get"}, "list": {"list", "watch"}, "create": {"create"},
	"update": {"update", "patch"}, "delete": {"delete", "deletecollection"},
}

// resourceRules converts a rule to verbs on resources. whole is false if its restrictions cannot be
// expressed as names.
func (r *reviewer) resourceRules(rule access.Rule) (list []verbsOn, whole bool) {
	byResource := map[string]int{}
	whole = true
	for _, p := range rule.Permissions {
		parts := strings.Split(string(p), ".")
		verbs, known := machineVerbs[parts[2]]
		if parts[0] != "cloud" || !known || !r.policy.kinds.serves(parts[1]) {
			continue
		}
		i, ok := byResource[parts[1]]
		if !ok {
			names, exact := namesOf(rule, parts[1])
			whole = whole && exact
			i = len(list)
			byResource[parts[1]] = i
			list = append(list, verbsOn{resource: parts[1], names: names})
		}
		list[i].verbs = append(list[i].verbs, verbs...)
	}
	return list, whole
}

// namesOf converts restrictions to names of one resource. exact is false if that is not possible.
func namesOf(rule access.Rule, resource string) (names []string, exact bool) {
	if rule.CEL != "" {
		return nil, false
	}
	for _, r := range rule.Restrictions {
		r.Organization = ""
		var name string
		switch resource {
		case "messaginginstances":
			name, r.Instance = r.Instance, ""
		case "messagingclusters":
			name, r.Cluster = r.Cluster, ""
		case "serviceaccounts":
			name, r.ServiceAccount = r.ServiceAccount, ""
		case "apikeys":
			name, r.APIKey = r.APIKey, ""
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

// access decides whether one call would be allowed.
func (r *reviewer) access(ctx context.Context, who *identity.Principal,
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
	record := authorizer.AttributesRecord{User: caller.Caller{Principal: who}}
	if path != nil {
		record.Path, record.Verb = path.Path, path.Verb
	} else {
		if slices.Contains([]string{at.Verb, at.Resource, at.Group}, "*") {
			review.Status.Allowed, review.Status.Reason = r.everything(who, at.Namespace)
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
		review.Status.Allowed, review.Status.Reason = r.object(ctx, who, at)
	}
	return nil
}

// object authorizes one object, whose scope the path alone may not determine.
func (r *reviewer) object(ctx context.Context, who *identity.Principal,
	at *authorizationv1.ResourceAttributes,
) (allowed bool, reason string) {
	kind, ok := r.policy.kinds[at.Resource]
	if !ok || at.Group != v1alpha1.GroupName || at.Name == "" || kind.Info().ClusterScoped {
		return true, ""
	}
	permission, _ := access.ForVerb(at.Resource, at.Subresource, at.Verb)
	_, err := r.policy.authorizer.Authorize(ctx, who, permission, kind.Scope(ctx, at.Namespace, at.Name))
	if err != nil {
		return false, err.Error()
	}
	return true, ""
}

// everything decides reviews with a wildcard.
func (r *reviewer) everything(who *identity.Principal, namespace string) (allowed bool, reason string) {
	switch {
	case who.System, who.Admin && who.Organization == namespace && namespace != "":
		return true, ""
	}
	for _, rule := range r.policy.authorizer.Rules(who, access.Scope{Organization: namespace}) {
		if len(rule.Permissions) == len(access.Permissions()) && len(rule.Restrictions) == 0 && rule.CEL == "" {
			return true, ""
		}
	}
	return false, who.Name + " does not have all permissions in this organization"
}
