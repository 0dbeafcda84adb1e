package messaging

import (
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// damagedError converts the engine's error for an unreadable message: it adds the message id that
// consumers use, and how to skip the message. It returns other errors unchanged.
func (t target) damagedError(err error) error {
	var message *engine.DamagedMessage
	if !errors.As(err, &message) {
		return err
	}
	return errs.Newf(errs.Unavailable, "%w: message %s; acknowledge this id to skip it", ErrDamagedMessage,
		t.messageID(message.ID))
}
