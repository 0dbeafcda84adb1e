package signin

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// Lifetime of device codes and polling interval of devices (RFC 8628).
const (
	DeviceLifetime = 10 * time.Minute
	DeviceInterval = 5 * time.Second
)

// Errors for a device that polls.
var (
	ErrPending        = errs.New(errs.Precondition, "sign-in of the device is not confirmed yet")
	ErrSlowDown       = errs.New(errs.Precondition, "device polls too often")
	ErrDeviceRejected = errs.New(errs.Denied, "sign-in of the device was rejected")
	ErrApprovalEnded  = errs.New(errs.Denied, "session that confirmed the device has ended; start again")
	ErrDeviceExpired  = errs.New(errs.Unauthenticated, "sign-in of the device was not confirmed in time; start again")
)

// ErrNoDevice is the error for a user code that no waiting device has.
var ErrNoDevice = errs.New(errs.NotFound, "no device waits for this code: it is mistyped, was used, or has expired")

// userCodeLetters form no words and cannot be confused with other characters (RFC 8628 §6.1).
const (
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// Device is a device that waits for the confirmation of its sign-in.
type Device struct {
	Code     identity.Secret // the device code, with which it polls
	UserCode string          // the user code that a person types: XXXX-XXXX
	Client   string
	Address  string
	Begun    time.Time
	Ends     time.Time
}

// Devices signs devices in that have no browser: a person confirms the sign-in elsewhere.
type Devices struct {
	records *indexedStore
	grants  *Grants
	polls   *pollLimiter
}

func newDevices(records *indexedStore, grants *Grants) *Devices {
	return &Devices{records: records, grants: grants, polls: newPollLimiter()}
}

// BeginDevice starts the sign-in of a device.
func (s *Devices) BeginDevice(ctx context.Context, client, address string) (*Device, error) {
	now := time.Now().UTC()
	token := identity.GenerateSecret()
	record := device{Client: client, Address: address, Begun: now, Ends: now.Add(DeviceLifetime).Truncate(time.Second)}
	key := devicesPrefix + hashOf(token.Reveal())
	for {
		record.UserCode = newUserCode()
		err := s.records.put(ctx, userCodesPrefix+record.UserCode, userCode{Device: key, Ends: record.Ends}, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrChanged) { // ErrChanged: another device has the word
			return nil, err
		}
	}
	if err := s.records.put(ctx, key, record, 0); err != nil {
		return nil, err
	}
	return &Device{
		Code: token, UserCode: dashed(record.UserCode), Client: client, Address: address, Begun: now,
		Ends: record.Ends,
	}, nil
}

// DeviceOf returns the waiting device of a user code.
func (s *Devices) DeviceOf(ctx context.Context, typed string) (*Device, error) {
	_, record, _, err := s.waitingDevice(ctx, typed)
	if err != nil {
		return nil, err
	}
	return &Device{
		UserCode: dashed(record.UserCode), Client: record.Client, Address: record.Address, Begun: record.Begun,
		Ends: record.Ends,
	}, nil
}

func (s *Devices) waitingDevice(ctx context.Context,
	typed string,
) (key string, record device, revision int64, err error) {
	letters, ok := normalizeUserCode(typed)
	if !ok {
		return "", device{}, 0, ErrNoDevice
	}
	w, _, ok, err := read[userCode](ctx, s.records, userCodesPrefix+letters)
	if err != nil {
		return "", device{}, 0, err
	}
	if !ok || !time.Now().Before(w.Ends) {
		return "", device{}, 0, ErrNoDevice
	}
	record, revision, ok, err = read[device](ctx, s.records, w.Device)
	if err != nil {
		return "", device{}, 0, err
	}
	if !ok || record.Denied || record.Subject.UID != "" || !time.Now().Before(record.Ends) {
		return "", device{}, 0, ErrNoDevice
	}
	return w.Device, record, revision, nil
}

// DecideDevice confirms or rejects the sign-in of a device as the user of a
// session. It can be called once per device. The confirmation ends with the session, until the
// device gets its grant. The grant is independent of the session.
func (s *Devices) DecideDevice(ctx context.Context, typed string, in *Session, confirm bool) error {
	key, record, revision, err := s.waitingDevice(ctx, typed)
	if err != nil {
		return err
	}
	if confirm {
		record.Subject, record.Session = in.Subject, in.ID
	} else {
		record.Denied = true
	}
	err = s.records.put(ctx, key, record, revision)
	if errors.Is(err, ErrChanged) {
		return ErrNoDevice
	}
	if err != nil {
		return err
	}
	return s.records.delete(ctx, userCodesPrefix+record.UserCode)
}

// PollDevice returns the grant of a device after the confirmation, once. Before that it
// returns ErrPending, or the reason why the device cannot get a grant.
func (s *Devices) PollDevice(ctx context.Context, token, client string) (*Grant, error) {
	if token == "" || len(token) > maxToken {
		return nil, ErrInvalidGrant
	}
	key := devicesPrefix + hashOf(token)
	record, revision, ok, err := read[device](ctx, s.records, key)
	if err != nil {
		return nil, err
	}
	switch {
	case !ok || record.Client != client || record.Grant != "":
		return nil, ErrInvalidGrant
	case !time.Now().Before(record.Ends):
		return nil, ErrDeviceExpired
	case record.Denied:
		return nil, ErrDeviceRejected
	case record.Subject.UID == "":
		if s.polls.tooSoon(key, time.Now()) {
			return nil, ErrSlowDown
		}
		return nil, ErrPending
	}
	if err := s.checkApproval(ctx, record.Session); err != nil {
		return nil, err
	}
	record.Grant = newID()
	err = s.records.put(ctx, key, record, revision)
	if errors.Is(err, ErrChanged) {
		return nil, ErrInvalidGrant // another request got the grant, or ended the confirmation
	}
	if err != nil {
		return nil, err
	}
	g, err := s.grants.newGrant(ctx, record.Grant, client, record.Subject, nil, "", time.Now().UTC())
	if err != nil {
		return nil, err
	}
	// The session may have ended while the grant was being created.
	if err := s.checkApproval(ctx, record.Session); err != nil {
		return nil, errors.Join(err, s.records.delete(ctx, grantsPrefix+g.ID))
	}
	return g, nil
}

// checkApproval returns ErrApprovalEnded if the session that confirmed a device has ended. It
// reads the store, so that the end of the session in another replica counts immediately.
// Confirmations of earlier versions name no session; they count as ended.
func (s *Devices) checkApproval(ctx context.Context, id string) error {
	if id == "" {
		return ErrApprovalEnded
	}
	in, _, exists, err := read[session](ctx, s.records, sessionsPrefix+id)
	if err != nil {
		return err
	}
	if !exists || !time.Now().Before(in.Ends) {
		return ErrApprovalEnded
	}
	return nil
}

// newUserCode returns a random user code without the dash.
func newUserCode() string {
	var b strings.Builder
	for b.Len() < userCodeLength {
		for _, r := range random(userCodeLength) {
			// Larger values would make some letters more likely (modulo bias).
			if limit := 256 / len(userCodeLetters) * len(userCodeLetters); int(r) < limit && b.Len() < userCodeLength {
				b.WriteByte(userCodeLetters[int(r)%len(userCodeLetters)])
			}
		}
	}
	return b.String()
}

func dashed(word string) string { return word[:userCodeLength/2] + "-" + word[userCodeLength/2:] }

// normalizeUserCode normalizes a typed user code: upper case, without separators.
func normalizeUserCode(typed string) (string, bool) {
	if len(typed) > 4*userCodeLength {
		return "", false
	}
	var b strings.Builder
	for _, r := range strings.ToUpper(typed) {
		switch {
		case strings.ContainsRune(userCodeLetters, r):
			b.WriteRune(r)
		case r == '-' || r == ' ' || r == '_' || r == '.':
		default:
			return "", false
		}
	}
	return b.String(), b.Len() == userCodeLength
}

// pollLimiter contains the times of the last polls of a bounded number of devices.
type pollLimiter struct {
	mu   sync.Mutex // protects last
	last map[string]time.Time
}

const maxPolls = 10_000

func newPollLimiter() *pollLimiter { return &pollLimiter{last: make(map[string]time.Time)} }

// tooSoon reports whether a device polls more often than DeviceInterval, with a tolerance
// of one second.
func (c *pollLimiter) tooSoon(key string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) >= maxPolls {
		for k, at := range c.last {
			if now.Sub(at) > DeviceInterval {
				delete(c.last, k)
			}
		}
		if len(c.last) >= maxPolls {
			clear(c.last)
		}
	}
	before, known := c.last[key]
	c.last[key] = now
	return known && now.Sub(before) < DeviceInterval-time.Second
}
