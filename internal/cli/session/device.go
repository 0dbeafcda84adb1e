package session

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/cli/hint"
)

// Device is a device authorization that waits for the user (RFC 8628).
type Device struct {
	// Code is the code that the user compares, Page the page to open, and Complete the page
	// with the code filled in.
	Code, Page, Complete string

	code     string
	interval time.Duration
	ends     time.Time
	session  Session
}

// Limits for the intervals in a server's response.
const (
	defaultInterval = 5 * time.Second
	maxInterval     = time.Minute
	maxWait         = time.Hour
)

// SupportsDevice reports whether a server supports signing in through a browser.
func SupportsDevice(ctx context.Context, conn *client.Client) (bool, error) {
	response, err := conn.Do(ctx, &client.Request{
		Method: http.MethodGet, Path: "/.well-known/openid-configuration",
		MaxResponse: maxResponse,
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
		return false, nil //nolint:nilerr // the response is not a discovery document
	}
	return document.Device != "", nil
}

// Begin requests a device code from a server.
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
	got.Complete = cmp.Or(got.Complete, got.Page)
	for _, page := range []string{got.Page, got.Complete} {
		if u, err := url.Parse(page); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errs.Newf(errs.Invalid, "server %s returned the sign-in page %q, which is not a web address",
				server, page)
		}
	}
	if got.DeviceCode == "" || got.UserCode == "" {
		return nil, errs.Newf(errs.Invalid, "server %s returned no device code or user code (RFC 8628)", server)
	}
	d.Code, d.Page, d.Complete, d.code = got.UserCode, got.Page, got.Complete, got.DeviceCode
	d.interval = defaultInterval
	if got.Interval > 0 {
		d.interval = min(time.Duration(min(got.Interval, 3600))*time.Second, maxInterval)
	}
	d.ends = time.Now().Add(min(time.Duration(min(max(got.ExpiresIn, 1), 86_400))*time.Second, maxWait))
	return d, nil
}

// Wait polls the server, at the interval that it allows, until the user has approved or
// denied the sign-in, or the code expires.
func (d *Device) Wait(ctx context.Context) (*Session, error) {
	for time.Now().Add(d.interval).Before(d.ends) {
		if err := retry.Sleep(ctx, d.interval); err != nil {
			return nil, err
		}
		err := d.session.requestTokens(ctx,
			url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {d.code}})
		if err == nil {
			return &d.session, nil
		}
		if err := d.pollAgain(err); err != nil {
			return nil, err
		}
	}
	return nil, errCodeExpired()
}

// pollAgain evaluates an error of the token endpoint. It returns nil if Wait must poll again, and
// increases the interval if necessary.
func (d *Device) pollAgain(err error) error {
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
		return hint.Add(errs.New(errs.Denied, "sign-in was denied in the browser"),
			"If this was a mistake, start again with 'freshet login'.")
	case "expired_token":
		return errCodeExpired()
	}
	if errors.Is(err, client.ErrThrottled) || errors.Is(err, client.ErrUnavailable) {
		d.interval = min(2*d.interval, maxInterval)
		return nil
	}
	return err
}

func errCodeExpired() error {
	return hint.Add(errs.New(errs.Unauthenticated, "sign-in code expired before the sign-in was approved"),
		"Start again with 'freshet login'.")
}
