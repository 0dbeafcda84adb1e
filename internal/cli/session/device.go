package session

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"freshet/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// Device is a sign-in that waits for a person (RFC 8628).
type Device struct {
	// Code is what the person compares; Page is where, and Complete the same with the
	// code filled in.
	Code, Page, Complete string

	code     string
	interval time.Duration
	ends     time.Time
	session  Session
}

// Bounds of what a server may say.
const (
	defaultInterval = 5 * time.Second
	maxInterval     = time.Minute
	maxWait         = time.Hour
)

// Offered says whether a server lets people sign in through a browser.
func Offered(ctx context.Context, conn *client.Client) (bool, error) {
	response, err := conn.Do(ctx, &client.Request{
		Method: http.MethodGet, Path: "/.well-known/openid-configuration",
		MaxResponse: maxAnswer,
	})
	if errors.Is(err, client.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var document struct {
		Device string `json:"device_authorization_endpoint"`
	}
	if response.JSON(&document) != nil {
		return false, nil //nolint:nilerr // something else answers there
	}
	return document.Device != "", nil
}

// Begin begins a sign-in at a server.
func Begin(ctx context.Context, server, ca string) (*Device, error) {
	d := &Device{session: Session{Server: server, CA: ca}}
	response, err := d.session.post(ctx, "/oauth/device_authorization", url.Values{}, false)
	if err != nil {
		return nil, err
	}
	var got struct {
		DeviceCode string `json:"device_code"`
		UserCode   string `json:"user_code"`
		Page       string `json:"verification_uri"`
		Complete   string `json:"verification_uri_complete"`
		ExpiresIn  int64  `json:"expires_in"`
		Interval   int64  `json:"interval"`
	}
	if err := response.JSON(&got); err != nil {
		return nil, err
	}
	if got.Complete == "" {
		got.Complete = got.Page
	}
	for _, page := range []string{got.Page, got.Complete} {
		if u, err := url.Parse(page); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errs.Newf(errs.Invalid, "%s names %q as the page to sign in on, which is no address of one",
				server, page)
		}
	}
	if got.DeviceCode == "" || got.UserCode == "" {
		return nil, errs.Newf(errs.Invalid, "%s does not answer as RFC 8628 says: there is no code", server)
	}
	d.Code, d.Page, d.Complete, d.code = got.UserCode, got.Page, got.Complete, got.DeviceCode
	d.interval = defaultInterval
	if got.Interval > 0 {
		d.interval = min(time.Duration(min(got.Interval, 3600))*time.Second, maxInterval)
	}
	d.ends = time.Now().Add(min(time.Duration(min(max(got.ExpiresIn, 1), 86_400))*time.Second, maxWait))
	return d, nil
}

// Wait asks the server, as often as it allows, until the person has decided.
func (d *Device) Wait(ctx context.Context) (*Session, error) {
	for time.Now().Add(d.interval).Before(d.ends) {
		if err := pause(ctx, d.interval); err != nil {
			return nil, err
		}
		err := d.session.ask(ctx,
			url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {d.code}})
		if err == nil {
			return &d.session, nil
		}
		if err := d.goOn(err); err != nil {
			return nil, err
		}
	}
	return nil, errTimeUp()
}

// goOn says what to do about an answer that has no tokens: nil is to ask again.
func (d *Device) goOn(err error) error {
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		if errors.Is(err, client.ErrUnavailable) {
			d.interval = min(2*d.interval, maxInterval) // RFC 8628 §3.5
			return nil
		}
		return err
	}
	switch refusal.Reason {
	case "authorization_pending":
		return nil
	case "slow_down":
		d.interval = min(d.interval+5*time.Second, maxInterval)
		return nil
	case "access_denied":
		return hint.Add(errs.New(errs.Denied, "the sign-in was refused in the browser"),
			"Begin again with 'freshet login' if that was a mistake.")
	case "expired_token":
		return errTimeUp()
	}
	if errors.Is(err, client.ErrThrottled) || errors.Is(err, client.ErrUnavailable) {
		d.interval = min(2*d.interval, maxInterval)
		return nil
	}
	return err
}

func errTimeUp() error {
	return hint.Add(errs.New(errs.Unauthenticated, "nobody signed in while the code was good"),
		"Begin again with 'freshet login'.")
}
