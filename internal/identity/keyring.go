package identity

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// DefaultRotation is how long one key signs.
	DefaultRotation = 90 * 24 * time.Hour
	// maxSigningKeys bounds the ring: at the default rotation, two centuries.
	maxSigningKeys = 1000
	// maxSaveAttempts is more than replicas can collide by chance.
	maxSaveAttempts = 100
	// missReload limits how often tokens that name unknown keys make a replica
	// look into the store.
	missReload = time.Second
	// missTimeout bounds how long such a token may wait for the store.
	missTimeout = 2 * time.Second
)

// Keyring holds the ES256 signing keys that every replica shares: one active
// key signs, the next one is already published, and retired ones keep
// verifying. Retired keys lose their private half at once and keep the public
// one, because an API key may have no expiry.
//
// Rotation needs no coordination and no pause. The next key has been in every
// replica's ring and in the JWKS since the previous rotation, so tokens signed
// by a replica that rotated first verify everywhere; a replica that has not
// noticed yet goes on signing with a key that all others still verify.
type Keyring struct {
	store    KeyStore
	rotation time.Duration
	current  atomic.Pointer[keyset]
	busy     chan struct{} // the lock: one load or change at a time, and waiting ends with the context
	missed   time.Time     // last load because of an unknown kid; under the lock
	changed  func()        // told of every new state; under the lock
}

// keyset is one immutable state of the ring.
type keyset struct {
	revision int64
	state    keyState
	signer   jose.Signer
	verify   map[string]*ecdsa.PublicKey
	jwks     []byte
}

// OpenKeyring loads the ring, making it when the store is empty. rotation is
// how long one key signs; 0 means DefaultRotation.
func OpenKeyring(ctx context.Context, store KeyStore, rotation time.Duration) (*Keyring, error) {
	if rotation <= 0 {
		rotation = DefaultRotation
	}
	k := &Keyring{store: store, rotation: rotation, busy: make(chan struct{}, 1), changed: func() {}}
	if err := k.Refresh(ctx); err != nil {
		return nil, err
	}
	if k.current.Load() != nil {
		return k, nil
	}
	err := k.change(ctx, func(state *keyState) error {
		if len(state.Keys) > 0 {
			return nil // another replica was first
		}
		return state.begin(time.Now())
	})
	if err != nil {
		return nil, fmt.Errorf("make signing keys: %w", err)
	}
	return k, nil
}

// Refresh takes up what other replicas stored. It is cheap when nothing
// changed; call it on a timer or when the store tells of a change.
func (k *Keyring) Refresh(ctx context.Context) error {
	if err := k.lock(ctx); err != nil {
		return err
	}
	defer k.unlock()
	return k.refreshLocked(ctx)
}

// lock waits for the ring no longer than the context; without an error the
// caller has to unlock.
func (k *Keyring) lock(ctx context.Context) error {
	select {
	case k.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *Keyring) unlock() { <-k.busy }

// refreshLocked is called with the ring locked.
func (k *Keyring) refreshLocked(ctx context.Context) error {
	data, revision, err := k.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("load signing keys: %w", err)
	}
	now := k.current.Load()
	switch {
	case data == nil && now == nil:
		return nil
	case data == nil:
		return fmt.Errorf("load signing keys: the store no longer has them; restore it from a backup")
	case now != nil && now.revision == revision:
		return nil
	}
	set, err := parseKeyset(data, revision)
	if err != nil {
		return fmt.Errorf("load signing keys: %w", err)
	}
	k.current.Store(set)
	k.changed()
	return nil
}

// OnChange calls f, which must not wait for anything, when keys have come or gone.
func (k *Keyring) OnChange(f func()) {
	k.busy <- struct{}{}
	defer k.unlock()
	k.changed = f
}

