package tokens_test

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/kinds/serviceaccount/tokens"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/test/tally"
)

// lateAccounts is a store that has the account before the directory has it.
type lateAccounts struct {
	addAccount func() // adds the account to the directory after the first read
}

func (l lateAccounts) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != "robot" {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("serviceaccounts"), name)
	}
	go l.addAccount()
	return &v1alpha1.ServiceAccount{}, nil
}

// clerk may create keys for accounts that are not administrators.
type clerk struct{}

func (clerk) Authorize(context.Context, *identity.Principal, access.Permission, access.Scope) (access.Decision, error) {
	return access.Decision{}, nil
}

func (clerk) MayActAs(_ *identity.Principal, _, _ string, admin bool) error {
	if admin {
		return access.ErrDenied
	}
	return nil
}

// requestToken requests a token of an account that the directory gets a moment later.
func requestToken(t *testing.T, name string, edit func(*identity.Account)) error {
	t.Helper()
	w := identitytest.New(t)
	addAccount := func() { w.Account("acme", "robot", edit) }
	create, ok := tokens.New(tokens.Options{
		Issuer: w.Issuer, Directory: w.Directory, Authorizer: clerk{},
		Audiences: identity.Audiences{Addresses: []string{identitytest.IssuerURL}},
	}).Open(v1alpha1.Resource("serviceaccounts"), lateAccounts{addAccount}, nil).(rest.NamedCreater)
	if !ok {
		t.Fatal("storage does not implement rest.NamedCreater")
	}
	ctx := request.WithUser(request.WithNamespace(t.Context(), "acme"),
		caller.Caller{Principal: &identity.Principal{Name: "clerk", Organization: "acme"}})
	out, err := create.Create(ctx, name, &authenticationv1.TokenRequest{}, nil, &metav1.CreateOptions{})
	if err == nil {
		if token, ok := out.(*authenticationv1.TokenRequest); !ok || token.Status.Token == "" {
			t.Errorf("got %+v, want a token", out)
		}
	}
	return err
}

// TestNewAccount checks that a caller that has just created the account gets a token.
func TestNewAccount(t *testing.T) {
	t.Parallel()
	if err := requestToken(t, "robot", func(*identity.Account) {}); err != nil {
		t.Errorf("got %v, want a token", err)
	}
	if err := requestToken(t, "nobody", func(*identity.Account) {}); !apierrors.IsNotFound(err) {
		t.Errorf("missing account: got %v, want not found", err)
	}
}

// TestAttackTokenOfANewAdministrator requests the token before the directory contains the
// account's roles.
func TestAttackTokenOfANewAdministrator(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for name, edit := range map[string]func(*identity.Account){
		"administrator": func(a *identity.Account) { a.Admin = true },
		"system":        func(a *identity.Account) { a.Admin, a.System = true, true },
	} {
		attempts++
		if err := requestToken(t, "robot", edit); !apierrors.IsForbidden(err) {
			successes++
			t.Errorf("%s: got %v, want forbidden", name, err)
		}
	}
	tally.Attack(t, "a token of an administrator that was just created", attempts, successes)
}
