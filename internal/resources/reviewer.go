package resources

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	reviewv1alpha1 "freshet/api/authorization/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/identity"
	"freshet/internal/resources/registry"
)

// reviewer answers questions by asking what real calls ask.
type reviewer struct {
	policy policy
	kinds  map[string]registry.Definition // by plural
}

func newReviewer(p policy, kinds []registry.Definition) *reviewer {
	return &reviewer{policy: p, kinds: byPlural(kinds)}
}

func byPlural(kinds []registry.Definition) map[string]registry.Definition {
	out := make(map[string]registry.Definition, len(kinds))
	for _, kind := range kinds {
		plural, _ := kind.Resource()
		out[plural] = kind
	}
	return out
}

func whoIs(caller *identity.Principal) reviewv1alpha1.SelfSubjectUserReviewStatus {
	who := reviewv1alpha1.UserRef{
		APIGroup: v1alpha1.GroupName, Kind: "ServiceAccount", Name: caller.ServiceAccount,
		Namespace: caller.Organization, Organization: caller.Organization,
	}
	if caller.ServiceAccount == "" {
		who.Kind, who.Name = "User", caller.User
	}
	status := reviewv1alpha1.SelfSubjectUserReviewStatus{
		Users:               []reviewv1alpha1.UserRef{who},
		Principal:           caller.Name,
		SystemAdministrator: caller.System,
		Administrator:       caller.Admin || caller.System,
		APIKey:              caller.KeyName,
	}
	if !caller.ExpiresAt.IsZero() {
		end := metav1.NewTime(caller.ExpiresAt)
		status.ExpirationTime = &end
	}
	return status
}

func userInfo(caller *identity.Principal) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{
		Username: caller.Name,
		UID:      caller.UID,
		Groups:   []string{user.AllAuthenticated, "freshet:organization:" + caller.Organization},
		Extra:    map[string]authenticationv1.ExtraValue{},
	}
	if caller.Admin || caller.System {
		info.Groups = append(info.Groups, "freshet:administrators:"+caller.Organization)
	}
	if caller.System {
		info.Groups = append(info.Groups, "freshet:system-administrators")
	}
	if caller.KeyName != "" {
		info.Extra["cloud.vendor.io/apikey"] = authenticationv1.ExtraValue{caller.KeyName}
	}
	return info
}

func (r *reviewer) rules(caller *identity.Principal, spec reviewv1alpha1.SelfSubjectRulesReviewSpec) reviewv1alpha1.SelfSubjectRulesReviewStatus {
	if spec.Namespace == "" {
		spec.Namespace = caller.Organization
	}
	scope := access.Scope{Organization: spec.Namespace, Instance: spec.Instance, Cluster: spec.Cluster}
	status := reviewv1alpha1.SelfSubjectRulesReviewStatus{
		ResourceRules: []reviewv1alpha1.ResourceRule{}, Rules: []reviewv1alpha1.PermissionRule{},
	}
	for _, rule := range r.policy.authorizer.Rules(caller, scope) {
		status.Rules = append(status.Rules, permissionRule(rule))
		verbs, whole := resourceRules(rule)
		for _, v := range verbs {
			status.ResourceRules = append(status.ResourceRules, reviewv1alpha1.ResourceRule{
				Verbs: v.verbs, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{v.resource}, ResourceNames: v.names,
			})
		}
		status.Incomplete = status.Incomplete || !whole
	}
	if status.Incomplete {
		status.EvaluationError = incomplete
	}
	return status
}

const incomplete = "some rules hold only where a restriction or condition says so, which names cannot tell"

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

func (r *reviewer) kubernetesRules(caller *identity.Principal, namespace string) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{},
		NonResourceRules: []authorizationv1.NonResourceRule{{
			Verbs: []string{"get"},
			NonResourceURLs: []string{
				"/apis", "/apis/*", "/openapi/*", "/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version",
			},
		}},
	}
	for _, kind := range reviewKinds {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: []string{"create"}, APIGroups: []string{kind.version.Group}, Resources: []string{kind.plural},
		})
	}
	for _, rule := range r.policy.authorizer.Rules(caller, access.Scope{Organization: namespace}) {
		verbs, whole := resourceRules(rule)
		for _, v := range verbs {
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: v.verbs, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{v.resource}, ResourceNames: v.names,
			})
		}
		status.Incomplete = status.Incomplete || !whole
	}
	if status.Incomplete {
		status.EvaluationError = incomplete
	}
	return status
}