// change edits the stored state, starting over when another replica was faster.
func (k *Keyring) change(ctx context.Context, edit func(*keyState) error) error {
	if err := k.lock(ctx); err != nil {
		return err
	}
	defer k.unlock()
	for range maxSaveAttempts {
		state, revision := keyState{Version: keyStateVersion}, int64(0)
		if set := k.current.Load(); set != nil {
			state, revision = set.state.clone(), set.revision
		}
		if err := edit(&state); err != nil {
			return err
		}
		err := k.store.Save(ctx, state.encode(), revision)
		if err != nil && !errors.Is(err, ErrKeysChanged) {
			return fmt.Errorf("save signing keys: %w", err)
		}
		// Saved or beaten, the store has the truth and its revision.
		if err := k.refreshLocked(ctx); err != nil {
			return err
		}
		if err == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return fmt.Errorf("save signing keys: %w, %d times in a row", ErrKeysChanged, maxSaveAttempts)
}

// Reseal stores the keys again as they are. After the sealing key was rotated
// this puts them under the new one, before the old one is retired.
func (k *Keyring) Reseal(ctx context.Context) error {
	return k.change(ctx, func(*keyState) error { return nil })
}

// RotateWhenDue takes up what other replicas stored, and rotates when the active
// key has signed long enough: it is retired and the next one takes its place.
// Every replica may call it: the first one rotates, the others see that it was
// done.
func (k *Keyring) RotateWhenDue(ctx context.Context) error {
	if err := k.Refresh(ctx); err != nil {
		return err
	}
	if !k.due(&k.current.Load().state) {
		return nil
	}
	return k.change(ctx, func(s *keyState) error {
		if !k.due(s) {
			return nil // another replica has just done it
		}
		return s.rotate(time.Now())
	})
}

// Withdraw ends signing keys that may have leaked: every token that one of them
// has signed is refused from now on, API keys too. A key that signs, or is the
// next to do so, is replaced first.
func (k *Keyring) Withdraw(ctx context.Context, ids ...string) error {
	if err := k.Refresh(ctx); err != nil {
		return err
	}
	return k.change(ctx, func(s *keyState) error {
		for _, id := range ids {
			if err := s.withdraw(id, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *Keyring) due(s *keyState) bool {
	return time.Since(s.RotatedAt) >= k.rotation
}

// Run calls RotateWhenDue at intervals until ctx ends.
func (k *Keyring) Run(ctx context.Context, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := k.RotateWhenDue(ctx); err != nil && ctx.Err() == nil {
				log.LogAttrs(ctx, slog.LevelError, "the signing keys could not be refreshed or rotated; trying again",
					slog.String("error", err.Error()))
			}
		}
	}
}

// JWKS returns the public keys as a JSON Web Key Set: active, next, then
// retired ones. Do not change the slice.
func (k *Keyring) JWKS() []byte { return k.current.Load().jwks }

// verifyKey finds the public key of a token, looking into the store when the
// kid is new to this replica.
func (k *Keyring) verifyKey(ctx context.Context, kid string) (*ecdsa.PublicKey, error) {
	if key, ok := k.current.Load().verify[kid]; ok {
		return key, nil
	}
	if kid == "" {
		return nil, ErrInvalidToken
	}
	ctx, cancel := context.WithTimeout(ctx, missTimeout)
	defer cancel()
	if err := k.lock(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysUnavailable, err)
	}
	defer k.unlock()
	if !k.Knows(kid) && time.Since(k.missed) >= missReload {
		k.missed = time.Now()
		if err := k.refreshLocked(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKeysUnavailable, err)
		}
	}
	if key, ok := k.current.Load().verify[kid]; ok {
		return key, nil
	}
	return nil, ErrInvalidToken
}

// IDs lists the signing keys.
func (k *Keyring) IDs() []string {
	var ids []string
	for id := range k.current.Load().verify {
		ids = append(ids, id)
	}
	return ids
}

// Knows reports whether tokens signed under kid are still good.
func (k *Keyring) Knows(kid string) bool {
	_, ok := k.current.Load().verify[kid]
	return ok
}

// sign makes a compact JWS over claims with the active key.
func (k *Keyring) sign(claims any) (Secret, error) { return k.current.Load().sign(claims) }

func (k *keyset) sign(claims any) (Secret, error) {
	payload, err := marshalClaims(claims)
	if err != nil {
		return Secret{}, err
	}
	signed, err := k.signer.Sign(payload)
	if err != nil {
		return Secret{}, fmt.Errorf("sign token: %w", err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return Secret{}, fmt.Errorf("sign token: %w", err)
	}
	return NewSecret(token), nil
}
