package authcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/base/version"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
	"freshet/internal/cli/session"
)

// signInWithBrowser signs a user in with a device code (docs/spec/signin.md#device).
func (l *login) signInWithBrowser(ctx context.Context) error {
	// Reject a bad name before the user signs in, not after.
	if l.name != "" {
		if err := contexts.CheckName(l.name); err != nil {
			return err
		}
	}
	c, before, err := l.target()
	if err != nil {
		return err
	}
	s, err := l.awaitUser(ctx, c)
	if err != nil {
		return explainSignIn(err, c.Server)
	}
	caller, err := l.storeSession(ctx, &c, before, s)
	if err != nil {
		// The session was not stored, so no command could use it.
		return errors.Join(err, s.Revoke(context.WithoutCancel(ctx)))
	}
	return l.env.Done(command.Result{Kind: "context", Name: c.Name, Action: "created"},
		"signed in to %s as %s (%s); the context is %s", c.Server, output.Clean(caller.Person), caller.Principal,
		c.Name)
}

// target returns the new context, with the server to sign in to, and the context in use if
// it has the same server, because signing in again may renew that one.
func (l *login) target() (c, before contexts.Context, err error) {
	selection := l.env.Selection()
	known := selection
	known.Server, known.CAFile, known.CredentialsFile, known.TokenFile = "", "", "", ""
	server := strings.TrimRight(selection.Server, "/")
	before, err = contexts.Resolve(known)
	switch {
	case err != nil && (server == "" || selection.Context != ""):
		return c, before, err
	case err != nil, server != "" && server != before.Server:
		before = contexts.Context{}
	}
	c = contexts.Context{
		Name: l.name, Server: cmp.Or(server, before.Server), CA: before.CA,
		Cluster: selection.Cluster, Instance: cmp.Or(l.instance, selection.Instance),
		InsecureHTTP: selection.InsecureHTTP,
	}
	if err := readAuthority(&c, selection); err != nil {
		return c, before, err
	}
	if err := contexts.CheckServer(c.Server); err != nil {
		return c, before, err
	}
	return c, before, contexts.CheckTransport(c.Server, c.InsecureHTTP)
}

// awaitUser shows the code and waits until the user has signed in.
func (l *login) awaitUser(ctx context.Context, c contexts.Context) (*session.Session, error) {
	conn, err := client.New(client.Config{
		BaseURL: c.Server, CA: []byte(c.CA),
		UserAgent: "freshet/" + version.Get().Version,
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	offered, err := session.SupportsDevice(ctx, conn)
	if err != nil {
		return nil, err
	}
	if !offered && !l.device {
		return nil, hint.Add(errs.Newf(errs.Invalid, "server %s does not support signing in through a browser",
			c.Server),
			"Sign in as a service account with freshet login CREDENTIALS-FILE, or with an API key: --token-file FILE.")
	}
	d, err := session.Begin(ctx, c.Server, c.CA)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(l.env.Err, "To sign in, open this page in a browser, on any machine:\n\n  %s\n\nand "+
		"compare the code: %s\n\n", output.Clean(d.Complete), output.Clean(d.Code))
	if err != nil {
		return nil, err
	}
	if l.openBrowser {
		if err := openPage(ctx, d.Complete); err != nil {
			// The user can open the printed address.
			_, _ = fmt.Fprintf(l.env.Err, "Warning: opening a browser on this machine failed: %v\n", err)
		}
	}
	return d.Wait(ctx)
}

// openPage opens a page in the system's browser and does not wait for it. The caller makes
// sure that page begins with http.
func openPage(ctx context.Context, page string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, page)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// storeSession requests the user's identity, and stores the session and then the context.
func (l *login) storeSession(ctx context.Context, c *contexts.Context, before contexts.Context,
	s *session.Session,
) (identity, error) {
	conn, err := client.New(client.Config{
		BaseURL: c.Server, CA: []byte(c.CA),
		TokenSource: client.StaticToken(s.AccessToken), UserAgent: "freshet/" + version.Get().Version,
	})
	if err != nil {
		return identity{}, err
	}
	defer conn.Close()
	caller, err := whoami(ctx, conn)
	if err != nil {
		return caller, err
	}
	if caller.Person, caller.Email, err = userInfo(ctx, conn); err != nil {
		return caller, err
	}
	s.Principal = caller.Principal
	c.Organization = cmp.Or(l.env.Selection().Organization, caller.Organization)
	if c.Name == "" && before.Credential.Session != "" {
		if old, err := session.Read(before.Credential.Session); err != nil || old.Principal == s.Principal &&
			old.Server == s.Server {
			c.Name, c.Cluster, c.Instance = before.Name, cmp.Or(c.Cluster, before.Cluster),
				cmp.Or(c.Instance, before.Instance)
		}
	}
	c.Name = cmp.Or(c.Name, caller.Name+"@"+caller.Organization)
	if err := contexts.CheckName(c.Name); err != nil {
		return caller, hint.Add(err, "Set another name with --name.")
	}
	c.Credential = contexts.Credential{Session: contexts.SecretPath(contexts.Directory(l.env.Getenv), c.Name)}
	old, err := session.Store(ctx, c.Credential.Session, s)
	if err != nil {
		return caller, err
	}
	if old != nil {
		_ = old.Revoke(ctx) // an old session that is not revoked expires
	}
	return caller, l.saveContext(c)
}
