package messaging

import (
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// damaged says which message could not be read, by the id that consumers know it
// by, and how to go on without it. Other errors stay as they are.
func (t target) damaged(err error) error {
	var message *engine.DamagedMessage
	if !errors.As(err, &message) {
		return err
	}
	return errs.Newf(errs.Unavailable, "%w: message %s; acknowledge this id to skip it", ErrDamagedMessage,
		t.messageID(message.ID))
}