// verbsOn is what may be done to one resource of the API.
type verbsOn struct {
	resource string
	verbs    []string
	names    []string
}

// machineVerbs are the verbs of the API that a permission's verb stands for.
var machineVerbs = map[string][]string{
	"describe": {"get"}, "list": {"list", "watch"}, "create": {"create"},
	"update": {"update", "patch"}, "delete": {"delete", "deletecollection"},
}

// resourceRules puts a rule into the words of the API. whole is false when its
// restrictions cannot be told by names.
func resourceRules(rule access.Rule) (list []verbsOn, whole bool) {
	byResource := map[string]int{}
	whole = true
	for _, p := range rule.Permissions {
		parts := strings.Split(string(p), ".")
		verbs, known := machineVerbs[parts[2]]
		if parts[0] != "cloud" || !known || !isServed(parts[1]) {
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

// isServed says whether permissions on a resource are about a kind of the API.
func isServed(resource string) bool { return knownResource(resource) == resource }

// namesOf turns restrictions into names of one resource, where they are that.
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
			return nil, true // nothing left that restricts
		}
		names = append(names, name)
	}
	return names, true
}

// access answers whether one call would be let through.
func (r *reviewer) access(ctx context.Context, caller *identity.Principal, review *authorizationv1.SelfSubjectAccessReview) error {
	at, path := review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes
	if (at == nil) == (path == nil) {
		return apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview").GroupKind(), "", field.ErrorList{
			field.Invalid(field.NewPath("spec"), field.OmitValueType{}, "exactly one of resourceAttributes and nonResourceAttributes must be set"),
		})
	}
	// What is asked here must not end up in the audit record of the asking.
	ctx = context.WithValue(ctx, footprintKey{}, &footprint{})
	record := authorizer.AttributesRecord{User: Caller{caller}}
	if path != nil {
		record.Path, record.Verb = path.Path, path.Verb
	} else {
		if slices.Contains([]string{at.Verb, at.Resource, at.Group}, "*") {
			review.Status.Allowed, review.Status.Reason = r.everything(caller, at.Namespace)
			return nil
		}
		record.ResourceRequest = true
		record.Verb, record.Namespace, record.Name = at.Verb, at.Namespace, at.Name
		record.APIGroup, record.APIVersion, record.Resource, record.Subresource = at.Group, at.Version, at.Resource, at.Subresource
	}
	decision, reason, err := r.policy.Authorize(ctx, record)
	if err != nil {
		return err
	}
	review.Status.Allowed, review.Status.Reason = decision == authorizer.DecisionAllow, reason
	if review.Status.Allowed && at != nil {
		review.Status.Allowed, review.Status.Reason = r.object(ctx, caller, at)
	}
	return nil
}

// object asks about one thing, which a path may not tell enough of.
func (r *reviewer) object(ctx context.Context, caller *identity.Principal, at *authorizationv1.ResourceAttributes) (allowed bool, reason string) {
	kind, ok := r.kinds[at.Resource]
	if !ok || at.Group != v1alpha1.GroupName || at.Name == "" || r.policy.cluster[at.Resource] {
		return true, ""
	}
	permission, _ := access.ForVerb(at.Resource, at.Subresource, at.Verb)
	_, err := r.policy.authorizer.Authorize(ctx, caller, permission, kind.Place(ctx, at.Namespace, at.Name))
	if err != nil {
		return false, err.Error()
	}
	return true, ""
}

// everything answers questions with a star in them.
func (r *reviewer) everything(caller *identity.Principal, namespace string) (allowed bool, reason string) {
	switch {
	case caller.System, caller.Admin && caller.Organization == namespace && namespace != "":
		return true, ""
	}
	for _, rule := range r.policy.authorizer.Rules(caller, access.Scope{Organization: namespace}) {
		if len(rule.Permissions) == len(access.Permissions()) && len(rule.Restrictions) == 0 && rule.CEL == "" {
			return true, ""
		}
	}
	return false, caller.Name + " may not do everything there"
}
