package doctorcmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
)

// certificateEnds is when the end of a member's certificate is worth a word.
const certificateEnds = 30 * 24 * time.Hour

// members checks this member's certificate, and every address of the others.
func (d *doctor) members(ctx context.Context) {
	m := &d.config.Members
	if !m.On() {
		if name := bundle.MemberIn(d.config.BundleDir()); name != "" {
			d.failed("members", fmt.Sprintf("%s is the data directory of member %s of a group, and the "+
				"configuration has no members", d.config.DataDir, name),
				"Start the server with the configuration that 'freshet cluster join' wrote (--config), or choose another directory with --data-dir.")
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

// nats looks at NATS servers that run elsewhere. Those in the members are part of them.
func (d *doctor) nats(ctx context.Context) {
	if !d.config.NATS.External() {
		return
	}
	is, wrong, unsure, err := d.log(ctx, d.config)
	if err != nil {
		d.failed("nats", err.Error(), "Start the NATS servers, or correct nats.urls and the credentials and "+
			"certificates beside it; the server does not start without.")
		return
	}
	for _, each := range wrong {
		d.failed("nats", each,
			"Correct that on every NATS server; members do not become ready before. See docs/howto/group.md.")
	}
	for _, each := range unsure {
		d.warned("nats", each, "See docs/howto/group.md.")
	}
	if len(wrong) == 0 {
		d.good("nats", "%s", is)
	}
}

// bundle reads the certificate with which this member speaks to the others; nil when
// there is none.
func (d *doctor) bundle() *bundle.Credentials {
	dir := d.config.BundleDir()
	credentials, err := bundle.Open(dir, d.config.Members.Self)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.failed("members", fmt.Sprintf("%s has no certificate of member %s", dir, d.config.Members.Self),
			"Give this machine its bundle: 'freshet cluster join BUNDLE'; 'freshet cluster init' makes bundles.")
	case err != nil:
		d.failed("members", err.Error(), "Give this machine its bundle again: 'freshet cluster join BUNDLE'.")
	case time.Until(credentials.Ends()) < certificateEnds:
		d.warned("members", fmt.Sprintf("the certificate of member %s ends on %s", d.config.Members.Self,
			credentials.Ends().UTC().Format(time.DateOnly)),
			"Make bundles with new certificates, and give them to one machine after the other; see docs/howto/operate.md.")
	default:
		d.good("members", "this is %s of %d members", d.config.Members.Self, len(d.config.Members.List))
	}
	return credentials
}

// member checks that the addresses of another member answer.
func (d *doctor) member(ctx context.Context, credentials *bundle.Credentials, place int, member config.Member) {
	check, whole := "member "+member.Name, true
	for _, a := range []struct {
		name, what, address string
		secured             bool // TLS from the first byte on
	}{
		{"internal", "calls between members", member.Internal, true},
		{"etcd", "the store of resources, etcd", member.Etcd, true},
		{"log", "the log of messages, NATS", member.Log, false},
	} {
		if a.address == "" {
			continue // etcd is elsewhere
		}
		setting := fmt.Sprintf("members.list[%d].%s", place, a.name)
		err := reach(ctx, a.address)
		if err == nil && a.secured && credentials != nil {
			err = greet(ctx, a.address, credentials.Client(member.Name))
		}
		var refused *tls.CertificateVerificationError
		switch {
		case errors.As(err, &refused):
			whole = false
			d.failed(check, fmt.Sprintf("%s (%s) is not this member: %v", a.address, a.what, refused),
				fmt.Sprintf("Correct %s, or give both machines bundles of the same group: 'freshet cluster join BUNDLE'.", setting))
		case err != nil:
			whole = false
			d.failed(check, fmt.Sprintf("%s (%s) does not answer: %v", a.address, a.what, err),
				fmt.Sprintf("Start the server %s, open its port between the members, or correct %s; a group works "+
					"while more than half of its members do.", member.Name, setting))
		}
	}
	if whole {
		d.good(check, "answers at all of its addresses")
	}
}

// greet does what a call between members begins with.
func greet(ctx context.Context, address string, config *tls.Config) error {
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: answerTimeout}, Config: config}).DialContext(ctx,
		"tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
