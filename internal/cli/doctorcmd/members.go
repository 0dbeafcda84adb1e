package doctorcmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"freshet/internal/cli/command"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
)

// memberCertificateWarning is the remaining lifetime below which doctor warns about a member's
// certificate.
const memberCertificateWarning = 30 * 24 * time.Hour

// members checks this member's certificate, and every address of the other members.
func (d *doctor) members(ctx context.Context) {
	m := &d.config.Members
	if !m.Enabled() {
		if name := bundle.InstalledMember(d.config.BundleDir()); name != "" {
			d.failed("members", fmt.Sprintf("%s is the data directory of member %s of an ensemble, but the "+
				"configuration has no members", d.config.DataDir, name),
				"Start the server with the configuration that 'freshet ensemble join' wrote (--config), or choose "+
					"another directory with --data-dir.")
		}
		return
	}
	credentials := d.bundle()
	for i, member := range m.List {
		if member.Name != m.Self {
			d.member(ctx, credentials, i, member)
		}
	}
}

// nats checks external NATS servers. The members check those that run inside them.
func (d *doctor) nats(ctx context.Context) {
	if !d.config.NATS.External() {
		return
	}
	description, problems, warnings, err := d.inspector.InspectNATS(ctx, d.config)
	if errors.Is(err, command.ErrNoServer) {
		d.unchecked("nats")
		return
	}
	if err != nil {
		d.failed("nats", err.Error(), "Start the NATS servers, or correct nats.urls and its credentials and "+
			"certificates; the server does not start without NATS.")
		return
	}
	for _, each := range problems {
		d.failed("nats", each,
			"Correct this on every NATS server; members become ready only afterwards. See docs/howto/ensemble.md.")
	}
	for _, each := range warnings {
		d.warned("nats", each, "See docs/howto/ensemble.md.")
	}
	if len(problems) == 0 {
		d.good("nats", "%s", description)
	}
}

// bundle reads this member's certificate for calls to the others. It returns nil if it
// cannot be read.
func (d *doctor) bundle() *bundle.Credentials {
	dir := d.config.BundleDir()
	credentials, err := bundle.Open(dir, d.config.Members.Self)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.failed("members", fmt.Sprintf("%s has no certificate of member %s", dir, d.config.Members.Self),
			"Install its bundle with 'freshet ensemble join BUNDLE'; 'freshet ensemble init' creates bundles.")
	case err != nil:
		d.failed("members", err.Error(), "Install its bundle again with 'freshet ensemble join BUNDLE'.")
	case time.Until(credentials.Expiry()) < memberCertificateWarning:
		d.warned("members", fmt.Sprintf("the certificate of member %s expires on %s", d.config.Members.Self,
			credentials.Expiry().UTC().Format(time.DateOnly)),
			"Create bundles with new certificates, and install them on one member after the other; "+
				"see docs/howto/operate.md.")
	default:
		d.good("members", "this is %s of %d members", d.config.Members.Self, len(d.config.Members.List))
	}
	return credentials
}

// member checks that another member accepts connections at all its addresses.
func (d *doctor) member(ctx context.Context, credentials *bundle.Credentials, index int, member config.Member) {
	check, reachable := "member "+member.Name, true
	for _, a := range []struct {
		name, what, address string
		secured             bool // TLS from the first byte
	}{
		{"internal", "calls between members", member.Internal, true},
		{"etcd", "the resource store, etcd", member.Etcd, true},
		{"log", "the message log, NATS", member.Log, false},
	} {
		if a.address == "" {
			continue // etcd or NATS is external
		}
		setting := fmt.Sprintf("members.list[%d].%s", index, a.name)
		err := dial(ctx, a.address)
		if err == nil && a.secured && credentials != nil {
			err = tlsHandshake(ctx, a.address, credentials.ClientTLS(member.Name))
		}
		var refused *tls.CertificateVerificationError
		switch {
		case errors.As(err, &refused):
			reachable = false
			d.failed(check, fmt.Sprintf("%s (%s) is not this member: %v", a.address, a.what, refused),
				fmt.Sprintf("Correct %s, or install bundles of the same ensemble on both machines: "+
					"'freshet ensemble join BUNDLE'.", setting))
		case err != nil:
			reachable = false
			d.failed(check, fmt.Sprintf("%s (%s) does not respond: %v", a.address, a.what, err),
				fmt.Sprintf("Start the server %s, open its port between the members, or correct %s; an ensemble works "+
					"while more than half of its members do.", member.Name, setting))
		}
	}
	if reachable {
		d.good(check, "accepts connections at all its addresses")
	}
}

// tlsHandshake does the TLS handshake of a call between members.
func tlsHandshake(ctx context.Context, address string, config *tls.Config) error {
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: requestTimeout}, Config: config}).DialContext(ctx,
		"tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
