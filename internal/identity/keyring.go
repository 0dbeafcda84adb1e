package identity

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"freshet/internal/base/retry"
)

const (
	// DefaultRotation is how long a key signs before the next one replaces it.
	DefaultRotation = 90 * 24 * time.Hour
	// maxSigningKeys bounds the ring. The default rotation reaches it after two centuries.
	maxSigningKeys = 1000
	// maxSaveAttempts is more than concurrent rotations of replicas can need.
	maxSaveAttempts = 100
	// missInterval is the minimum interval between loads that tokens with unknown key ids
	// cause.
	missInterval = time.Second
	// missTimeout bounds how long such a token waits for the store.
	missTimeout = 2 * time.Second
)

// Keyring contains the ES256 signing keys that all replicas share: the active key signs,
// the next key is already published, and retired keys still verify tokens. Rotation
// deletes the private key of a retired key and keeps the public key, because an API key
// may have no expiry.
//
// Rotation needs no coordination and no downtime. The next key has been in every replica's
// ring and in the JWKS since the previous rotation, so tokens of the replica that rotated
// first verify everywhere. A replica that has not loaded the rotation yet signs with a key
// that all others still verify.
type Keyring struct {
	store    KeyStore
	rotation time.Duration
	current  atomic.Pointer[keyset]
	busy     chan struct{} // a lock of capacity 1: one load or change at a time
	missed   time.Time     // last load because of an unknown kid; protected by busy
	changed  func()        // called after every change of current; protected by busy
}

// keyset is one immutable state of the ring.
type keyset struct {
	revision int64
	state    keyState
	signer   jose.Signer
	verify   map[string]*ecdsa.PublicKey
	jwks     []byte
}

// OpenKeyring loads the ring, and creates it if the store is empty. rotation is how long
// one key signs; 0 means DefaultRotation.
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
			return nil // another replica created the ring first
		}
		return state.createFirstKeys(time.Now())
	})
	if err != nil {
		return nil, fmt.Errorf("creating signing keys: %w", err)
	}
	return k, nil
}

// Refresh loads changes of other replicas. It is cheap if nothing changed. Call it on a
// timer or when the store notifies of a change.
func (k *Keyring) Refresh(ctx context.Context) error {
	if err := k.lock(ctx); err != nil {
		return err
	}
	defer k.unlock()
	return k.refreshLocked(ctx)
}

// lock acquires busy or returns the context's error. Without an error the caller must call
// unlock.
func (k *Keyring) lock(ctx context.Context) error {
	select {
	case k.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *Keyring) unlock() { <-k.busy }

// refreshLocked is called with busy held.
func (k *Keyring) refreshLocked(ctx context.Context) error {
	data, revision, err := k.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("loading signing keys: %w", err)
	}
	now := k.current.Load()
	switch {
	case data == nil && now == nil:
		return nil
	case data == nil:
		return errors.New("loading signing keys: etcd no longer contains them; restore it from a backup, or, if the " +
			"other members of an ensemble still have them, with: freshet ensemble rejoin")
	case now != nil && now.revision == revision:
		return nil
	}
	set, err := parseKeyset(data, revision)
	if err != nil {
		return fmt.Errorf("loading signing keys: %w", err)
	}
	k.current.Store(set)
	k.changed()
	return nil
}

// OnChange registers f, which is called with busy held after the keys have changed. f must
// not block.
func (k *Keyring) OnChange(f func()) {
	k.busy <- struct{}{}
	defer k.unlock()
	k.changed = f
}

// change edits the stored state by compare and swap. It retries when another replica
// changed the state first.
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
			return fmt.Errorf("saving signing keys: %w", err)
		}
		// In both cases the store has the current state and its revision.
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
	return fmt.Errorf("saving signing keys: %w, %d times in a row", ErrKeysChanged, maxSaveAttempts)
}

// Reseal stores the keys again without a change. After a rotation of the encryption key,
// this encrypts them with the new key, so that the old one can be retired.
func (k *Keyring) Reseal(ctx context.Context) error {
	return k.change(ctx, func(*keyState) error { return nil })
}

// RotateWhenDue loads changes of other replicas, and rotates when the active key has
// signed long enough: the active key is retired and the next one becomes active. Every
// replica may call it; the first one rotates.
func (k *Keyring) RotateWhenDue(ctx context.Context) error {
	if err := k.Refresh(ctx); err != nil {
		return err
	}
	if !k.due(&k.current.Load().state) {
		return nil
	}
	return k.change(ctx, func(s *keyState) error {
		if !k.due(s) {
			return nil // another replica has just rotated
		}
		return s.rotate(time.Now())
	})
}

// Withdraw deletes signing keys that may have leaked. Tokens and API keys that they signed
// stop working. Withdraw replaces the active and the next key before it deletes them.
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

func (k *Keyring) due(s *keyState) bool { return time.Since(s.RotatedAt) >= k.rotation }

// Run calls RotateWhenDue at the interval every until ctx is canceled.
func (k *Keyring) Run(ctx context.Context, every time.Duration, log *slog.Logger) {
	for range retry.Every(ctx, every) {
		if err := k.RotateWhenDue(ctx); err != nil && ctx.Err() == nil {
			log.LogAttrs(ctx, slog.LevelError, "signing keys could not be refreshed or rotated; retrying",
				slog.Any("error", err))
		}
	}
}

// JWKS returns the public keys as a JSON Web Key Set: the active, the next, then the
// retired ones. Callers must not change the slice.
func (k *Keyring) JWKS() []byte { return k.current.Load().jwks }

// verifyKey returns the public key for a kid. It loads the store if the kid is unknown to
// this replica.
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
	if !k.Contains(kid) && time.Since(k.missed) >= missInterval {
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

// IDs returns the ids of all signing keys in random order.
func (k *Keyring) IDs() []string { return slices.Collect(maps.Keys(k.current.Load().verify)) }

// Contains reports whether the ring contains the key kid, so that its tokens verify.
func (k *Keyring) Contains(kid string) bool {
	_, ok := k.current.Load().verify[kid]
	return ok
}

// sign returns a compact JWS of claims, signed with the active key.
func (k *Keyring) sign(claims any) (Secret, error) { return k.current.Load().sign(claims) }

func (k *keyset) sign(claims any) (Secret, error) {
	payload, err := marshalClaims(claims)
	if err != nil {
		return Secret{}, err
	}
	signed, err := k.signer.Sign(payload)
	if err != nil {
		return Secret{}, fmt.Errorf("signing a token: %w", err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return Secret{}, fmt.Errorf("signing a token: %w", err)
	}
	return NewSecret(token), nil
}
